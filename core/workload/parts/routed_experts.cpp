// Permutation of tokens, their way to the ranks of their experts and back, and grouped GEMMs.
#include "core/workload/parts/routed_experts.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/group_limits.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::grouped_gemm;
using compute::grouped_weight_gradient;
using compute::memory_bound;

/// Numbers and bytes of this rank's tokens in an exchange.
struct TokenTraffic {
  std::int64_t routed = 0;  // tokens that this rank routes
  std::int64_t copies = 0;  // one row for each expert of a token
  std::int64_t sent = 0;    // rows that are sent; with hybrid_ep one for each rank that holds some of a token's experts
  std::int64_t bytes = 0;   // bytes of the rows sent
  std::int64_t received_bytes = 0;
  collective::Split to_ranks;  // bytes by receiver
};

TokenTraffic token_traffic(const Model& model, const Strategy& strategy, const RankShapes& shapes,
                           const ExpertLoad& load, const RankLoad& own_load) {
  TokenTraffic result;
  result.routed = shapes.sp_region_tokens;
  result.copies = load.all_rows();
  result.sent = own_load.sent;
  if (strategy.stack.dispatcher != Dispatcher::all_to_all) {
    const double reached = mean_parts_reached(model, strategy.ep) / static_cast<double>(strategy.ep);
    result.sent =
        round_half_up(static_cast<double>(result.routed) * reached) * strategy.ep;  // equally many to each rank
  }
  result.bytes = result.received_bytes = 2 * result.sent * shapes.hidden;
  if (own_load.to_ranks.even()) return result;
  result.received_bytes = 2 * own_load.received * shapes.hidden;
  for (const std::int64_t rows : own_load.to_ranks.bytes) result.to_ranks.bytes.push_back(2 * rows * shapes.hidden);
  return result;
}

/// Expands one row per token to one row per copy, in the order of the experts; the backward pass sums the copies.
/// Unfused, as in Megatron-LM: the routing map is transposed and token indices are selected with it, rows are copied
/// one by one, and in the backward pass they are added to zeroed rows.
Operator permute(const RankShapes& shapes, const Model& model, std::int64_t tokens, std::int64_t copies) {
  Operator result;
  result.name = "permute";
  if (shapes.stack.permute_fusion) {
    const std::int64_t bytes = 2 * (tokens + copies) * shapes.hidden;
    result.forward.push_back(kernel(memory_bound(result.name, bytes)));
    result.backward.push_back(kernel(memory_bound(result.name, bytes)));
    return result;
  }
  const std::int64_t map = tokens * model.experts;
  for (const std::int64_t bytes : {2 * map, 9 * map + 8 * copies, 4 * copies * shapes.hidden})
    result.forward.push_back(kernel(memory_bound(result.name, bytes)));
  for (const std::int64_t bytes : {2 * tokens * shapes.hidden, 6 * copies * shapes.hidden})
    result.backward.push_back(kernel(memory_bound(result.name, bytes)));
  return result;
}

/// Inverts permute(); the token indices are already known.
Operator unpermute(const RankShapes& shapes, const Operator& permuted) {
  Operator result = permuted;
  result.name = "unpermute";
  if (shapes.stack.permute_fusion) return result;
  std::swap(result.forward, result.backward);
  result.backward.erase(result.backward.begin(), result.backward.end() - 1);
  return result;
}

/// Sorts received rows by expert, or sent rows by rank: read and written once.
Operator sort(std::string_view name, std::int64_t rows, const RankShapes& shapes) {
  return elementwise(name, rows * shapes.hidden, 4, 4, 0);
}

/// Transfer of tokens to the ranks with their experts, or back: an all-to-all over expert-parallel ranks, and, if an
/// expert is sharded over tensor-parallel ranks, an all-gather of their tokens or a reduce-scatter of their results.
/// Operators between `departure` and `arrival` overlap with the all-to-all, forward and backward.
struct TokenExchange {
  Operator departure, arrival;

