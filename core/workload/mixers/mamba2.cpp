// Mamba-2: a state-space mixer (Dao and Gu 2024, "Transformers are SSMs", section 7) as Megatron-Core's MambaMixer and
// mamba_ssm's kernels run it: one input projection, a short causal convolution, the scan by chunks (state-space
// duality, section 6), a gated norm and an output projection. Tensor parallelism shards heads and groups.
#include <algorithm>

#include "core/workload/mixers/mixer_parts.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::memory_bound;

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

/// Sizes of the scan on one rank.
struct ScanShapes {
  std::int64_t tokens, heads, groups, chunk, chunks;  // chunks of all samples

  ScanShapes(const Mamba2& mixer, const RankShapes& shapes)
      : tokens(shapes.tokens),
        heads(mixer.heads / shapes.tensor_parallel),
        groups(mixer.groups / shapes.tensor_parallel),
        chunk(std::min(mixer.chunk, shapes.sequence)),
        chunks(shapes.samples * ((shapes.sequence + chunk - 1) / chunk)) {}
};

class Mamba2Part final : public LayerPart {
 public:
  explicit Mamba2Part(const Mamba2& mixer) : mixer_(mixer) {}

  BranchNames branch_names() const override {
    return {"mixer_norm", "mixer_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::mixer; }

  std::string missing_size(const Model&) const override { return mixer_.heads == 0 ? "heads" : ""; }

  /// Both projections; weights and biases of the convolution; step size, decay and skip of every head; the gated norm.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (mixer_.projected() + mixer_.width()) + (mixer_.convolution + 1) * mixer_.channels() +
                3 * mixer_.heads + mixer_.width(),
            0};
  }

  bool shares_context() const override { return false; }  // the state passes from rank to rank, which is not built

  std::vector<ShardedSize> sharded_sizes(const Model&) const override {
    return {{"heads", mixer_.heads}, {"groups", mixer_.groups}};
  }

  PartFormulas formulas(const Model&) const override {
    const std::string width = "heads * head_dim", projected = "(2 * heads * head_dim + 2 * groups * state + heads)";
    return {"hidden * " + projected + " + (convolution + 1) * (heads * head_dim + 2 * groups * state) + 3 * heads + " +
                width + " + " + width + " * hidden",
            "",
            "2 * sequence * (hidden * " + projected + " + " + width +
                " * hidden + 2 * state * heads * head_dim + chunk * (groups * state + heads * head_dim))"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t width = mixer_.width() / shapes.tensor_parallel;
    operators.push_back(column_parallel(
        shapes, {"mixer_in", shapes.hidden, mixer_.projected() / shapes.tensor_parallel, false, on.dtype()}));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.push_back(scan(shapes));
    operators.push_back(gated_norm(shapes.tokens * width));
    operators.push_back(row_parallel(shapes, {"mixer_out", width, shapes.hidden, false, on.dtype()}));
  }

  /// Gradients of the projection's output, the convolution's output again and its gradient, in 16 bits; states and
  /// their gradients in fp32.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const ScanShapes scan(mixer_, on.shapes);
    const std::int64_t tp = on.shapes.tensor_parallel;
    return 2 * scan.tokens * (mixer_.projected() + 2 * mixer_.channels()) / tp +
           2 * 4 * scan.chunks * scan.heads * mixer_.head_dim * mixer_.state;
  }

 private:
  /// The convolution and the scan of chunks. Saved are the projection's output and the scan's; the backward pass
  /// computes the convolution, the products of B and C, and the states again (mamba_ssm, ops/triton/ssd_combined.py,
  /// MambaSplitConv1dScanCombinedFn).
  Operator scan(const RankShapes& shapes) const {
    const ScanShapes scan(mixer_, shapes);
    const std::int64_t tp = shapes.tensor_parallel, p = mixer_.head_dim, n = mixer_.state, q = scan.chunk;
    const std::int64_t by_head = scan.chunks * scan.heads, by_group = scan.chunks * scan.groups;
    const std::int64_t channels = scan.tokens * mixer_.channels() / tp, states = by_head * p * n;
    Operator result;
    result.name = "mixer_scan";
    result.saved_bytes = 2 * scan.tokens * (mixer_.projected() + mixer_.width()) / tp;
    const auto again = [&](OpList& ops) {
      convolve(ops, channels);
      ops.push_back(kernel(memory_bound("mixer_steps", 10 * scan.tokens * scan.heads)));
      ops.push_back(kernel(batched_gemm("mixer_chunk_states", p, n, q, by_head)));
      ops.push_back(kernel(memory_bound("mixer_pass_states", 8 * states)));
      ops.push_back(kernel(batched_gemm("mixer_chunk_products", q, q, n, by_group)));
    };
    again(result.forward);
    // Inside a chunk by the products of B and C, and from the state before it.
    result.forward.push_back(kernel(batched_gemm("mixer_chunk_scan", q, p, q + n, by_head)));

    again(result.backward);
    OpList& back = result.backward;
    back.push_back(kernel(batched_gemm("mixer_state_gradient", n, p, q, by_head)));
    back.push_back(kernel(memory_bound("mixer_pass_state_gradients", 12 * states)));
    back.push_back(kernel(batched_gemm("mixer_input_gradient", q, p, q + n, by_head)));
    back.push_back(kernel(batched_gemm("mixer_b_gradient", q, n, p, by_head)));
    back.push_back(kernel(batched_gemm("mixer_c_gradient", q, n, p, by_head)));
    back.push_back(kernel(batched_gemm("mixer_product_gradient", q, q, p, by_head)));
    for (const char* name : {"mixer_b_of_products", "mixer_c_of_products"})
      back.push_back(kernel(batched_gemm(name, q, n, q, by_group)));
    back.push_back(kernel(memory_bound("mixer_steps_gradient", 16 * scan.tokens * scan.heads)));
    convolve_backward(back, channels);
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
