#include "experiments/edits/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/collective/dag/kind.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::edits {
namespace {

using core::collective::Kind;
using core::workload::DimensionKind;
using core::workload::GivenGroup;
using core::workload::GivenRanks;
using core::workload::StepPart;
using programs::Communication;
using programs::StreamPrograms;

constexpr const char* kReplicas = "replicas";

bool grows(const core::workload::Dimension& dimension) {
  return dimension.kind == DimensionKind::groups && dimension.exposed == StepPart::exposed_dp;
}

/// Returns whether collectives shard what is reduced over the members of dimensions that grow.
bool are_sharded(const StreamPrograms& all, const std::string& name) {
  bool sharded = false;
  for (const programs::RankProgram& program : all.programs)
    for (const programs::StreamOp& op : program.ops) {
      const auto* call = std::get_if<Communication>(&op.work);
      if (call == nullptr || !grows(all.ranks.dimensions[call->dimension])) continue;
      if (!call->split.bytes.empty() || call->kind == Kind::all_to_all)
        throw core::InputError(
            fmt::format("'{}' in dimension '{}' has other bytes in a larger group, and nobody knows which; replicas "
                        "are of dimensions that reduce and gather",
                        all.names[op.name], all.ranks.dimensions[call->dimension].name),
            name);
      sharded = sharded || call->kind == Kind::reduce_scatter || call->kind == Kind::all_gather;
    }
  return sharded;
}

}  // namespace

std::vector<std::string> add_replicas(StreamPrograms& all, std::int64_t replicas, const std::string& name) {
  if (replicas == 1) return {};
  GivenRanks& ranks = all.ranks;
  const std::size_t once = ranks.program_of_rank.size();
  if (replicas > static_cast<std::int64_t>(programs::kMaxRanks / once))
    throw core::InputError(
        fmt::format("{} replicas of {} ranks are more than {} ranks", replicas, once, programs::kMaxRanks), name);
  const bool sharded = are_sharded(all, name);
  const std::size_t gpus =
      ranks.gpu_of_rank.empty() ? 0 : *std::max_element(ranks.gpu_of_rank.begin(), ranks.gpu_of_rank.end()) + 1u;
  for (std::size_t copy = 1; copy < static_cast<std::size_t>(replicas); ++copy)
    for (std::size_t rank = 0; rank < once; ++rank) {
      ranks.program_of_rank.push_back(ranks.program_of_rank[rank]);
      if (gpus > 0) ranks.gpu_of_rank.push_back(static_cast<std::uint32_t>(copy * gpus + ranks.gpu_of_rank[rank]));
    }
  const auto copied = [&](const std::vector<std::uint32_t>& members, std::size_t copy) {
    std::vector<std::uint32_t> result;
    for (const std::uint32_t rank : members) result.push_back(static_cast<std::uint32_t>(copy * once + rank));
    return result;
  };
  std::vector<GivenGroup> groups;
  std::set<std::string> grown;
  for (const GivenGroup& group : ranks.groups) {
    const bool is_one = grows(ranks.dimensions[group.dimension]);
    if (is_one) grown.insert(ranks.dimensions[group.dimension].name);
    for (std::size_t copy = 0; copy < static_cast<std::size_t>(replicas); ++copy) {
      const std::vector<std::uint32_t> members = copied(group.ranks, copy);
      if (copy == 0 || !is_one)
        groups.push_back({group.dimension, members});
      else
        groups.back().ranks.insert(groups.back().ranks.end(), members.begin(), members.end());
    }
  }
  std::vector<std::string> assumed;
  if (grown.empty()) {
    if (std::any_of(ranks.dimensions.begin(), ranks.dimensions.end(),
                    [](const core::workload::Dimension& dimension) { return dimension.name == kReplicas; }))
      throw core::InputError(fmt::format("has a dimension '{}' already, which is not of data parallelism", kReplicas),
                             name);
    for (std::uint32_t rank = 0; rank < once; ++rank) {
      GivenGroup group{static_cast<std::uint32_t>(ranks.dimensions.size()), {}};
      for (std::size_t copy = 0; copy < static_cast<std::size_t>(replicas); ++copy)
        group.ranks.push_back(static_cast<std::uint32_t>(copy * once + rank));
      groups.push_back(std::move(group));
    }
    ranks.dimensions.push_back({kReplicas, DimensionKind::groups, StepPart::exposed_dp});
    assumed.push_back(
        fmt::format("{} replicas do not communicate, as no dimension is of data parallelism; edits may "
                    "insert collectives in '{}'",
                    replicas, kReplicas));
  } else {
    assumed.push_back(
        fmt::format("groups of {} are {} times as large, with the same bytes", fmt::join(grown, ", "), replicas));
  }
  if (sharded)
    assumed.push_back(
        "kernels on shards, such as an optimizer's, take the time they took on the shards of the fewer "
        "replicas");
  ranks.groups = std::move(groups);
  all.tokens_per_step *= static_cast<double>(replicas);
  return assumed;
}

}  // namespace manyworlds::experiments::edits
