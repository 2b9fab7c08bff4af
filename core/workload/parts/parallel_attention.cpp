// Attention and a feed-forward network side by side in a language model: both read the residual stream behind a norm,
// and both outputs are added to it at once, y = x + Attention(LN(x)) + FF(LN(x)) (Wang and Komatsuzaki 2021, GPT-J-6B;
// Falcon, Phi and Cohere), or each behind a norm of its own (Black et al. 2022, GPT-NeoX-20B, section 2.1.2).
// Tensor-parallel ranks add both outputs before one reduction, where layers in a row have two, and backward the
// gradients of what both read, unless these are of two norms.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <variant>

#include "core/workload/operators/key_heads.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/parts/attention.hpp"
#include "core/workload/parts/feed_forward.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

struct ParallelAttention {
  bool own_norm = false;         // the feed-forward network has a norm of its own
  bool attention_biases = true;  // false: attention has no biases, even if the model's linear layers have
};

const OptionTable<ParallelAttention>& parallel_attention_options() {
  static const OptionTable<ParallelAttention> table{
      option("own_norm", &ParallelAttention::own_norm, "the feed-forward network has a norm of its own"),
      option("attention_biases", &ParallelAttention::attention_biases,
             "attention has biases where the model's linear layers have; false: none"),
  };
  return table;
}

bool is_start_of(const WorkItem& work, std::initializer_list<Kind> kinds) {
  const CollectiveStart* start = work.start();
  return start != nullptr && std::find(kinds.begin(), kinds.end(), start->kind) != kinds.end();
}

bool is_copy(const WorkItem& work) {
  return work.kernel() != nullptr && work.kernel()->shape.name == "copy_sequence";
}

/// Takes out collectives of these kinds, where kernels wait for them at once, and copies of what they bring or take:
/// that before a reduction, or the last one, of what is gathered.
void drop_collectives(OpList& ops, std::initializer_list<Kind> kinds) {
  OpList kept;
  bool gathers = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_start_of(ops[i], kinds)) {
      kept.push_back(std::move(ops[i]));
      continue;
    }
    gathers |= is_start_of(ops[i], {Kind::all_gather});
    if (!is_start_of(ops[i], {Kind::all_gather}) && !kept.empty() && is_copy(kept.back())) kept.pop_back();
    if (i + 1 < ops.size() && std::holds_alternative<Join>(ops[i + 1].action)) ++i;
  }
  if (const auto last = std::find_if(kept.rbegin(), kept.rend(), is_copy); gathers && last != kept.rend())
    kept.erase(std::next(last).base());
  ops = std::move(kept);
}

/// Adds a kernel before the first collective that sums over ranks, or at the end if there is none.
void add_before_reduction(OpList& ops, WorkItem work) {
  const auto reduction = std::find_if(ops.begin(), ops.end(), [](const WorkItem& each) {
    return is_start_of(each, {Kind::all_reduce, Kind::reduce_scatter});
  });
  ops.insert(reduction, std::move(work));
}

class ParallelAttentionPart final : public LayerPart, public SharesKeyHeads {
 public:
  ParallelAttentionPart(std::shared_ptr<const LayerPart> attention, const ParallelAttention& options)
      : attention_(std::move(attention)), options_(options) {}

  BranchNames branch_names() const override {
    return {"block_norm", "block_residual", recompute::layernorm, offload::attn_norm};
  }

  /// The first projection of latent attention gives narrow vectors that ranks do not share out.
  std::string missing_size(const Model& model) const override {
    return model.is_latent() ? "attention: multi_head" : attention_->missing_size(model);
  }

  PartParameters parameters(const Model& model) const override {
    const PartParameters attention = attention_->parameters(model_of_attention(model)),
                         network = feed_forward_part().parameters(model);
    return {attention.sharded + network.sharded,
            attention.replicated + network.replicated + (options_.own_norm ? norm_parameters(model) : 0)};
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    std::vector<ShardedSize> sizes = attention_->sharded_sizes(model);
    for (const ShardedSize& size : feed_forward_part().sharded_sizes(model)) sizes.push_back(size);
    return sizes;
  }

  std::string unshared_key_heads(const Model& model, const Strategy& strategy, std::int64_t ranks) const override {
    return dynamic_cast<const SharesKeyHeads&>(*attention_).unshared_key_heads(model, strategy, ranks);
  }

  PartFormulas formulas(const Model& model) const override {
    const PartFormulas attention = attention_->formulas(model_of_attention(model)),
                       network = feed_forward_part().formulas(model);
    const char* norm = !options_.own_norm ? "" : model.norm == Norm::layer_norm ? " + 2 * hidden" : " + hidden";
    return {attention.parameters + " + " + network.parameters + norm, "",
            attention.forward_flops + " + " + network.forward_flops};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const Model of_attention = model_of_attention(on.model);
    const std::size_t qkv = operators.size();
    attention_->add_operators(operators, without_overlap(of_attention, on));
    const std::size_t output = operators.size() - 1;
    if (options_.own_norm) operators.push_back(second_norm(on));
    const std::size_t up = operators.size();
    feed_forward_part().add_operators(operators, without_overlap(on.model, on));
    add_outputs(operators[output], operators.back(), on.shapes);
    if (options_.own_norm) return;
    share_input(operators[qkv], operators[up], on);
  }

