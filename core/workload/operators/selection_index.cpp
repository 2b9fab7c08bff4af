#include "core/workload/operators/selection_index.hpp"

#include "core/workload/operators/operator_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

/// Pairs of a query and a key that a kernel computes.
enum class PairsOf : std::uint8_t { all, selected };

/// Returns a kernel over pairs, with the columns of both its products.
WorkItem over_pairs(std::string_view name, const SelectionIndex& index, const RankShapes& shapes, PairsOf pairs,
                    std::int64_t heads, std::int64_t columns, std::int64_t others) {
  const bool selected = pairs == PairsOf::selected;
  return kernel(compute::fused_attention(
      name, compute::KernelClass::flash2_forward,
      {shapes.sequence, index.keys, selected ? index.read_pairs : index.pairs, columns, others, shapes.samples * heads,
       shapes.samples, selected && index.selected < index.keys ? index.selected : 0}));
}

}  // namespace

void add_index_matrices(Operator& result, const RankShapes& shapes, std::initializer_list<IndexMatrix> matrices) {
  for (const IndexMatrix& each : matrices) {
    result.forward.push_back(kernel(compute::gemm(each.name, shapes.tokens, each.out, each.in)));
    add_weight_gradient(result.backward, shapes, compute::weight_gradient(each.name, each.out, each.in, shapes.tokens));
    result.weight_gradient_input_bytes += 2 * shapes.tokens * (each.in + each.out);
  }
}

Operator index_scores(const SelectionIndex& index, const RankShapes& shapes) {
  const std::int64_t selections = shapes.tokens * index.selected;
  Operator result;
  result.name = "index_scores";
  OpList& ahead = result.forward;
  ahead.push_back(over_pairs("index_scores", index, shapes, PairsOf::all, index.heads, index.width, 0));
  ahead.push_back(kernel(memory_bound("index_select", 12 * shapes.samples * index.pairs + 4 * selections)));
  ahead.push_back(over_pairs("index_target", index, shapes, PairsOf::selected, shapes.heads, shapes.head_dim, 0));
  if (shapes.tensor_parallel > 1) block_on(ahead, "index_target", collective::Kind::all_reduce, 4 * selections);
  ahead.push_back(kernel(memory_bound("index_loss", 12 * selections)));
  // Scores of selected pairs again, and both gradients.
  result.backward.push_back(
      over_pairs("index_gradient", index, shapes, PairsOf::selected, index.heads, index.width, 2 * index.width));
  result.saved_bytes = 4 * selections;  // gradients of the scores
  return result;
}

}  // namespace manyworlds::core::workload
