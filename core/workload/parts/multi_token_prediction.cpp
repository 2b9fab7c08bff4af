#include "core/workload/parts/multi_token_prediction.hpp"

#include <algorithm>

#include "core/workload/parts/embeddings.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::memory_bound;

constexpr BranchNames kNames{"", "", 0, 0};  // of a part without norm and residual of its own

/// Output features are sharded over tensor-parallel ranks, which gather the outputs of all; under sequence parallelism
/// each then takes its tokens (MultiTokenPredictionLayer._concat_embeddings()). Gathered are pieces of rows, which one
/// more kernel joins; gradients are cut in the same way.
Operator projection(const PartOnRank& on) {
  RankShapes shapes = on.shapes;
  shapes.overlap_tensor = false;  // its buffers are for the layers' own matrices
  const std::int64_t whole = 2 * shapes.tokens * shapes.hidden, ranks = shapes.tensor_parallel;
  Operator result =
      column_parallel(shapes, {"mtp_projection", 2 * shapes.hidden, shapes.hidden / ranks, false, on.dtype()});
  if (ranks == 1) return result;
  block_on(result.forward, "mtp_projection", Kind::all_gather, whole);
  result.forward.push_back(kernel(memory_bound("join_columns", 2 * whole)));
  OpList gradients;
  if (shapes.sequence_parallel) block_on(gradients, "mtp_projection", Kind::all_gather, whole);
  gradients.push_back(kernel(memory_bound("cut_columns", 2 * whole / ranks)));
  result.backward.insert(result.backward.begin(), gradients.begin(), gradients.end());
  return result;
}

class MtpInput final : public LayerPart {
 public:
  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override {
    return {2 * model.hidden * model.hidden, 2 * norm_parameters(model)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model& model) const override { return {{"hidden", model.hidden}}; }
  PartFormulas formulas(const Model& model) const override {
    return {model.norm == Norm::layer_norm ? "2 * hidden * hidden + 4 * hidden" : "2 * hidden * hidden + 2 * hidden",
            "", "4 * sequence * hidden * hidden"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t rows = on.shapes.sp_region_tokens, width = on.shapes.hidden;
    add_embedding(operators, on.model, on.shapes);
    operators.push_back(norm(kMtpStateNorm, on.model, on.shapes, rows, width));
    operators.push_back(norm("mtp_embedding_norm", on.model, on.shapes, rows, width));
    operators.push_back(elementwise("mtp_concatenation", rows * 2 * width, 4, 4, 0));
    operators.push_back(projection(on));
  }
  /// The gradient of both inputs of the projection, or that of the whole table, in 16 bits.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return 2 * std::max(2 * on.shapes.tokens * on.shapes.hidden, token_table_parameters(on.model, on.strategy.tp));
  }
};

class MtpOutput final : public LayerPart {
 public:
  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override { return {0, norm_parameters(model)}; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model& model) const override {
    return {model.norm == Norm::layer_norm ? "2 * hidden" : "hidden", "", "0"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(norm("mtp_final_norm", on.model, on.shapes, on.shapes.sp_region_tokens, on.shapes.hidden));
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }
};

}  // namespace

const LayerPart& mtp_input_part() {
  static const MtpInput part;
  return part;
}

const LayerPart& mtp_output_part() {
  static const MtpOutput part;
  return part;
}

}  // namespace manyworlds::core::workload
