// Classes of ranks that run the same program: what distinguishes ranks of one configuration.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Members whose value does not distinguish the ranks of a stage are 0: then the stage alone identifies the class.
struct RankClass {
  std::int64_t stage = 0;          // pipeline rank
  std::int64_t expert_rank = 0;    // position among the ranks that share a layer's experts
  std::uint32_t machine_kind = 0;  // kind of the rank's machine, in a heterogeneous cluster

  RankClass() = default;
  RankClass(std::int64_t stage_number, std::int64_t expert_rank_number = 0, std::uint32_t machine_kind_number = 0)
      : stage(stage_number), expert_rank(expert_rank_number), machine_kind(machine_kind_number) {}
  auto operator<=>(const RankClass&) const = default;
};

/// Returns the classes on machines of one kind, ascending.
std::vector<RankClass> rank_classes(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
