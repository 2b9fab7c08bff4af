// Gated delta net: linear attention whose state forgets and is corrected by the delta rule (Yang et al. 2024, "Gated
// Delta Networks", section 3) as Qwen3-Next and Qwen3.5 have it, with the kernels by chunks of flash-linear-attention
// (fla/ops/gated_delta_rule/chunk.py). Tensor parallelism shards heads; under context
// parallelism ranks have all tokens of a share of these between both projections.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/mixers/mixer_parts.hpp"
#include "core/workload/mixers/scan_kernels.hpp"
#include "core/workload/mixers/token_exchange.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;
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

/// Returns what of the mixer a rank computes, for all tokens of a sample: its heads.
GatedDelta share_of(const GatedDelta& mixer, const PartOnRank& on) {
  const std::int64_t ranks = on.strategy.tp * on.strategy.cp;
  GatedDelta share = mixer;
  share.key_heads /= ranks;
  share.value_heads /= ranks;
  return share;
}

/// Returns the sizes of the delta rule of `share`, on a rank that has all tokens.
DeltaRuleSizes rule_sizes(const GatedDelta& share, const RankShapes& shapes) {
  DeltaRuleSizes sizes;
  sizes.tokens = shapes.tokens;
  sizes.chunk = std::min(share.chunk, shapes.sequence);
  sizes.serial_chunks = (shapes.sequence + sizes.chunk - 1) / sizes.chunk;
  sizes.chunks = shapes.samples * sizes.serial_chunks;
  sizes.key_heads = share.key_heads;
  sizes.value_heads = share.value_heads;
  sizes.key_dim = share.key_dim;
  sizes.value_dim = share.value_dim;
  return sizes;
}

class GatedDeltaPart final : public Mixer {
 public:
  explicit GatedDeltaPart(const GatedDelta& mixer) : mixer_(mixer) {}

  std::string missing_size(const Model&) const override {
    return mixer_.key_heads == 0 ? "key_heads" : mixer_.value_heads == 0 ? "value_heads" : "";
  }

  /// The projections; weights of the convolution; step and decay of every head; the norm of one head.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (mixer_.projected() + mixer_.values()) + mixer_.convolution * mixer_.channels() +
                2 * mixer_.value_heads,
            mixer_.value_dim};
  }

  std::string undivided_size(std::int64_t tp, std::int64_t cp) const override {
    if (mixer_.key_heads % (tp * cp) != 0) return fmt::format("key_heads {}", mixer_.key_heads);
    return mixer_.value_heads % (tp * cp) == 0 ? "" : fmt::format("value_heads {}", mixer_.value_heads);
  }

  std::vector<ShardedSize> sharded_sizes(const Model&) const override {
    return {{"key_heads", mixer_.key_heads}, {"value_heads", mixer_.value_heads}};
  }

  PartFormulas formulas(const Model&) const override {
    const std::string channels = "(2 * key_heads * key_dim + value_heads * value_dim)",
                      projections = "hidden * (" + channels + " + 2 * value_heads * value_dim + 2 * value_heads)";
    return {projections + " + convolution * " + channels + " + 2 * value_heads + value_dim", "",
            "2 * sequence * (" + projections +
                " + value_heads * (chunk * (3 * key_dim + 2 * value_dim) + 3 * key_dim * value_dim)) + value_heads * "
                "floor(sequence / chunk) * floor(2 * chunk * chunk * chunk / 3)"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t tp = shapes.tensor_parallel, values = mixer_.values() / tp;
    add_traded_input(operators, on, mixer_.projected() / tp);
    operators.push_back(delta_rule(on));
    operators.push_back(gated_norm(KernelClass::memory_bound, shapes.tokens * values));
    if (on.strategy.cp > 1) operators.push_back(heads_to_tokens(shapes.tokens, values));
    operators.push_back(mixer_output(on, values));
  }

  /// Gradients of the projections' output and of the convolution's; states and their gradients in 16 bits.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const GatedDelta share = share_of(mixer_, on);
    const DeltaRuleSizes sizes = rule_sizes(share, all_token_shapes(on.shapes, on.strategy.cp));
    return 2 * sizes.tokens * (share.projected() + share.channels()) + 2 * 2 * sizes.states();
  }

 private:
  /// Saved are the convolution's input and output, step and decay in fp32, and the inverse matrix of each chunk; the
  /// backward pass computes corrected keys and values and the states again.
  Operator delta_rule(const PartOnRank& on) const {
    const GatedDelta share = share_of(mixer_, on);
    const DeltaRuleSizes sizes = rule_sizes(share, all_token_shapes(on.shapes, on.strategy.cp));
    const std::int64_t channels = sizes.tokens * share.channels(), steps = sizes.tokens * sizes.value_heads;
    Operator result;
    result.name = "mixer_delta_rule";
    result.saved_bytes = 2 * sizes.tokens * share.projected() + 2 * channels + 8 * steps +
                         2 * sizes.chunks_of_heads() * sizes.chunk * sizes.chunk;
    convolve(result.forward, KernelClass::delta_rule, channels);
    result.forward.push_back(kernel(memory_bound("mixer_steps", 12 * steps)));
    append(result.forward, delta_rule_forward(sizes));
    append(result.backward, delta_rule_backward(sizes));
    result.backward.push_back(kernel(memory_bound("mixer_steps_gradient", 20 * steps)));
    convolve_backward(result.backward, KernelClass::delta_rule, channels);
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
