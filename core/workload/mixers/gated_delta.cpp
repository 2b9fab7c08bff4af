// Gated delta net: linear attention whose state forgets and is corrected by the delta rule (Yang et al. 2024, "Gated
// Delta Networks", section 3) as Qwen3-Next and Qwen3.5 have it, with the kernels by chunks of flash-linear-attention
// (fla/ops/gated_delta_rule/chunk.py). Tensor parallelism shards heads.
#include <algorithm>

#include "core/workload/mixers/mixer_parts.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::memory_bound;

struct GatedDelta {
  std::int64_t key_heads = 0;    // of queries and keys
  std::int64_t value_heads = 0;  // of values, gates and states; a multiple of key_heads
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  std::int64_t convolution = 4;  // tokens that the convolution sees
  std::int64_t chunk = 64;       // tokens that the kernels take at once

  std::int64_t values() const { return value_heads * value_dim; }
  /// Channels of the convolution: queries, keys and values.
  std::int64_t channels() const { return 2 * key_heads * key_dim + values(); }
  /// Columns of the input projections: these, gates, and a step and a decay for each head.
  std::int64_t projected() const { return channels() + values() + 2 * value_heads; }
};

const OptionTable<GatedDelta>& gated_delta_options() {
  static const OptionTable<GatedDelta> table{
      option("key_heads", &GatedDelta::key_heads, "heads of queries and keys", {1, 100'000}),
      option("value_heads", &GatedDelta::value_heads, "heads of values and states, a multiple of key_heads",
             {1, 100'000}),
      option("key_dim", &GatedDelta::key_dim, "width of a query or key", {1, 65'536}),
      option("value_dim", &GatedDelta::value_dim, "width of a value", {1, 65'536}),
      option("convolution", &GatedDelta::convolution, "tokens that the convolution sees", {1, 1'024}),
      option("chunk", &GatedDelta::chunk, "tokens that the kernels take at once", {1, 4'096}, "tokens"),
  };
  return table;
}

class GatedDeltaPart final : public LayerPart {
 public:
  explicit GatedDeltaPart(const GatedDelta& mixer) : mixer_(mixer) {}

  BranchNames branch_names() const override {
    return {"mixer_norm", "mixer_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::mixer; }

  std::string missing_size(const Model&) const override {
    return mixer_.key_heads == 0 ? "key_heads" : mixer_.value_heads == 0 ? "value_heads" : "";
  }

  /// The projections; weights of the convolution; step and decay of every head; the norm of one head.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (mixer_.projected() + mixer_.values()) + mixer_.convolution * mixer_.channels() +
                2 * mixer_.value_heads,
            mixer_.value_dim};
  }

  bool shares_context() const override { return false; }  // the state passes from rank to rank, which is not built

  std::vector<ShardedSize> sharded_sizes(const Model&) const override {
    return {{"key_heads", mixer_.key_heads}, {"value_heads", mixer_.value_heads}};
  }

  PartFormulas formulas(const Model&) const override {
    const std::string channels = "(2 * key_heads * key_dim + value_heads * value_dim)",
                      projections = "hidden * (" + channels + " + 2 * value_heads * value_dim + 2 * value_heads)";
    return {
        projections + " + convolution * " + channels + " + 2 * value_heads + value_dim", "",
        "2 * sequence * (" + projections +
            " + value_heads * (chunk * (3 * key_dim + 2 * value_dim) + 3 * key_dim * value_dim + chunk * floor(chunk / "
            "3)))"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t tp = shapes.tensor_parallel, values = mixer_.values() / tp;
    operators.push_back(
        column_parallel(shapes, {"mixer_in", shapes.hidden, mixer_.projected() / tp, false, on.dtype()}));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.push_back(delta_rule(shapes));
    operators.push_back(gated_norm(shapes.tokens * values));
    operators.push_back(row_parallel(shapes, {"mixer_out", values, shapes.hidden, false, on.dtype()}));
  }

  /// Gradients of the projections' output and of the convolution's; states and their gradients in 16 bits.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const std::int64_t tp = on.shapes.tensor_parallel;
    return 2 * on.shapes.tokens * (mixer_.projected() + mixer_.channels()) / tp +
           2 * 2 * chunks_of_heads(on.shapes) * mixer_.key_dim * mixer_.value_dim;
  }

 private:
  std::int64_t chunk(const RankShapes& shapes) const { return std::min(mixer_.chunk, shapes.sequence); }
  /// Chunks of all samples and value heads on this rank.
  std::int64_t chunks_of_heads(const RankShapes& shapes) const {
    const std::int64_t q = chunk(shapes);
    return shapes.samples * ((shapes.sequence + q - 1) / q) * mixer_.value_heads / shapes.tensor_parallel;
  }

  /// Saved are the convolution's input and output, step and decay in fp32, and the inverse matrix of each chunk; the
  /// backward pass computes corrected keys and values and the states again.
  Operator delta_rule(const RankShapes& shapes) const {
    const std::int64_t tp = shapes.tensor_parallel, q = chunk(shapes), k = mixer_.key_dim, v = mixer_.value_dim;
    const std::int64_t each = chunks_of_heads(shapes), channels = shapes.tokens * mixer_.channels() / tp;
    const std::int64_t steps = shapes.tokens * mixer_.value_heads / tp;
    Operator result;
    result.name = "mixer_delta_rule";
    result.saved_bytes = 2 * shapes.tokens * mixer_.projected() / tp + 2 * channels + 8 * steps + 2 * each * q * q;
    const auto gemms = [](OpList& ops, std::string_view name, std::initializer_list<std::int64_t> shape) {
      const auto* s = shape.begin();
      ops.push_back(kernel(batched_gemm(name, s[0], s[1], s[2], s[3])));
    };
    const auto correct = [&](OpList& ops) {  // keys and values by the inverse, then the states, chunk after chunk
      gemms(ops, "mixer_corrected_keys", {q, k, q, each});
      gemms(ops, "mixer_corrected_values", {q, v, q, each});
      gemms(ops, "mixer_state_values", {q, v, k, each});
      gemms(ops, "mixer_states", {k, v, q, each});
    };
    OpList &ahead = result.forward, &back = result.backward;
    convolve(ahead, channels);
    ahead.push_back(kernel(memory_bound("mixer_steps", 12 * steps)));
    gemms(ahead, "mixer_key_products", {q, q, k, each});
    gemms(ahead, "mixer_inverse", {q, q, std::max<std::int64_t>(q / 3, 1), each});  // of a triangle: q^3 / 3
    correct(ahead);
    gemms(ahead, "mixer_scores", {q, q, k, each});
    gemms(ahead, "mixer_output", {q, v, q + k, each});

    correct(back);
    gemms(back, "mixer_scores", {q, q, k, each});
    gemms(back, "mixer_value_gradient", {q, v, q, each});
    gemms(back, "mixer_state_gradient", {k, v, 2 * q, each});
    gemms(back, "mixer_score_gradient", {q, q, v, each});
    gemms(back, "mixer_query_gradient", {q, k, q + v, each});
    gemms(back, "mixer_key_gradient", {q, k, q + v, each});
    gemms(back, "mixer_correction_gradient", {q, q, k + v, each});
    gemms(back, "mixer_inverse_gradient", {q, q, 2 * q, each});
    gemms(back, "mixer_corrected_gradient", {q, k + v, q, each});
    gemms(back, "mixer_product_gradient", {q, k, 2 * q, each});
    back.push_back(kernel(memory_bound("mixer_steps_gradient", 20 * steps)));
    convolve_backward(back, channels);
    return result;
  }

  GatedDelta mixer_;
};

}  // namespace

PartType gated_delta_type() {
  return {"gated_delta",
          "linear attention by the gated delta rule",
          gated_delta_options().infos(),
          make_part<GatedDeltaPart, gated_delta_options>,
          {{"key_heads", std::int64_t{8}}, {"value_heads", std::int64_t{16}}}};
}

}  // namespace manyworlds::core::workload
