#include "experiments/profiler_traces/import_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "experiments/profiler_events/event_kinds.hpp"
#include "experiments/profiler_traces/account.hpp"
#include "experiments/profiler_traces/communication_times.hpp"
#include "experiments/profiler_traces/launches.hpp"

namespace manyworlds::experiments::profiler {
namespace {

using core::InputError;

constexpr std::int64_t kMaxRank = 1 << 20;

void check_ranks(std::vector<RankTrace>& traces, const ProfilerTerms& terms) {
  std::map<std::int64_t, const RankTrace*> by_rank;
  const RankTrace* with_world = nullptr;
  for (RankTrace& trace : traces) {
    if (!trace.rank && traces.size() > 1) {
      trace.rank = rank_in_name(trace.file);
      if (!trace.rank)
        throw InputError(
            fmt::format("does not say its rank ({}), nor does its name, such as rank-0.json; one of several files must",
                        terms.rank),
            trace.file);
    }
    if (trace.rank && (*trace.rank >= kMaxRank || (trace.world && *trace.rank >= *trace.world)))
      throw InputError(fmt::format("is of rank {}{}", *trace.rank,
                                   trace.world ? fmt::format(" of {}, which are numbered from 0", *trace.world)
                                               : std::string(", which is beyond 1,048,575")),
                       trace.file);
    if (trace.rank) {
      const auto [known, is_new] = by_rank.emplace(*trace.rank, &trace);
      if (!is_new)
        throw InputError(
            fmt::format("is of rank {}, as is {}: give one file per rank", *trace.rank, known->second->file),
            trace.file);
    }
    if (!trace.world) continue;
    if (with_world != nullptr && *with_world->world != *trace.world)
      throw InputError(fmt::format("is of a job with {} ranks, {} of one with {}: give the traces of one job",
                                   *trace.world, with_world->file, *with_world->world),
                       trace.file);
    with_world = &trace;
  }
  std::stable_sort(traces.begin(), traces.end(),
                   [](const RankTrace& a, const RankTrace& b) { return a.rank.value_or(0) < b.rank.value_or(0); });
}

/// Returns the steps that a trace has, as a message lists them.
std::string steps_of(const RankTrace& trace, const ProfilerTerms& terms) {
  std::set<std::int64_t> numbers;
  for (const Span& step : trace.steps) numbers.insert(step.number);
  if (numbers.empty()) return fmt::format("it has no {}, or read all of it", terms.step);
  if (numbers.size() > 8)
    return fmt::format("it has {} from {} to {}", numbers.size(), *numbers.begin(), *numbers.rbegin());
  return fmt::format("it has {}", fmt::join(numbers, ", "));
}

/// Leaves of a trace what a step launched.
void keep_step(RankTrace& trace, std::int64_t number, const ProfilerTerms& terms) {
  const auto step =
      std::find_if(trace.steps.begin(), trace.steps.end(), [&](const Span& one) { return one.number == number; });
  if (step == trace.steps.end())
    throw InputError(fmt::format("has no step {}; {}", number, steps_of(trace, terms)), trace.file);
  const auto inside = [&](std::int64_t time) { return time >= step->start && time < step->end; };
  const Launches launches(trace);
  std::vector<DeviceOp> ops;
  for (std::uint32_t op = 0; op < trace.ops.size(); ++op)
    if (inside(launches.issued(op))) ops.push_back(trace.ops[op]);
  if (ops.empty())
    throw InputError(fmt::format("launches no operation of a device in step {}; {}", number, steps_of(trace, terms)),
                     trace.file);
  trace.ops = std::move(ops);
  std::erase_if(trace.calls, [&](const Call& call) { return !inside(call.start); });
  trace.begin = step->start;
}

/// Checks that a trace can stand for all ranks of its job.
void check_alike(const std::vector<RankTrace>& traces, const ProfilerTerms& terms) {
  if (traces.size() > 1)
    throw InputError("is one of several traces; where one stands for all ranks, give that alone", traces[1].file);
  if (!traces[0].world || *traces[0].world > kMaxRank || !traces[0].rank)
    throw InputError(
        fmt::format("does not say its rank, and of how many ({}), so that it cannot stand for them all", terms.rank),
        traces[0].file);
}

/// Returns, by trace, the time of its clock at which all begin.
std::vector<std::int64_t> begins(const std::vector<RankTrace>& traces, const std::vector<RankClock>& clocks) {
  const auto is_known = [&](std::size_t i) { return i == 0 || clocks[i].compared > 0; };
  std::int64_t first = INT64_MAX;  // on the clock of the first trace
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (is_known(i)) first = std::min(first, traces[i].base + traces[i].begin - clocks[i].ahead);
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < traces.size(); ++i)
    all.push_back(is_known(i) ? first + clocks[i].ahead - traces[i].base : traces[i].begin);
  return all;
}

}  // namespace