  Operator whole() const {
    Operator result = departure;
    append(result.forward, arrival.forward);
    result.backward = arrival.backward;
    append(result.backward, departure.backward);
    return result;
  }
};
TokenExchange token_exchange(std::string_view name, const TokenTraffic& traffic, const Strategy& strategy, bool out) {
  TokenExchange result;
  result.departure.name = result.arrival.name = name;
  const bool crosses_ranks = strategy.ep > 1 && traffic.bytes > 0;
  const bool directions_differ = !traffic.to_ranks.even() || strategy.stack.dispatcher == Dispatcher::deepep;
  const std::int64_t whole = traffic.received_bytes * strategy.etp;
  const auto begin = [&](OpList& ops, bool back) {
    if (crosses_ranks)
      start(ops, name, Kind::all_to_all, traffic.bytes, Role::expert,
            {traffic.to_ranks.bytes, back && directions_differ});
  };
  const auto end = [&](OpList& ops) {
    if (crosses_ranks) join(ops);
  };
  const auto across = [&](OpList& ops, Kind kind) {
    if (strategy.etp > 1 && whole > 0) block_on(ops, name, kind, whole, Role::expert_tensor);
  };
  // On dispatch tensor-parallel ranks gather what they received; on combine they reduce-scatter before they send.
  OpList &gather_begin = out ? result.departure.forward : result.arrival.backward,
         &gather_end = out ? result.arrival.forward : result.departure.backward,
         &scatter_begin = out ? result.arrival.backward : result.departure.forward,
         &scatter_end = out ? result.departure.backward : result.arrival.forward;
  begin(gather_begin, false), end(gather_end), across(gather_end, Kind::all_gather);
  across(scatter_begin, Kind::reduce_scatter), begin(scatter_begin, true), end(scatter_end);
  return result;
}

/// Broadcasts the weights of hot experts from their owners, and reduces the gradients of the copies to the owners.
Operator broadcast_hot_experts(const Model& model, const Strategy& strategy, const ExpertLoad& load) {
  Operator result;
  result.name = "hot_experts";
  const std::int64_t parameters = expert_parameters(model, 1), each = model.experts / strategy.ep;
  result.saved_bytes = kParameterBytes * parameters;
  result.tensor_count = static_cast<std::int64_t>(load.copied.size());
  const auto for_each_copy = [&](OpList& ops, Kind kind, std::int64_t bytes) {
    for (const std::int64_t expert : load.copied)
      start(ops, result.name, kind, bytes, Role::expert,
            collective::rooted_split(static_cast<std::uint32_t>(expert / each), static_cast<std::uint32_t>(strategy.ep),
                                     bytes));
  };
  if (strategy.ep == 1 || load.copied.empty()) return result;
  for_each_copy(result.forward, Kind::broadcast, kParameterBytes * parameters);
  for_each_copy(result.backward, Kind::reduce, gradient_bytes(strategy) * parameters);
  join(result.backward);
  return result;
}

/// GEMMs of a rank's experts. Grouped GEMMs need one launch for each expert that has tokens (Transformer Engine's
/// GroupedLinear), and as many launches of kernels that quantise their input. Engines that generate have one kernel for
/// all experts (vLLM's fused_moe, grouped GEMMs of TensorRT-LLM).
class ExpertGemms {
 public:
  ExpertGemms(const Model& model, const Strategy& strategy, const RankShapes& shapes, const RankLoad& load)
      : shapes_(shapes), load_(load), are_one_kernel_(is_generation(model)), experts_(shapes.experts) {
    each_ = (load.computed + shapes.experts - 1) / shapes.experts;
    launches_ = load.experts.empty() ? shapes.experts
                                     : std::count_if(load.experts.begin(), load.experts.end(),
                                                     [](std::int64_t rows) { return rows > 0; });
    if (strategy.expert_gemm == ExpertGemm::batched || are_one_kernel_) launches_ = 1;
  }

  /// Returns one linear layer of all experts.
  Operator linear(const Linear& layer) const {
    Operator result;
    result.name = layer.name;
    result.saved_bytes = stored_bytes(layer.dtype, load_.computed * layer.in);
    quantise(result.forward, layer.dtype, load_.computed * layer.in, launches_);
    product(result.forward, layer.name, layer.out, layer.in, layer.dtype);
    quantise(result.backward, layer.dtype, load_.computed * layer.out, launches_);
    product(result.backward, layer.name, layer.in, layer.out, layer.dtype);
    add_weight_gradient(
        result.backward, shapes_,
        load_.experts.empty()
            ? grouped_weight_gradient(layer.name, layer.out, layer.in, each_, experts_, layer.dtype)
            : compute::grouped_weight_gradient(layer.name, layer.out, layer.in, std::span(load_.experts), layer.dtype),
        launches_);
    if (layer.bias)
      result.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * load_.computed * layer.out)));
    result.weight_gradient_input_bytes = result.saved_bytes + stored_bytes(layer.dtype, load_.computed * layer.out);
    return result;
  }

 private:
  void product(OpList& ops, std::string_view name, std::int64_t out, std::int64_t in, compute::Dtype dtype) const {
    compute::Kernel gemms = load_.experts.empty()
                                ? grouped_gemm(name, each_, out, in, experts_, dtype)
                                : compute::grouped_gemm(name, std::span(load_.experts), out, in, dtype);
    if (are_one_kernel_) gemms.one_by_one = false;
    ops.push_back(kernel(gemms, launches_));
  }

  const RankShapes& shapes_;
  const RankLoad& load_;
  bool are_one_kernel_;
  std::int64_t experts_ = 0, each_ = 0, launches_ = 0;
};

