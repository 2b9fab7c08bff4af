#include "core/workload/model/architecture.hpp"

#include <algorithm>

namespace manyworlds::core::workload {

const OptionTable<BranchOptions>& branch_options() {
  static const OptionTable<BranchOptions> table{
      choice("norms", &BranchOptions::norms, {"before", "after", "both", "none", "modulated"},
             "norms before the part, after the sum with its input, before and after the part, or one before it without "
             "weights that is scaled and shifted, with a gate behind the part"),
      option("residual", &BranchOptions::residual, "the part's input is added to its output"),
  };
  return table;
}

bool Block::has_experts() const {
  return std::any_of(branches.begin(), branches.end(), [](const Branch& each) { return each.part->has_experts(); });
}

bool has_tables(const Model& model) {
  if (!model.architecture) return false;
  for (const Block& block : model.architecture->blocks)
    for (const Branch& branch : block.branches)
      if (branch.part->tables() != nullptr) return true;
  return false;
}

LayerKind Model::described_kind(std::int64_t index) const {
  const auto layer = static_cast<std::size_t>(index);
  const std::uint32_t block = architecture->block_by_layer.at(layer);
  const bool routed = architecture->blocks[block].has_experts();
  return {routed, false, routed && routing ? routing->load_by_layer[layer] : 0, block + 1};
}

}  // namespace manyworlds::core::workload
