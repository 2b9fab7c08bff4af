#include "experiments/nccl_logs/read_flight_recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/nccl_logs/flight_agreement.hpp"
#include "experiments/nccl_logs/logged_job.hpp"
#include "experiments/profiler_events/communication.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::size_t kMaxDumpBytes = std::size_t{1} << 30;

/// Puts together what ranks called, and counts what becomes of it.
class JobBuilder {
 public:
  JobBuilder(const std::vector<FlightDump>& dumps, const Agreement& agreement, std::uint32_t ranks, bool host_gaps)
      : dumps_(dumps), agreement_(agreement), host_gaps_(host_gaps) {
    job_.ranks.resize(ranks);
  }

  LoggedJob job() {
    for (const JobGroup& group : agreement_.groups) add(group);
    for (const FlightDump& dump : dumps_) add(dump);
    return std::move(job_);
  }

  std::int64_t without_bytes() const { return without_bytes_; }
  std::int64_t averaged() const { return averaged_; }
  std::int64_t rooted() const { return rooted_; }
  const std::map<std::string, std::int64_t>& not_simulated() const { return not_simulated_; }

 private:
  struct Kept {
    std::uint32_t group = 0;
    std::int64_t bytes = 0;
  };

  void add(const JobGroup& group) {
    const auto number = static_cast<std::uint32_t>(job_.groups.size());
    job_.groups.push_back({group.group.name, group.group.ranks, profiler::exposed_part(group.group.description)});
    for (const auto* calls : {&group.collectives, &group.transfers})
      for (const auto& of_member : *calls)
        for (const RecordedCall* call : of_member) kept_[call] = {number, call->bytes};
    // All-to-alls whose bytes differ by rank become even ones of the mean of their bytes.
    const std::size_t count = group.collectives.empty() ? 0 : group.collectives[0].size();
    for (std::size_t i = 0; i < count; ++i) {
      if (group.collectives[0][i]->kind != Kind::all_to_all) continue;
      double sum = 0;
      bool differ = false;
      for (const auto& of_member : group.collectives) {
        if (i >= of_member.size()) return;  // ranks do not agree
        sum += static_cast<double>(of_member[i]->bytes);
        differ |= of_member[i]->bytes != group.collectives[0][i]->bytes;
      }
      if (!differ) continue;
      ++averaged_;
      const auto mean = static_cast<std::int64_t>(sum / static_cast<double>(group.collectives.size()));
      for (const auto& of_member : group.collectives) kept_[of_member[i]].bytes = mean;
    }
  }

  void add(const FlightDump& dump) {
    std::vector<LoggedCall>& to = job_.ranks[dump.rank];
    std::map<const RecordedCall*, std::size_t> place;  // of transfers, in `to`
    std::int64_t last_ns = -1;
    for (const RecordedCall& call : dump.calls) {
      if (call.name == "coalesced") {
        join_batch(dump, call, place, to);
        continue;
      }
      const auto kept = kept_.find(&call);
      if (kept == kept_.end()) continue;
      if (!call.kind) {
        ++not_simulated_[core::line_text(call.name)];
        continue;
      }
      if (kept->second.bytes == 0) {
        ++without_bytes_;
        continue;
      }
      LoggedCall one;
      one.name = call.name;
      one.kind = *call.kind;
      one.bytes = kept->second.bytes;
      one.group = kept->second.group;
      one.receives = call.receives;
      rooted_ += one.kind == Kind::broadcast || one.kind == Kind::reduce ? 1 : 0;
      if (one.kind == Kind::send)
        one.peer =
            job_.groups[one.group].ranks[static_cast<std::size_t>(call.receives ? call.source : call.destination)];
      if (host_gaps_ && last_ns >= 0)
        one.gap_us = static_cast<double>(std::max<std::int64_t>(call.created_ns - last_ns, 0)) * 1e-3;
      last_ns = call.created_ns;
      if (one.kind == Kind::send) place.emplace(&call, to.size());
      to.push_back(std::move(one));
    }
  }

  /// Has the transfers that a coalesced call ends run side by side: those before it in its group with its numbers.
  void join_batch(const FlightDump& dump, const RecordedCall& end,
                  const std::map<const RecordedCall*, std::size_t>& place, std::vector<LoggedCall>& to) {
    const std::uint32_t batch = batches_++;
    for (const RecordedCall* call = &end; call != dump.calls.data();) {
      --call;
      if (call->group != end.group) continue;
      if (call->kind != Kind::send || call->sequence != end.sequence ||
          call->transfer_sequence != end.transfer_sequence)
        return;
      const auto known = place.find(call);
      if (known != place.end()) to[known->second].batch = batch;
    }
  }

  const std::vector<FlightDump>& dumps_;
  const Agreement& agreement_;
  const bool host_gaps_;
  LoggedJob job_;
  std::map<const RecordedCall*, Kept> kept_;
  std::map<std::string, std::int64_t> not_simulated_;  // by name
  std::int64_t without_bytes_ = 0, averaged_ = 0, rooted_ = 0;
  std::uint32_t batches_ = 0;
};