/// Returns whether the kernel of the activation function also weights its output by the token's probability, as only
/// the fused one of SwiGLU does (Megatron-Core, transformer/mlp.py). Otherwise the output is saved before the
/// weighting.
bool weights_inside_activation(const Model& model, const RankShapes& shapes) {
  return model.activation == Activation::swiglu && shapes.stack.bias_activation_fusion;
}

/// Adds what the experts of this rank compute. If they have more tokens than the strategy saves activations for, only
/// their input is saved.
void add_computation(std::vector<Operator>& operators, const Model& model, const Strategy& strategy,
                     const RankShapes& shapes, const RankLoad& load, compute::Dtype dtype) {
  if (load.computed == 0) return;
  RankShapes hit = shapes;  // balanced experts that have tokens, of few tokens that are generated
  if (is_inference(model) && load.experts.empty()) hit.experts = std::min(shapes.experts, load.computed);
  const ExpertGemms gemms(model, strategy, hit, load);
  const std::size_t first = operators.size();
  const std::int64_t up = model.up_width(shapes.expert_ffn);
  operators.push_back(gemms.linear({"expert_up", shapes.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, shapes, load.computed * shapes.expert_ffn));
  if (!weights_inside_activation(model, shapes)) operators.back().saved_bytes += 2 * load.computed * shapes.expert_ffn;
  operators.push_back(gemms.linear({"expert_down", shapes.expert_ffn, shapes.hidden, model.biases, dtype}));
  const Modules overloaded = recomputes_experts(strategy, load) ? recompute::overloaded_experts : 0;
  Operator* const result = &operators[first];
  mark_input_from(result[0], recompute::moe);
  mark_input_from(result[1], recompute::moe | overloaded);
  mark_input_from(result[2], recompute::moe | overloaded | recompute::moe_act);
  for (std::size_t i = 0; i < 3; ++i) {
    result[i].in_modules = overloaded | (i == 1 ? recompute::moe_act : 0);
    result[i].offload_module = offload::expert_fc1 << i;
  }
}

/// Returns only the forward, or only the backward, pass of the shared expert for the overlap with an exchange of
/// tokens. Its joins wait for tensor-parallel collectives, but not for that exchange.
std::vector<Operator> beside_exchange(std::vector<Operator> shared, bool forward) {
  for (Operator& each : shared) {
    (forward ? each.backward : each.forward).clear();
    if (!forward) each.saved_bytes = each.module_output_bytes = each.weight_gradient_input_bytes = 0;
    for (WorkItem& work : forward ? each.forward : each.backward)
      if (Join* join = std::get_if<Join>(&work.action)) join->role = Role::tensor;
  }
  return shared;
}

/// Moves the weight gradients of the experts out of their backward passes into one operator.
Operator delayed_weight_gradients(std::vector<Operator>& experts) {
  Operator result;
  result.name = "expert_weights";
  for (auto each = experts.rbegin(); each != experts.rend(); ++each) {
    const auto is_moved = [](const WorkItem& work) { return work.computes_weight_gradient(); };
    std::copy_if(each->backward.begin(), each->backward.end(), std::back_inserter(result.backward), is_moved);
    std::erase_if(each->backward, is_moved);
  }
  return result;
}

/// Adds experts to which no tokens are sent, as every tensor-parallel rank has all of them: it takes the rows of its
/// own experts, and the ranks sum their results (vLLM, model_executor/layers/fused_moe/layer.py, FusedMoE).
void add_of_all_tokens(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                       const ExpertLoad& load) {
  const RankLoad own_load = rank_load(on.model, on.strategy, load, on.expert_rank);
  const std::size_t first = operators.size();
  const Operator permuted = permute(shapes, on.model, shapes.tokens, own_load.computed);
  operators.push_back(permuted);
  add_computation(operators, on.model, on.strategy, shapes, own_load, on.dtype());
  operators.push_back(unpermute(shapes, permuted));
  block_on(operators.back().forward, "combine", Kind::all_reduce, shapes.hidden_bytes());
  for (std::size_t i = first; i < operators.size(); ++i)
    for (WorkItem& work : operators[i].forward)
      if (KernelWork* kernel = work.kernel()) kernel->depends_on_load = !load.rows.empty();
}

}  // namespace

