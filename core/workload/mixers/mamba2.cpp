// Mamba-2: a state-space mixer (Dao and Gu 2024, "Transformers are SSMs", section 7) as Megatron-Core's MambaMixer and
// mamba_ssm's kernels run it: one input projection, a short causal convolution, the scan by chunks (state-space
// duality, section 6), a gated norm and an output projection. Tensor parallelism shards heads and groups;
// under context parallelism ranks have all tokens of a share of these between both projections.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/mixers/mixer_parts.hpp"
#include "core/workload/mixers/scan_kernels.hpp"
#include "core/workload/mixers/token_exchange.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;

struct Mamba2 {
  std::int64_t heads = 0;
  std::int64_t head_dim = 64;
  std::int64_t state = 128;      // width of a head's state, for each element of the head
  std::int64_t groups = 1;       // heads of a group share the projections B and C of inputs to and from the state
  std::int64_t convolution = 4;  // tokens that the convolution sees
  std::int64_t chunk = 128;      // tokens that the scan takes at once

  std::int64_t width() const { return heads * head_dim; }
  /// Channels of the convolution: inputs, B and C.
  std::int64_t channels() const { return width() + 2 * groups * state; }
  /// Columns of the input projection: gates, the convolution's channels, and a step size for each head.
  std::int64_t projected() const { return width() + channels() + heads; }
};

const OptionTable<Mamba2>& mamba2_options() {
  static const OptionTable<Mamba2> table{
      option("heads", &Mamba2::heads, "heads", {1, 100'000}),
      option("head_dim", &Mamba2::head_dim, "width of a head", {1, 65'536}),
      option("state", &Mamba2::state, "width of the state", {1, 65'536}),
      option("groups", &Mamba2::groups, "groups of heads that share B and C", {1, 100'000}),
      option("convolution", &Mamba2::convolution, "tokens that the convolution sees", {1, 1'024}),
      option("chunk", &Mamba2::chunk, "tokens that the scan takes at once", {1, 65'536}, "tokens"),
  };
  return table;
}

/// Returns what of the mixer a rank computes, for all tokens of a sample: its heads, and their groups. A group of more
/// heads than those of one context-parallel rank is computed on several.
Mamba2 share_of(const Mamba2& mixer, const PartOnRank& on) {
  const std::int64_t ranks = on.strategy.tp * on.strategy.cp;
  Mamba2 share = mixer;
  share.heads /= ranks;
  share.groups = std::max<std::int64_t>(1, share.groups / ranks);
  return share;
}

/// Returns the sizes of the scan of `share`, on a rank that has all tokens.
StateSpaceSizes scan_sizes(const Mamba2& share, const RankShapes& shapes) {
  StateSpaceSizes sizes;
  sizes.tokens = shapes.tokens;
  sizes.chunk = std::min(share.chunk, shapes.sequence);
  sizes.chunks = shapes.samples * ((shapes.sequence + sizes.chunk - 1) / sizes.chunk);
  sizes.heads = share.heads;
  sizes.groups = share.groups;
  sizes.head_dim = share.head_dim;
  sizes.state = share.state;
  return sizes;
}

class Mamba2Part final : public Mixer {
 public:
  explicit Mamba2Part(const Mamba2& mixer) : mixer_(mixer) {}

  std::string missing_size(const Model&) const override { return mixer_.heads == 0 ? "heads" : ""; }

  /// Both projections; weights and biases of the convolution; step size, decay and skip of every head; the gated norm.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (mixer_.projected() + mixer_.width()) + (mixer_.convolution + 1) * mixer_.channels() +
                3 * mixer_.heads + mixer_.width(),
            0};
  }

  std::string undivided_size(std::int64_t tp, std::int64_t cp) const override {
    if (mixer_.heads % (tp * cp) != 0) return fmt::format("heads {}", mixer_.heads);
    const std::int64_t groups = mixer_.groups / tp;
    return groups % cp == 0 || cp % groups == 0 ? "" : fmt::format("groups {}", mixer_.groups);
  }

  std::vector<ShardedSize> sharded_sizes(const Model&) const override {
    return {{"heads", mixer_.heads}, {"groups", mixer_.groups}};
  }

  PartFormulas formulas(const Model&) const override {
    const std::string width = "heads * head_dim", projected = "(2 * heads * head_dim + 2 * groups * state + heads)";
    return {
        "hidden * " + projected + " + (convolution + 1) * (heads * head_dim + 2 * groups * state) + 3 * heads + " +
            width + " + " + width + " * hidden",
        "",
        "2 * sequence * (hidden * " + projected + " + " + width +
            " * hidden + 2 * state * heads * head_dim + chunk * groups * state) + sequence * chunk * heads * head_dim"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t tp = shapes.tensor_parallel, cp = on.strategy.cp, width = mixer_.width() / tp;
    add_mixer_input(operators, on, mixer_.projected() / tp);
    if (cp > 1) operators.push_back(to_heads(shapes, cp));
    operators.push_back(scan(on));
    if (cp > 1) operators.push_back(heads_to_tokens(shapes.tokens, width));
    operators.push_back(gated_norm(KernelClass::state_space, shapes.tokens * width));
    operators.push_back(mixer_output(on, width));
  }

  /// Gradients of the projection's output, the convolution's output again and its gradient, in 16 bits; states and
  /// their gradients in fp32.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const Mamba2 share = share_of(mixer_, on);
    const StateSpaceSizes sizes = scan_sizes(share, all_token_shapes(on.shapes, on.strategy.cp));
    return 2 * sizes.tokens * (share.projected() + 2 * share.channels()) + 2 * 4 * sizes.states();
  }

 private:
  /// Gates, inputs, B, C and steps, an all-to-all each; a group of heads on several ranks is sent to each of them.
  Operator to_heads(const RankShapes& shapes, std::int64_t cp) const {
    const std::int64_t tp = shapes.tensor_parallel, width = mixer_.width() / tp, groups = mixer_.groups / tp;
    const SentColumns of_groups{groups * mixer_.state, std::max<std::int64_t>(1, cp / groups)};
    return tokens_to_heads(shapes.tokens, {{width}, {width}, of_groups, of_groups, {mixer_.heads / tp}}, false);
  }

  /// The convolution and the scan of chunks. Saved are the projection's output and the scan's; the backward pass
  /// computes the convolution, the products of B and C, and the states again (mamba_ssm, ops/triton/ssd_combined.py,
  /// MambaSplitConv1dScanCombinedFn).
  Operator scan(const PartOnRank& on) const {
    const Mamba2 share = share_of(mixer_, on);
    const StateSpaceSizes sizes = scan_sizes(share, all_token_shapes(on.shapes, on.strategy.cp));
    const std::int64_t channels = sizes.tokens * share.channels();
    Operator result;
    result.name = "mixer_scan";
    result.saved_bytes = 2 * sizes.tokens * (share.projected() + share.width());
    convolve(result.forward, KernelClass::state_space, channels);
    append(result.forward, state_space_forward(sizes));
    convolve(result.backward, KernelClass::state_space, channels);
    append(result.backward, state_space_backward(sizes));
    convolve_backward(result.backward, KernelClass::state_space, channels);
    return result;
  }

  Mamba2 mixer_;
};

}  // namespace

PartType mamba2_type() {
  return {"mamba2",
          "a state-space mixer (Mamba-2)",
          mamba2_options().infos(),
          make_part<Mamba2Part, mamba2_options>,
          {{"heads", std::int64_t{16}},
           {"head_dim", std::int64_t{32}},
           {"state", std::int64_t{64}},
           {"groups", std::int64_t{8}}}};
}

}  // namespace manyworlds::core::workload
