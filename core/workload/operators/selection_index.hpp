// An index that scores keys for each query and selects those that attention reads (DeepSeek-AI 2025, DeepSeek-V3.2,
// section 2.1). It learns from the distribution of attention alone: its inputs have no gradient from it (Megatron-LM,
// core/transformer/experimental_attention_variant/dsa.py).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "core/workload/operators/operator.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// An index over the keys of a sample, which are tokens or what tokens are compressed to.
struct SelectionIndex {
  std::int64_t heads = 0, width = 0;       // of the index
  std::int64_t keys = 0, selected = 0;     // that a query may see, and that are selected for it at most
  std::int64_t pairs = 0, read_pairs = 0;  // of a query and a key, of one head and sample: scored, and selected
};

/// A matrix of the index.
struct IndexMatrix {
  std::string_view name;
  std::int64_t in = 0, out = 0;
};

/// Adds products with matrices of the index, which have weight gradients alone.
void add_index_matrices(Operator& result, const RankShapes& shapes, std::initializer_list<IndexMatrix> matrices);

/// Returns the scores of all pairs, weighted and summed over the heads of the index; the selection, which reads them
/// twice; and the distribution of attention, with the heads of `shapes`, over the selected keys, summed over all heads,
/// which the loss compares.
Operator index_scores(const SelectionIndex& index, const RankShapes& shapes);

}  // namespace manyworlds::core::workload