  /// What each of both has, and beside attention's the gradient of the network's input.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const Model of_attention = model_of_attention(on.model);
    return std::max(feed_forward_part().working_bytes(on),
                    attention_->working_bytes(without_overlap(of_attention, on)) + on.shapes.hidden_bytes());
  }

  std::optional<std::int64_t> cached_bytes(const PartOnRank& on) const override {
    const Model of_attention = model_of_attention(on.model);
    return attention_->cached_bytes(without_overlap(of_attention, on));
  }

  std::int64_t shared_buffer_bytes(const PartOnRank& on) const override {
    const Model of_attention = model_of_attention(on.model);
    return attention_->shared_buffer_bytes(without_overlap(of_attention, on));
  }

 private:
  Model model_of_attention(const Model& model) const {
    Model result = model;
    if (!options_.attention_biases) result.biases = false;
    return result;
  }

  /// What is reduced is a sum of two GEMMs, so that neither can send its share while it computes (Stack).
  static PartOnRank without_overlap(const Model& model, const PartOnRank& on) {
    PartOnRank result(model, on.strategy, on.kind, on.expert_rank);
    result.shapes.overlap_tensor = false, result.shapes.tensor_chunks = 0;
    return result;
  }

  /// The norm before the network reads what the first one has saved, and adds its gradient to that one's.
  static Operator second_norm(const PartOnRank& on) {
    const std::int64_t elements = on.shapes.sp_region_tokens * on.shapes.hidden;
    Operator result = norm("mlp_norm", on.model, on.shapes, on.shapes.sp_region_tokens, on.shapes.hidden);
    result.saved_bytes -= 2 * elements;
    result.backward.push_back(kernel(memory_bound("sum_input_gradients", 6 * elements)));
    result.in_modules = recompute::mlp_norm;
    result.offload_module = offload::mlp_norm;
    return result;
  }

  /// Both outputs are added on each rank, then over ranks; backward, ranks gather the gradient of the sum once.
  static void add_outputs(Operator& attention, Operator& network, const RankShapes& shapes) {
    drop_collectives(attention.forward, {Kind::all_reduce, Kind::reduce_scatter});
    drop_collectives(attention.backward, {Kind::all_gather});
    add_before_reduction(network.forward, kernel(memory_bound("sum_outputs", 6 * shapes.tokens * shapes.hidden)));
  }

  /// Both read one norm's output, which ranks gather once forward and, for the network, once backward, and whose two
  /// gradients they add first. In 16 bits that output is saved once; below, each matrix saves its own.
  static void share_input(Operator& qkv, Operator& up, const PartOnRank& on) {
    drop_collectives(up.forward, {Kind::all_gather});
    drop_collectives(up.backward, {Kind::all_reduce, Kind::reduce_scatter});
    drop_collectives(qkv.backward, {Kind::all_gather});
    add_before_reduction(qkv.backward,
                         kernel(memory_bound("sum_input_gradients", 6 * on.shapes.tokens * on.shapes.hidden)));
    if (on.dtype() == compute::Dtype::bf16) up.saved_bytes = 0;
    mark_input_from(up, recompute::layernorm);
  }

  std::shared_ptr<const LayerPart> attention_;
  ParallelAttention options_;
};

/// Options of the part itself are its own, all others those of its attention.
std::shared_ptr<const LayerPart> make_parallel_attention(const OptionSet& own) {
  const std::vector<OptionInfo> infos = parallel_attention_options().infos();
  OptionSet of_attention, of_part;
  for (const auto& [name, value] : own) {
    const bool is_own =
        std::any_of(infos.begin(), infos.end(), [&name = name](const OptionInfo& info) { return info.name == name; });
    (is_own ? of_part : of_attention)[name] = value;
  }
  return std::make_shared<ParallelAttentionPart>(attention_type().make(of_attention),
                                                 parallel_attention_options().make(of_part));
}

std::vector<OptionInfo> all_options() {
  std::vector<OptionInfo> all = parallel_attention_options().infos();
  for (const OptionInfo& info : attention_type().options) all.push_back(info);
  return all;
}

}  // namespace

PartType parallel_attention_type() {
  return {"parallel_attention",
          "attention beside a feed-forward network, from one norm into one sum (GPT-J, Falcon, Cohere)",
          all_options(),
          make_parallel_attention,
          {}};
}

}  // namespace manyworlds::core::workload
