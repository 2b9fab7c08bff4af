// Models whose layers are given as blocks of parts.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/workload/model/architecture.hpp"
#include "core/workload/parts/registry.hpp"

namespace manyworlds::core::workload {

/// A part of a type with options of its own, on a model's residual stream.
inline Branch branch_of(const Model& model, const std::string& type, const OptionSet& own = {},
                        const BranchOptions& options = {}) {
  return {type, options, find_part_type(type)->make(own), std::make_shared<const Model>(model)};
}

/// Returns the model with these blocks, and layers that are indices of them.
inline Model described(Model model, std::vector<std::vector<Branch>> blocks, std::vector<std::uint32_t> layers) {
  auto architecture = std::make_shared<Architecture>();
  for (std::vector<Branch>& branches : blocks)
    architecture->blocks.push_back({"block" + std::to_string(architecture->blocks.size()), std::move(branches)});
  architecture->block_by_layer = std::move(layers);
  model.layers = static_cast<std::int64_t>(architecture->block_by_layer.size());
  model.architecture = std::move(architecture);
  return model;
}

/// Every type of part of the registry with its example, and some with further options; all sizes are multiples of 8.
inline std::vector<std::pair<std::string, OptionSet>> parts_with_options() {
  std::vector<std::pair<std::string, OptionSet>> all;
  for (const PartType& type : part_types()) all.emplace_back(type.name, type.example);
  all.push_back({"attention", {{"causal", false}, {"sinks", true}, {"output_gate", "elements"}}});
  all.push_back({"attention", {{"qkv_biases", true}, {"output_gate", "heads"}, {"norm_weights", "all_heads"}}});
  all.push_back({"attention", {{"value_head_dim", std::int64_t{16}}}});
  all.push_back({"parallel_attention", {{"own_norm", true}, {"qkv_biases", true}}});
  all.push_back({"parallel_attention", {{"attention_biases", false}, {"norm_weights", "all_heads"}}});
  all.push_back({"parallel_block", {{"joined", false}}});
  all.push_back({"cross_attention", {{"keys", std::int64_t{64}}, {"whole", true}, {"norm_weights", "all_heads"}}});
  all.push_back({"experts", {{"latent", std::int64_t{64}}, {"correction_bias", true}, {"shared_gate", true}}});
  return all;
}

/// Whether ranks divide a part: not the ends of networks and parts of images, which all have whole.
inline bool is_divided(const std::string& type, const OptionSet& own, const Model& model) {
  const std::vector<ShardedSize> sizes = find_part_type(type)->make(own)->sharded_sizes(model);
  return std::any_of(sizes.begin(), sizes.end(), [](const ShardedSize& each) { return each.size > 1; });
}

}  // namespace manyworlds::core::workload