double mean_parts_reached(std::int64_t experts, std::int64_t experts_per_token, std::int64_t parts) {
  const auto all = static_cast<double>(experts);
  const double elsewhere = all - all / static_cast<double>(parts);
  double miss_probability = 1;  // probability that no expert of a token is in a given part
  for (std::int64_t i = 0; i < experts_per_token; ++i) {
    const auto chosen = static_cast<double>(i);
    miss_probability *= std::max(0.0, elsewhere - chosen) / (all - chosen);
  }
  return static_cast<double>(parts) * (1 - miss_probability);
}

double mean_parts_reached(const Model& model, std::int64_t parts) {
  if (limits_groups(model)) return mean_parts_reached_in_groups(model, parts);
  return mean_parts_reached(model.experts, model.experts_per_token, parts);
}

void add_routed(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                const std::vector<Operator>& shared) {
  const Model& model = on.model;
  const Strategy& strategy = on.strategy;
  const ExpertLoad load = expert_load(model, strategy, on.kind);
  if (experts_get_all_tokens(model, strategy)) return add_of_all_tokens(operators, on, shapes, load);
  const RankLoad own_load = rank_load(model, strategy, load, on.expert_rank);
  const bool copied = strategy.stack.dispatcher == Dispatcher::all_to_all;
  const TokenTraffic tokens = token_traffic(model, strategy, shapes, load, own_load);
  const bool needs_sorting = copied && strategy.ep * strategy.etp > 1 && shapes.experts > 1;
  const auto add = [&](Operator result) {
    for (OpList* ops : {&result.forward, &result.backward})
      for (WorkItem& work : *ops) {
        work.needs_token_counts = true;
        if (KernelWork* kernel = work.kernel()) kernel->depends_on_load = !load.rows.empty();
      }
    operators.push_back(std::move(result));
  };
  const auto beside = [&](bool forward) {
    for (Operator& each : beside_exchange(shared, forward)) operators.push_back(std::move(each));
  };
  std::vector<Operator> experts;
  add_computation(experts, model, strategy, shapes, own_load, on.dtype());
  std::optional<Operator> weights;
  if (strategy.stack.delay_expert_weights) weights = delayed_weight_gradients(experts);
  // Rows are copied before they are sent, or when they arrive.
  const std::int64_t rows = copied ? tokens.routed : tokens.sent * strategy.etp;
  Operator permuted = permute(shapes, model, rows, copied ? tokens.copies : own_load.computed);
  Operator unpermuted = unpermute(shapes, permuted);
  // Neither saves its rows: both need only token indices, since the experts weight their results by probabilities that
  // come with the tokens (Megatron-Core since 0.12).
  mark_input_from(permuted, recompute::moe);
  mark_input_from(unpermuted, recompute::moe);
  const TokenExchange dispatch = token_exchange("dispatch", tokens, strategy, true),
                      combine = token_exchange("combine", tokens, strategy, false);
  if (copied) add(permuted);
  if (!load.copied.empty()) add(broadcast_hot_experts(model, strategy, load));
  if (shared.empty() && !weights) {
    add(dispatch.whole());
  } else {
    add(dispatch.departure);
    beside(true);
    if (weights) add(*std::move(weights));
    add(dispatch.arrival);
  }
  if (!copied) add(permuted);
  if (needs_sorting && own_load.computed > 0) add(sort("sort_by_expert", own_load.computed, shapes));
  for (Operator& each : experts) add(std::move(each));
  if (needs_sorting && own_load.computed > 0) add(sort("sort_by_rank", own_load.computed, shapes));
  if (!copied) add(unpermuted);
  if (shared.empty()) {
    add(combine.whole());
  } else {
    add(combine.departure);
    beside(false);
    add(combine.arrival);
  }
  if (copied) add(unpermuted);
}

}  // namespace manyworlds::core::workload
