// A model as a list of layers: blocks of parts, and which block each layer is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/workload/model/layer_part.hpp"
#include "core/workload/model/model.hpp"

namespace manyworlds::core::workload {

/// Norms of hidden states around a part f: f(norm(x)) + x, as most models since GPT-2; norm(f(x) + x), as BERT;
/// norm(f(norm(x))) + x, as Gemma 2; f(x) + x; or g f(norm(x) (1 + s) + t) + x with vectors of the sample, whose norm
/// has no weights, as DiT.
enum class BranchNorms : std::uint8_t { before, after, both, none, modulated };

/// How a part stands on the residual stream.
struct BranchOptions {
  BranchNorms norms = BranchNorms::before;
  bool residual = true;  // its input is added to its output

  bool has_norm_before() const { return norms == BranchNorms::before || norms == BranchNorms::both; }
  /// Norms that have weights.
  std::int64_t norm_count() const { return has_weights() ? (norms == BranchNorms::both ? 2 : 1) : 0; }
  bool has_weights() const { return norms != BranchNorms::none && norms != BranchNorms::modulated; }
};
const OptionTable<BranchOptions>& branch_options();

/// A part on a residual stream.
struct Branch {
  std::string type;  // name of its type
  BranchOptions options;
  std::shared_ptr<const LayerPart> part;
  std::shared_ptr<const Model> model;  // the model's options, and those that the part is given instead
};

struct Block {
  std::string name;
  std::vector<Branch> branches;  // in forward order
  bool has_experts() const;
};

struct Architecture {
  bool embedding = true;  // tokens are embedded before the first layer
  bool head = true;       // a final norm, the vocabulary layer and its loss are behind the last layer
  std::vector<Block> blocks;
  std::vector<std::uint32_t> block_by_layer;  // index into `blocks`

  /// Returns the block of a layer's kind.
  const Block& block_of(LayerKind kind) const { return blocks[kind.block - 1]; }
  /// Returns the options of the residual stream at the entrance of a layer; those of `model` for embedding and head.
  const Model& stream_of(const Model& model, LayerKind kind) const {
    return kind.block == 0 ? model : *block_of(kind).branches.front().model;
  }
};

inline bool has_embedding(const Model& model) {
  return !model.architecture || model.architecture->embedding;
}
inline bool has_head(const Model& model) {
  return !model.architecture || model.architecture->head;
}

/// Whether a part of the model has embedding tables.
bool has_tables(const Model& model);

}  // namespace manyworlds::core::workload
