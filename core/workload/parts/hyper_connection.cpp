// Hyper-connections (Zhu et al. 2024; manifold-constrained: Xie et al. 2025, arXiv 2512.24880): the residual stream is
// `streams` vectors a token. Before a part they are collapsed to one by weights of the token; behind it they are mixed
// by a matrix of the token, which is made doubly stochastic, and what the part returns is added to each with a weight.
// All weights of a token are one product of its streams (transformers, models/deepseek_v4/modeling_deepseek_v4.py
// @0197608, DeepseekV4HyperConnection and DeepseekV4HyperHead).
//
// The part stands before the one that it connects, which has no sum with its input, and counts both sides of it. What
// stages send (core/workload/strategy/stage_boundaries.cpp) and what full recomputation keeps of a layer are `streams`
// times as much as of other layers.
#include <fmt/format.h>

#include "core/workload/model/wide_stream.hpp"
#include "core/workload/operators/part.hpp"
#include "core/workload/operators/part_input.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

struct HyperConnection {
  std::int64_t streams = 4;
  bool collapse_only = false;
};

const OptionTable<HyperConnection>& hyper_connection_options() {
  static const OptionTable<HyperConnection> table{
      option("streams", &HyperConnection::streams, "vectors of a token on the residual stream", {2, 1'000}),
      option("collapse_only", &HyperConnection::collapse_only, "streams become one, as behind the last layer"),
  };
  return table;
}

class HyperConnectionPart final : public LayerPart, public WidensStream, public ReshapesStream {
 public:
  explicit HyperConnectionPart(const HyperConnection& options) : options_(options) {}

  BranchNames branch_names() const override { return {"hyper_norm", "hyper_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return ""; }
  /// A matrix, a shift for each weight, and a scale for each of the three kinds of weights.
  PartParameters parameters(const Model& model) const override {
    return {0, weights() * (options_.streams * model.hidden + 1) + (options_.collapse_only ? 1 : 3)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    const char* weights = options_.collapse_only ? "streams" : "(2 + streams) * streams";
    return {fmt::format("{} * (streams * hidden + 1) + {}", weights, options_.collapse_only ? 1 : 3), "",
            fmt::format("2 * sequence * {} * streams * hidden", weights)};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t tokens = shapes.sp_region_tokens, h = shapes.hidden, n = options_.streams;
    operators.push_back(replicated_linear(shapes, {"hyper_weights", n * h, weights(), false, compute::Dtype::bf16}));
    // Norm, sigmoids and the iterations over a matrix of the token, in fp32 and one kernel.
    operators.push_back(elementwise("hyper_balance", tokens * weights(), 8, 12, 4 * tokens * weights()));
    // Streams are read and one vector is written; backward streams and its gradient are read, and theirs are added to.
    operators.push_back(elementwise("hyper_collapse", tokens * h, 2 * n + 2, 6 * n + 2, 0));
    if (options_.collapse_only) return;
    // Streams and what the part returns are read, streams are written; backward both and gradients of streams are read,
    // gradients of both are written. Saved is what the part returns.
    operators.push_back(elementwise("hyper_mix", tokens * h, 4 * n + 2, 6 * n + 4, 2 * tokens * h));
  }

  std::int64_t streams_in_front() const override { return options_.streams; }
  std::int64_t streams_behind() const override { return options_.collapse_only ? 1 : options_.streams; }

  /// All streams, which the product with the weights of a token saves.
  PartInput input(const PartOnRank& on) const override {
    return {options_.streams * on.shapes.hidden_bytes(), options_.streams * on.shapes.boundary_bytes()};
  }

  /// Gradients of the streams, beside that of one of them.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return 2 * (options_.streams - 1) * on.shapes.sp_region_tokens * on.shapes.hidden;
  }

 private:
  std::int64_t weights() const {
    return options_.collapse_only ? options_.streams : (2 + options_.streams) * options_.streams;
  }

  HyperConnection options_;
};

}  // namespace

PartType hyper_connection_type() {
  return {"hyper_connection",
          "several residual streams, collapsed before the next part and mixed behind it (DeepSeek-V4)",
          hyper_connection_options().infos(),
          make_part<HyperConnectionPart, hyper_connection_options>,
          {},
          {{"norms", "none"}, {"residual", false}}};
}

}  // namespace manyworlds::core::workload
