// A shard: one of N parts of a sweep that run apart and are joined afterwards. Which experiments are whose depends on
// the plan and N alone, so every process and every run finds the same parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farm/plan/plan.hpp"

namespace manyworlds::farm {

inline constexpr std::uint32_t kMostShards = 1'000'000;

struct Shard {
  std::uint32_t number = 1, count = 1;  // number from 1 to count, at most kMostShards
  bool whole() const { return count == 1; }
  bool operator==(const Shard&) const = default;
};

/// Reads "I/N". Throws InputError, saying what would be right.
Shard parse_shard(const std::string& text);

/// Where a shard runs when nobody says where: beside the run that it is a part of.
std::string shard_directory(const std::string& run_directory, const Shard& shard);

/// The shard (0 to count - 1) of every step of the plan. Steps that ask for the same collectives stay together as far
/// as that leaves shards of about equal cost; what collectives two shards share is computed in both.
std::vector<std::uint32_t> shards_of_steps(const Plan& plan, std::uint32_t count);

/// The part of a plan that `shard` computes: its steps and the collectives these may ask for. Experiments that do not
/// fit into memory are dealt out in turn. All the others' are marked as being elsewhere.
Plan part_of(Plan whole, const Shard& shard);

/// Expected work of all tasks.
double cost_of(const Plan& plan);

}  // namespace manyworlds::farm
