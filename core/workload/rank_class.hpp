// Ranks of one class run the same program: what tells them apart, beside the configuration that all have in common.
#pragma once

#include <compare>
#include <cstdint>

namespace manyworlds::core::workload {

/// A figure that all ranks of a stage share is 0: a stage alone names its class then.
struct RankClass {
  std::int64_t stage = 0;        // pipeline rank
  std::int64_t expert_rank = 0;  // its place among the ranks that share a layer's experts

  RankClass() = default;
  RankClass(std::int64_t of_stage, std::int64_t of_expert_rank = 0) : stage(of_stage), expert_rank(of_expert_rank) {}
  auto operator<=>(const RankClass&) const = default;
};

}  // namespace manyworlds::core::workload
