// Ranks of one class run the same program: what tells them apart, beside the configuration that all have in common.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// A figure that all ranks of a stage share is 0: a stage alone names its class then.
struct RankClass {
  std::int64_t stage = 0;        // pipeline rank
  std::int64_t expert_rank = 0;  // its place among the ranks that share a layer's experts
  std::uint32_t machine = 0;     // the kind of machine that it sits on, where there are several

  RankClass() = default;
  RankClass(std::int64_t of_stage, std::int64_t of_expert_rank = 0, std::uint32_t of_machine = 0)
      : stage(of_stage), expert_rank(of_expert_rank), machine(of_machine) {}
  auto operator<=>(const RankClass&) const = default;
};

/// Those of a layout on machines of one kind, ascending.
std::vector<RankClass> rank_classes(const Model& model, const Strategy& strategy);

}  // namespace manyworlds::core::workload
