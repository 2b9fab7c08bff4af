#include "experiments/edits/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/base/error.hpp"
#include "core/collective/dag/kind.hpp"
#include "experiments/edits/select.hpp"
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

using Grows = std::function<bool(const core::workload::Dimension&)>;

bool is_of_data(const core::workload::Dimension& dimension) {
  return dimension.kind == DimensionKind::groups && dimension.exposed == StepPart::exposed_dp;
}

/// Returns whether collectives shard what is reduced over the members of dimensions that grow.
bool are_sharded(const StreamPrograms& all, const Grows& grows, const std::string& name) {
  bool sharded = false;
  for (const programs::RankProgram& program : all.programs)
    for (const programs::StreamOp& op : program.ops) {
      const auto* call = std::get_if<Communication>(&op.work);
      if (call == nullptr || !grows(all.ranks.dimensions[call->dimension])) continue;
      if (!call->split.bytes.empty() || call->kind == Kind::all_to_all)
        throw core::InputError(
            fmt::format("'{}' in dimension '{}' has other bytes in a larger group, and nobody knows which; those that "
                        "reduce and gather can grow",
                        all.names[op.name], all.ranks.dimensions[call->dimension].name),
            name);
      sharded = sharded || call->kind == Kind::reduce_scatter || call->kind == Kind::all_gather;
    }
  return sharded;
}

/// Where the copies of ranks are: one set of all ranks after the other, or the copies of a rank side by side.
struct Copies {
  std::size_t once = 0, factor = 1;
  bool side_by_side = false;
  std::uint32_t of(std::size_t number, std::size_t copy, std::size_t numbers) const {
    return static_cast<std::uint32_t>(side_by_side ? number * factor + copy : copy * numbers + number);
  }
};

/// Lets all ranks run several times; groups of dimensions that grow are of all copies, others are copied. Returns the
/// names of those that grow.
std::set<std::string> copy_ranks(GivenRanks& ranks, const Copies& copies, const Grows& grows) {
  const std::size_t gpus =
      ranks.gpu_of_rank.empty() ? 0 : *std::max_element(ranks.gpu_of_rank.begin(), ranks.gpu_of_rank.end()) + 1u;
  std::vector<std::uint32_t> program_of_rank(copies.once * copies.factor),
      gpu_of_rank(gpus > 0 ? program_of_rank.size() : 0);
  for (std::size_t copy = 0; copy < copies.factor; ++copy)
    for (std::size_t rank = 0; rank < copies.once; ++rank) {
      const std::uint32_t number = copies.of(rank, copy, copies.once);
      program_of_rank[number] = ranks.program_of_rank[rank];
      if (gpus > 0) gpu_of_rank[number] = copies.of(ranks.gpu_of_rank[rank], copy, gpus);
    }
  std::vector<GivenGroup> groups;
  std::set<std::string> grown;
  for (const GivenGroup& group : ranks.groups) {
    const bool grows_here = grows(ranks.dimensions[group.dimension]);
    if (grows_here) grown.insert(ranks.dimensions[group.dimension].name);
    const std::size_t first = groups.size();
    groups.resize(first + (grows_here ? 1 : copies.factor), {group.dimension, {}});
    const auto add = [&](std::size_t copy, std::uint32_t rank) {
      groups[first + (grows_here ? 0 : copy)].ranks.push_back(copies.of(rank, copy, copies.once));
    };
    if (copies.side_by_side)
      for (const std::uint32_t rank : group.ranks)
        for (std::size_t copy = 0; copy < copies.factor; ++copy) add(copy, rank);
    else
      for (std::size_t copy = 0; copy < copies.factor; ++copy)
        for (const std::uint32_t rank : group.ranks) add(copy, rank);
  }
  ranks.program_of_rank = std::move(program_of_rank);
  ranks.gpu_of_rank = std::move(gpu_of_rank);
  ranks.groups = std::move(groups);
  return grown;
}

Copies copies_of(const StreamPrograms& all, std::int64_t factor, const char* what, const std::string& name) {
  const std::size_t once = all.ranks.program_of_rank.size();
  if (factor > static_cast<std::int64_t>(programs::kMaxRanks / once))
    throw core::InputError(
        fmt::format("{} {} of {} ranks are more than {} ranks", factor, what, once, programs::kMaxRanks), name);
  return {once, static_cast<std::size_t>(factor), false};
}

}  // namespace

std::vector<std::string> add_replicas(StreamPrograms& all, std::int64_t replicas, const std::string& name) {
  if (replicas == 1) return {};
  GivenRanks& ranks = all.ranks;
  const Copies copies = copies_of(all, replicas, "replicas", name);
  const bool sharded = are_sharded(all, is_of_data, name);
  const std::set<std::string> grown = copy_ranks(ranks, copies, is_of_data);
  std::vector<std::string> assumed;
  if (grown.empty()) {
    if (std::any_of(ranks.dimensions.begin(), ranks.dimensions.end(),
                    [](const core::workload::Dimension& dimension) { return dimension.name == kReplicas; }))
      throw core::InputError(fmt::format("has a dimension '{}' already, which is not of data parallelism", kReplicas),
                             name);
    for (std::uint32_t rank = 0; rank < copies.once; ++rank) {
      GivenGroup group{static_cast<std::uint32_t>(ranks.dimensions.size()), {}};
      for (std::size_t copy = 0; copy < copies.factor; ++copy)
        group.ranks.push_back(copies.of(rank, copy, copies.once));
      ranks.groups.push_back(std::move(group));
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
  all.tokens_per_step *= static_cast<double>(replicas);
  return assumed;
}

std::string widen(StreamPrograms& all, const std::string& dimension, std::int64_t factor) {
  const Grows is_named = [&](const core::workload::Dimension& one) { return matches(dimension, one.name); };
  bool is_there = false;
  for (const core::workload::Dimension& one : all.ranks.dimensions) {
    if (!is_named(one)) continue;
    is_there = true;
    if (one.kind != DimensionKind::groups)
      throw core::InputError(
          fmt::format("dimension '{}' is of pairs, as between pipeline stages: what stages would run "
                      "is not in the program",
                      one.name));
  }
  if (!is_there) throw core::InputError(fmt::format("no dimension is '{}'", dimension));
  Copies copies = copies_of(all, factor, "times", "");
  copies.side_by_side = true;
  are_sharded(all, is_named, "");
  const std::set<std::string> grown = copy_ranks(all.ranks, copies, is_named);
  return fmt::format(
      "{} ranks -> {}; groups of {} are {} times as large, with the same bytes; kernels, allocations and "
      "all other collectives are those of the narrower job until edits change them",
      copies.once, copies.once * copies.factor, fmt::join(grown, ", "), factor);
}

}  // namespace manyworlds::experiments::edits
