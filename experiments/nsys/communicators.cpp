#include "experiments/nsys/communicators.hpp"

#include <fmt/format.h>

#include <numeric>
#include <optional>
#include <string>

#include "experiments/profiler_traces/import_traces.hpp"

namespace manyworlds::experiments::nsys {
namespace {

using profiler::CommunicationArguments;
using profiler::kNone;
using profiler::RankTrace;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

/// Returns the largest communicator that all traces have a rank in, each another; nullptr if there is none.
const Communicator* world_of(const Communicators& communicators, std::size_t traces) {
  const Communicator* world = nullptr;
  for (const auto& [id, one] : communicators) {
    if (one.ranks < 1 || one.traces.size() != traces) continue;
    std::set<std::uint32_t> distinct;
    for (const auto& [rank, trace] : one.traces) distinct.insert(trace);
    if (distinct.size() == traces && (world == nullptr || one.ranks > world->ranks)) world = &one;
  }
  return world;
}

/// Sets the ranks that the names of files have, if all have one and each another.
bool number_by_files(std::vector<RankTrace>& traces) {
  std::set<std::int64_t> ranks;
  std::vector<std::int64_t> all;
  for (const RankTrace& trace : traces)
    if (const auto rank = profiler::rank_in_name(trace.file)) all.push_back(*rank), ranks.insert(*rank);
  if (all.size() != traces.size() || ranks.size() != traces.size()) return false;
  for (std::size_t i = 0; i < traces.size(); ++i) traces[i].rank = all[i];
  return true;
}

/// Returns the members of a communicator as ranks of the job; empty if they are not all known.
std::vector<std::uint32_t> members_of(const Communicator& one, const Communicator* world,
                                      const std::vector<RankTrace>& traces) {
  std::vector<std::uint32_t> members;
  if (&one == world) {
    members.resize(static_cast<std::size_t>(one.ranks));
    std::iota(members.begin(), members.end(), 0);
    return members;
  }
  const auto add = [&](std::uint32_t trace) { members.push_back(static_cast<std::uint32_t>(*traces[trace].rank)); };
  if (one.ranks >= 0) {
    if (std::ssize(one.traces) != one.ranks) return {};
    for (const auto& [rank, trace] : one.traces) add(trace);
  } else if (one.users.size() > 1) {
    for (const std::uint32_t trace : one.users) add(trace);
  }
  return members;
}

void set_members(CommunicationArguments& call, const std::vector<std::uint32_t>& members, bool is_gathered) {
  const auto in_job = [&](std::int64_t& rank) {
    if (rank >= 0)
      rank = rank < std::ssize(members) ? static_cast<std::int64_t>(members[static_cast<std::size_t>(rank)]) : -1;
  };
  in_job(call.source);
  in_job(call.destination);
  call.group_size = std::ssize(members);
  if (is_gathered && call.in > 0) call.out = call.in * std::ssize(members);
}

}  // namespace

ResolvedCommunicators resolve(const Communicators& communicators, std::vector<RankTrace>& traces) {
  ResolvedCommunicators result;
  const Communicator* world = world_of(communicators, traces.size());
  result.world_is_known = world != nullptr;
  if (world != nullptr) {
    for (const auto& [rank, trace] : world->traces) traces[trace].rank = rank, traces[trace].world = world->ranks;
  } else if (!number_by_files(traces)) {
    for (std::size_t i = 0; i < traces.size(); ++i) traces[i].rank = static_cast<std::int64_t>(i);
  }
  std::map<std::string, std::vector<std::uint32_t>> members;  // by the name of the group
  for (const auto& [id, one] : communicators) {
    std::vector<std::uint32_t> ranks = members_of(one, world, traces);
    if (one.users.empty()) continue;
    ++(ranks.empty() ? result.incomplete : one.ranks >= 0 ? result.created : result.inferred);
    if (!ranks.empty()) members.emplace(fmt::format("{:#x}", id), std::move(ranks));
  }
  for (RankTrace& trace : traces) {
    for (CommunicationArguments& call : trace.communications) {
      const auto known = call.group == kNone ? members.end() : members.find(trace.names[call.group]);
      if (known == members.end()) {
        call.source = call.destination = -1;
        continue;
      }
      trace.groups.emplace(known->first, known->second);
      const std::string& name = trace.names[call.collective];
      // What NCCL calls the size of these is one rank's part.
      if (call.in > kMaxBytes / std::ssize(known->second)) call.in = -1;
      if ((name == "reduce_scatter" || name == "alltoall") && call.in > 0) call.in *= std::ssize(known->second);
      set_members(call, known->second, name == "all_gather");
    }
  }
  return result;
}

}  // namespace manyworlds::experiments::nsys
