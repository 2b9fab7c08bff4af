// A shard: one of N parts of a sweep that run independently and are merged afterwards. The assignment depends on the
// plan and N alone, so every process and every run computes the same parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farm/plan/plan.hpp"

namespace manyworlds::farm {

inline constexpr std::uint32_t kMaxShards = 1'000'000;

struct Shard {
  std::uint32_t number = 1, count = 1;  // number from 1 to count, at most kMaxShards
  bool whole() const { return count == 1; }
  bool operator==(const Shard&) const = default;
};

/// Reads "I/N". Throws InputError with the valid form.
Shard parse_shard(const std::string& text);

/// Returns the default directory of a shard: beside the directory of the whole run.
std::string shard_directory(const std::string& run_directory, const Shard& shard);

/// Returns the shard (0 to count - 1) of every step of the plan. Steps that ask for the same collectives stay together
/// as far as the shards' costs remain about equal; a collective that two shards need is computed in both.
std::vector<std::uint32_t> shards_of_steps(const Plan& plan, std::uint32_t count);

/// Returns the part of a plan that `shard` computes: its steps and the collectives they may ask for. Experiments that
/// do not fit into memory are assigned in turn. The experiments of other shards are marked.
Plan plan_of_shard(Plan whole, const Shard& shard);

/// Returns the expected work of all tasks.
double cost_of(const Plan& plan);

}  // namespace manyworlds::farm