std::optional<std::int64_t> rank_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::size_t at = name.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  at += 4;
  if (at < name.size() && (name[at] == '-' || name[at] == '_')) ++at;
  std::int64_t rank = 0;
  std::size_t digits = 0;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && digits < 8; ++at, ++digits)
    rank = rank * 10 + (name[at] - '0');
  return digits > 0 ? std::optional(rank) : std::nullopt;
}

programs::Imported import_traces(std::vector<RankTrace> traces, const ReadOptions& options,
                                 const ProfilerTerms& terms) {
  if (traces.empty()) throw InputError("no trace was given");
  check_ranks(traces, terms);
  if (options.alike) check_alike(traces, terms);
  if (options.step)
    for (RankTrace& trace : traces) keep_step(trace, *options.step, terms);
  const MatchedCollectives collectives = match_collectives(traces, options.alike);
  std::vector<std::string> communication = communication_lines(traces);
  programs::Imported result;
  programs::StreamPrograms& to = result.programs;
  to.name = std::filesystem::path(traces[0].file).filename().string();
  to.origin = terms.origin;
  if (options.step) to.origin += fmt::format(", step {}", *options.step);
  to.gpu = catalog_gpu(traces[0].device_name);
  to.slowed = core::workload::SlowedKernels::none;
  programs::Names names(to.names);
  std::vector<RankAccount> accounts;
  const std::vector<std::int64_t> begin = begins(traces, collectives.clocks);
  for (std::uint32_t rank = 0; rank < traces.size(); ++rank) {
    AssembledRank one =
        assemble_rank(traces[rank], collectives.ops[rank], collectives, options.collectives, begin[rank], names);
    one.program.name = fmt::format("rank {}", traces[rank].rank.value_or(rank));
    to.programs.push_back(std::move(one.program));
    to.ranks.program_of_rank.push_back(rank);
    accounts.push_back(one.account);
    // Nothing else needs these any more, which are most of a trace.
    traces[rank].ops = std::vector<DeviceOp>();
    traces[rank].calls = std::vector<Call>();
    traces[rank].syncs = std::vector<std::pair<std::int64_t, SyncRecord>>();
  }
  if (options.alike) {
    to.ranks.program_of_rank.assign(static_cast<std::size_t>(*traces[0].world), 0);
    to.notes.push_back(
        fmt::format("All {} ranks do what rank {} did, in groups like its own.", *traces[0].world, *traces[0].rank));
  }
  if (options.collectives == Collectives::simulated)
    to.ranks.dimensions = collectives.dimensions, to.ranks.groups = collectives.groups;
  to.notes.emplace_back("Kernels have the times of the trace, beside the collectives that ran with them.");
  tell(traces, accounts, collectives, options.collectives, terms, result);
  std::move(communication.begin(), communication.end(), std::back_inserter(result.account));
  return result;
}

}  // namespace manyworlds::experiments::profiler
