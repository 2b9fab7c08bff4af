// Linear attention whose state forgets at a constant rate: lightning attention (Qin et al. 2024, arXiv 2401.04658) as
// MiniMax-01 has it (MiniMax 2025, arXiv 2501.08313, section 2.2.1; huggingface/transformers, modeling_minimax.py,
// MiniMaxLightningAttention). Its recurrence is that of Mamba-2 with as many groups as heads (Dao and Gu 2024, section
// 7), so that the kernels are those of Mamba-2's scan: those of lightning attention have not been measured here. Tensor
// parallelism shards heads; under context parallelism ranks have all tokens of a share of these between both
// projections.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/mixers/mixer_parts.hpp"
#include "core/workload/mixers/scan_kernels.hpp"
#include "core/workload/mixers/token_exchange.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;
using compute::memory_bound;

struct LinearAttention {
  std::int64_t heads = 0;
  std::int64_t width = 128;  // of a head's queries, keys and values
  std::int64_t chunk = 256;  // tokens that the kernels take at once
  bool gated = true;         // the output is multiplied by a gate for each element

  std::int64_t values() const { return heads * width; }
  /// Columns of the input projections: queries, keys, values, and gates if there are any.
  std::int64_t projected() const { return (gated ? 4 : 3) * values(); }
};

const OptionTable<LinearAttention>& linear_attention_options() {
  static const OptionTable<LinearAttention> table{
      option("heads", &LinearAttention::heads, "heads", {1, 100'000}),
      option("width", &LinearAttention::width, "width of a query, key or value", {1, 65'536}),
      option("chunk", &LinearAttention::chunk, "tokens that the kernels take at once", {1, 65'536}, "tokens"),
      option("gated", &LinearAttention::gated, "the output is multiplied by a gate for each element"),
  };
  return table;
}

/// Returns the sizes of the scan on a rank that has all tokens of its share of the heads.
StateSpaceSizes scan_sizes(const LinearAttention& mixer, const PartOnRank& on) {
  const RankShapes shapes = all_token_shapes(on.shapes, on.strategy.cp);
  StateSpaceSizes sizes;
  sizes.tokens = shapes.tokens;
  sizes.chunk = std::min(mixer.chunk, shapes.sequence);
  sizes.chunks = shapes.samples * ((shapes.sequence + sizes.chunk - 1) / sizes.chunk);
  sizes.heads = sizes.groups = mixer.heads / (on.strategy.tp * on.strategy.cp);
  sizes.head_dim = sizes.state = mixer.width;
  return sizes;
}

class LinearAttentionPart final : public Mixer {
 public:
  explicit LinearAttentionPart(const LinearAttention& mixer) : mixer_(mixer) {}

  std::string missing_size(const Model&) const override { return mixer_.heads == 0 ? "heads" : ""; }

  /// Both projections, and the norm of all heads.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (mixer_.projected() + mixer_.values()) + mixer_.values(), 0};
  }

  std::string undivided_size(std::int64_t tp, std::int64_t cp) const override {
    return mixer_.heads % (tp * cp) == 0 ? "" : fmt::format("heads {}", mixer_.heads);
  }

  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {{"heads", mixer_.heads}}; }

  PartFormulas formulas(const Model&) const override {
    const std::string projections = fmt::format("{} * hidden * heads * width", mixer_.gated ? 5 : 4);
    return {projections + " + heads * width", "",
            "2 * sequence * (" + projections +
                " + 2 * heads * width * width + chunk * heads * width) + sequence * chunk * heads * width"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t tp = shapes.tensor_parallel, values = mixer_.values() / tp;
    add_traded_input(operators, on, mixer_.projected() / tp);
    operators.push_back(attention(on));
    if (on.strategy.cp > 1) operators.push_back(heads_to_tokens(shapes.tokens, values));
    operators.push_back(output_norm(on.model, shapes, values));
    operators.push_back(mixer_output(on, values));
  }

  /// Gradients of the projections' output and of queries, keys and values, in 16 bits; states and their gradients in
  /// fp32.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const StateSpaceSizes sizes = scan_sizes(mixer_, on);
    const std::int64_t columns = mixer_.projected() / mixer_.heads + 3 * mixer_.width;
    return 2 * sizes.tokens * sizes.heads * columns + 2 * 4 * sizes.states();
  }

 private:
  /// SiLU of queries, keys and values, which is computed again backward, and the scan of chunks. Saved are the
  /// projections' output and these three.
  Operator attention(const PartOnRank& on) const {
    const StateSpaceSizes sizes = scan_sizes(mixer_, on);
    const std::int64_t values = sizes.tokens * sizes.heads * mixer_.width;
    Operator result;
    result.name = "mixer_linear_attention";
    result.saved_bytes = 2 * values * ((mixer_.gated ? 4 : 3) + 3);
    result.forward.push_back(kernel(memory_bound("mixer_activation", 4 * 3 * values)));
    append(result.forward, state_space_forward(sizes));
    append(result.backward, state_space_backward(sizes));
    result.backward.push_back(kernel(memory_bound("mixer_activation_gradient", 6 * 3 * values)));
    return result;
  }

  /// The norm is over all heads: tensor-parallel ranks add up their squares (vLLM, MiniMaxText01RMSNormTP), and
  /// backward the products of gradients and outputs.
  Operator output_norm(const Model& model, const RankShapes& shapes, std::int64_t values) const {
    Operator result = mixer_.gated ? gated_norm(KernelClass::memory_bound, shapes.tokens * values)
                                   : norm("mixer_output_norm", model, shapes, shapes.tokens, values);
    if (shapes.tensor_parallel == 1) return result;
    for (OpList* ops : {&result.forward, &result.backward})
      block_on(*ops, "mixer_squares", collective::Kind::all_reduce, 4 * shapes.tokens);
    return result;
  }

  LinearAttention mixer_;
};

}  // namespace

PartType linear_attention_type() {
  return {"linear_attention",
          "linear attention with a constant decay (lightning attention)",
          linear_attention_options().infos(),
          make_part<LinearAttentionPart, linear_attention_options>,
          {{"heads", std::int64_t{16}}, {"width", std::int64_t{32}}}};
}

}  // namespace manyworlds::core::workload
