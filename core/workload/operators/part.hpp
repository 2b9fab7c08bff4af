// What types of parts share: the rank that computes a part, and rows of the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/options.hpp"
#include "core/workload/model/layer_part.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// A part on one rank.
struct PartOnRank {
  const Model& model;  // with what the part is given instead
  Strategy strategy;
  LayerKind kind;                // of its layer, as far as it concerns the part
  std::int64_t expert_rank = 0;  // position among the ranks that share the layer's experts
  RankShapes shapes;             // of the residual stream

  PartOnRank(const Model& part_model, Strategy rank_strategy, LayerKind layer_kind, std::int64_t rank)
      : model(part_model),
        strategy(std::move(rank_strategy)),
        kind(layer_kind),
        expert_rank(rank),
        shapes(stream_shapes(part_model, strategy)) {}
  compute::Dtype dtype() const { return dtype_of(strategy.stack.precision); }
};

/// A type of part under the name that architectures give it.
struct PartType {
  std::string name;
  std::string help;
  std::vector<OptionInfo> options;  // its own; besides, a part can be given every option of the model
  std::shared_ptr<const LayerPart> (*make)(const OptionSet& own);
  OptionSet example;             // own options that have no default, as multiples of 8
  OptionSet branch = {};         // how it stands on the residual stream, where that is not as most parts do
  OptionSet example_model = {};  // options that a model needs besides
};

/// Makes a part that has no options of its own.
template <class Part>
std::shared_ptr<const LayerPart> make_part(const OptionSet&) {
  return std::make_shared<Part>();
}

/// Makes a part of its options, which the function `table` has a table of.
template <class Part, auto table>
std::shared_ptr<const LayerPart> make_part(const OptionSet& own) {
  return std::make_shared<Part>(table().make(own));
}

}  // namespace manyworlds::core::workload