/// Returns the ranks of the job whose dumps are not there, and how many ranks there are.
std::vector<std::uint32_t> missing_dumps(const std::vector<FlightDump>& dumps, std::uint32_t& ranks) {
  std::set<std::uint32_t> given;
  ranks = 0;
  for (const FlightDump& dump : dumps) {
    given.insert(dump.rank);
    ranks = std::max(ranks, dump.rank + 1);
    for (const RecordedGroup& group : dump.groups)
      for (const std::uint32_t rank : group.ranks) ranks = std::max(ranks, rank + 1);
  }
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    if (!given.contains(rank)) missing.push_back(rank);
  return missing;
}

void tell_dumps(const std::vector<FlightDump>& dumps, const Agreement& agreement, std::vector<std::string>& to) {
  std::size_t calls = 0, wrapped = 0;
  for (const FlightDump& dump : dumps) calls += dump.calls.size(), wrapped += dump.has_wrapped() ? 1 : 0;
  to.push_back(fmt::format("{} calls of {} ranks in {} process groups", calls, dumps.size(), agreement.groups.size()));
  if (wrapped > 0)
    to.push_back(
        fmt::format("the dumps of {} ranks have lost their beginning (TORCH_FR_BUFFER_SIZE); {} calls that not "
                    "all ranks reach back to are left out",
                    wrapped, agreement.overwritten));
  for (const std::string& line : agreement.differences) to.push_back("differs: " + line);
  for (const std::string& line : agreement.unfinished) to.push_back("not completed: " + line);
  if (agreement.differences.empty()) to.emplace_back("all ranks called the same collectives in the same order");
}

/// Returns why a job has no programs; empty if it has.
std::string refusal(const Agreement& agreement, const std::vector<std::uint32_t>& missing,
                    const std::map<std::string, std::int64_t>& not_simulated) {
  if (!missing.empty())
    return fmt::format("the dump of rank{} {} is not there: give those of all ranks", missing.size() == 1 ? "" : "s",
                       programs::ranks_text(missing));
  if (!agreement.differences.empty())
    return fmt::format("its ranks did not call the same: {}{}", agreement.differences.front(),
                       agreement.differences.size() > 1
                           ? fmt::format("; {} more groups or pairs differ", agreement.differences.size() - 1)
                           : "");
  if (!not_simulated.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, count] : not_simulated) names.push_back(fmt::format("{} of {}", count, name));
    return fmt::format("has calls that are not simulated: {}", fmt::join(names, ", "));
  }
  return {};
}

}  // namespace

programs::Imported import_flight_dumps(const std::vector<FlightDump>& dumps, const FlightOptions& options) {
  if (dumps.empty()) throw InputError("no dump was given");
  const Agreement agreement = compare_dumps(dumps);
  std::uint32_t ranks = 0;
  const std::vector<std::uint32_t> missing = missing_dumps(dumps, ranks);
  JobBuilder builder(dumps, agreement, ranks, options.host_gaps);
  const LoggedJob job = builder.job();
  programs::Imported result;
  std::vector<std::string> account;
  tell_dumps(dumps, agreement, account);
  if (builder.without_bytes() > 0)
    account.push_back(fmt::format("{} calls without bytes take no time", builder.without_bytes()));
  const std::string why_not = refusal(agreement, missing, builder.not_simulated());
  if (why_not.empty()) {
    result = programs_of(job, dumps[0].file);
    std::vector<std::string>& notes = result.programs.notes;
    notes.emplace_back("Communication alone: nothing is known of kernels, nor of tokens.");
    notes.emplace_back(options.host_gaps ? "Each rank's calls are as far apart as the host recorded them."
                                         : "The host takes no time between its calls.");
    notes.emplace_back("Collectives of different groups run side by side, called in the order of their records.");
    if (builder.rooted() > 0)
      notes.emplace_back("Broadcasts and reduces have the first rank of their group as root, which is not recorded.");
    if (builder.averaged() > 0)
      notes.push_back(fmt::format("{} all-to-alls whose bytes differ by rank are even ones of the mean of their bytes.",
                                  builder.averaged()));
  }
  result.programs.name = std::filesystem::path(dumps[0].file).filename().string();
  result.programs.origin = "dumps of PyTorch's flight recorder";
  result.refused = why_not;
  result.account.insert(result.account.begin(), account.begin(), account.end());
  return result;
}

programs::Imported read_flight_recorder(const std::vector<std::string>& paths, const FlightOptions& options) {
  std::vector<FlightDump> dumps;
  std::map<std::uint32_t, std::string> by_rank;
  for (const std::string& path : paths) {
    const auto rank = rank_of_dump(path);
    if (!rank || *rank >= programs::kMaxRanks)
      throw InputError("does not have its rank at the end of its name, as nccl_trace_rank_3 does", path);
    const auto [known, is_new] = by_rank.emplace(*rank, path);
    if (!is_new) throw InputError(fmt::format("is of rank {}, as is {}", *rank, known->second), path);
    dumps.push_back(parse_flight_dump(import::read_table_text(path, kMaxDumpBytes), path));
    dumps.back().rank = *rank;
  }
  std::sort(dumps.begin(), dumps.end(), [](const FlightDump& a, const FlightDump& b) { return a.rank < b.rank; });
  return import_flight_dumps(dumps, options);
}

}  // namespace manyworlds::experiments::nccl_logs
