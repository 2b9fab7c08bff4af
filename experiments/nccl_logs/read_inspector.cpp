#include "experiments/nccl_logs/read_inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/nccl_logs/inspector_log.hpp"
#include "experiments/nccl_logs/logged_job.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::InputError;
using core::collective::Kind;

constexpr std::size_t kMaxLogBytes = std::size_t{1} << 30;

/// What the Inspector calls an operation, and whether it counts the bytes of one rank's part of it.
struct Operation {
  std::string_view name;
  Kind kind;
  bool counts_part;
};
constexpr Operation kOperations[] = {{"AllReduce", Kind::all_reduce, false},
                                     {"AllGather", Kind::all_gather, true},
                                     {"ReduceScatter", Kind::reduce_scatter, true},
                                     {"Broadcast", Kind::broadcast, false},
                                     {"Reduce", Kind::reduce, false},
                                     {"Send", Kind::send, false},
                                     {"Recv", Kind::send, false}};

const Operation* operation_of(const std::string& name) {
  const auto found = std::find_if(std::begin(kOperations), std::end(kOperations),
                                  [&](const Operation& one) { return one.name == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

/// Returns the rank of the job by process: as the communicator has them that is of them all.
std::vector<std::uint32_t> ranks_of_processes(const InspectorLog& log, bool& are_known) {
  const auto count = static_cast<std::int64_t>(log.processes.size());
  std::vector<std::uint32_t> ranks(log.processes.size());
  for (const auto& [id, communicator] : log.communicators) {
    if (communicator.ranks != count || std::ssize(communicator.processes) != count) continue;
    for (const auto& [rank, process] : communicator.processes) ranks[process] = static_cast<std::uint32_t>(rank);
    are_known = true;
    return ranks;
  }
  for (std::uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  are_known = false;
  return ranks;
}

/// What is told of a job besides its programs.
struct JobAccount {
  std::string refused;                        // why there is no job; empty: there is
  std::int64_t calls = 0, left_out = 0;       // operations, and others that not all of their ranks logged
  double us = 0;                              // that the operations took
  bool has_roots = false, is_verbose = true;  // whether there are rooted operations; whether all have their starts
  std::vector<std::string> unmatched_pairs;
};

/// A call that is kept, and where it stands among those of its rank.
struct Placed {
  std::int64_t start_us = 0;
  LoggedCall call;
};

class JobBuilder {
 public:
  JobBuilder(const InspectorLog& log, std::vector<std::uint32_t> ranks) : log_(log), ranks_(std::move(ranks)) {
    placed_.resize(ranks_.size());
  }

  LoggedJob job() {
    for (const auto& [id, communicator] : log_.communicators) add(id, communicator);
    LoggedJob job;
    job.groups = std::move(groups_);
    job.has_host_order = account_.is_verbose;
    job.ranks.resize(placed_.size());
    for (std::size_t rank = 0; rank < placed_.size(); ++rank) {
      if (account_.is_verbose)
        std::stable_sort(placed_[rank].begin(), placed_[rank].end(),
                         [](const Placed& a, const Placed& b) { return a.start_us < b.start_us; });
      for (Placed& one : placed_[rank]) job.ranks[rank].push_back(std::move(one.call));
    }
    return job;
  }

  const JobAccount& account() const { return account_; }

 private:
  void refuse(const std::string& why) {
    if (account_.refused.empty()) account_.refused = why;
  }

  void add(const std::string& id, const InspectedCommunicator& communicator) {
    const std::string name = core::line_text(id);
    if (std::ssize(communicator.processes) != communicator.ranks)
      return refuse(
          fmt::format("communicator {} has {} ranks, {} of which are in no log: give the logs of all processes", name,
                      communicator.ranks, communicator.ranks - std::ssize(communicator.processes)));
    const auto group = static_cast<std::uint32_t>(groups_.size());
    LoggedGroup& to = groups_.emplace_back();
    to.name = id;
    for (const auto& [rank, process] : communicator.processes) to.ranks.push_back(ranks_[process]);
    add_collectives(name, communicator, group);
    add_transfers(name, communicator, group);
  }

  void add_collectives(const std::string& name, const InspectedCommunicator& communicator, std::uint32_t group) {
    std::map<std::int64_t, std::vector<std::pair<std::int64_t, const InspectedCall*>>> by_number;
    for (const auto& [rank, calls] : communicator.calls)
      for (const InspectedCall& call : calls)
        if (call.peer < 0) by_number[call.number].emplace_back(rank, &call);
    for (const auto& [number, of_ranks] : by_number) {
      const InspectedCall& first = *of_ranks.front().second;
      for (const auto& [rank, call] : of_ranks)
        if (call->name != first.name || call->bytes != first.bytes)
          return refuse(
              fmt::format("collective {} of communicator {} is {} of {} bytes on its rank {}, and {} of {} on "
                          "rank {}",
                          number, name, core::line_text(first.name), first.bytes, of_ranks.front().first,
                          core::line_text(call->name), call->bytes, rank));
      if (std::ssize(of_ranks) != communicator.ranks) {
        account_.left_out += std::ssize(of_ranks);
        continue;
      }
      for (const auto& [rank, call] : of_ranks) place(communicator, group, rank, *call);
    }
  }

  void add_transfers(const std::string& name, const InspectedCommunicator& communicator, std::uint32_t group) {
    using Calls = std::vector<const InspectedCall*>;
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<Calls, Calls>> pairs;  // sends and receives
    for (const auto& [rank, calls] : communicator.calls)
      for (const InspectedCall& call : calls) {
        if (call.peer < 0 || call.peer == rank) continue;
        if (call.name == "Recv")
          pairs[{call.peer, rank}].second.push_back(&call);
        else
          pairs[{rank, call.peer}].first.push_back(&call);
      }
    std::map<const InspectedCall*, std::int64_t> kept;  // with its rank
    for (const auto& [ends, calls] : pairs) {
      const auto& [sends, receives] = calls;
      const bool match = std::equal(sends.begin(), sends.end(), receives.begin(), receives.end(),
                                    [](const auto* a, const auto* b) { return a->bytes == b->bytes; });
      if (!match) {
        account_.left_out += std::ssize(sends) + std::ssize(receives);
        account_.unmatched_pairs.push_back(fmt::format("{} to {} of communicator {}", ends.first, ends.second, name));
        continue;
      }
      for (const InspectedCall* call : sends) kept.emplace(call, ends.first);
      for (const InspectedCall* call : receives) kept.emplace(call, ends.second);
    }
    for (const auto& [rank, calls] : communicator.calls)
      for (const InspectedCall& call : calls)
        if (kept.contains(&call)) place(communicator, group, rank, call);
  }

  void place(const InspectedCommunicator& communicator, std::uint32_t group, std::int64_t rank,
             const InspectedCall& call) {
    const Operation* operation = operation_of(call.name);
    if (operation == nullptr)
      return refuse(fmt::format("has operations that are not simulated: {}", core::line_text(call.name)));
    if (call.bytes == 0) return;
    ++account_.calls, account_.us += call.us;
    account_.is_verbose &= call.start_us.has_value();
    Placed one;
    one.start_us = call.start_us.value_or(0);
    one.call.name = call.name;
    one.call.kind = operation->kind;
    one.call.bytes = operation->counts_part ? call.bytes * communicator.ranks : call.bytes;
    one.call.group = group;
    if (operation->kind == Kind::broadcast || operation->kind == Kind::reduce) account_.has_roots = true;
    if (operation->kind == Kind::send) {
      one.call.receives = call.name == "Recv";
      one.call.peer = ranks_[communicator.processes.at(call.peer)];
    }
    placed_[ranks_[communicator.processes.at(rank)]].push_back(std::move(one));
  }

  const InspectorLog& log_;
  const std::vector<std::uint32_t> ranks_;  // by process
  std::vector<LoggedGroup> groups_;
  std::vector<std::vector<Placed>> placed_;  // by rank
  JobAccount account_;
};

}  // namespace

programs::Imported import_inspector(const std::vector<std::pair<std::string, std::string_view>>& texts) {
  if (texts.empty()) throw InputError("no log was given");
  const InspectorLog log = parse_inspector_log(texts);
  bool are_known = false;
  JobBuilder builder(log, ranks_of_processes(log, are_known));
  const LoggedJob job = builder.job();
  const JobAccount& counts = builder.account();
  std::string refused = counts.refused;
  if (refused.empty() && counts.calls == 0) refused = "has no operation that all of its ranks logged";
  programs::Imported result;
  if (refused.empty()) {
    result = programs_of(job, texts.front().first);
    std::vector<std::string>& notes = result.programs.notes;
    notes.emplace_back("Communication alone: nothing is known of kernels, nor of tokens.");
    notes.emplace_back(
        counts.is_verbose
            ? "Collectives of different communicators run side by side, called in the order of their starts."
            : "Communicators do not wait for each other, as the log is not verbose.");
    if (counts.has_roots)
      notes.emplace_back("Broadcasts and reduces have the first rank of their group as root, which is not logged.");
  }
  result.programs.name = std::filesystem::path(texts.front().first).filename().string();
  result.programs.origin = "logs of NCCL's Inspector";
  result.refused = refused;
  std::vector<std::string> account;
  account.push_back(fmt::format(
      "{} operations of {} ranks in {} communicators, which took {:.3f} ms on each on average", counts.calls,
      log.processes.size(), log.communicators.size(), counts.us * 1e-3 / static_cast<double>(log.processes.size())));
  if (!are_known)
    account.emplace_back("no communicator has all ranks: they are numbered in the order in which the logs have them");
  if (counts.left_out > 0)
    account.push_back(
        fmt::format("{} operations are not in the logs of all their ranks, and left out", counts.left_out));
  if (!counts.unmatched_pairs.empty())
    account.push_back(fmt::format("sends do not match receives from rank {}{}", counts.unmatched_pairs.front(),
                                  counts.unmatched_pairs.size() > 1
                                      ? fmt::format(", nor of {} more pairs", counts.unmatched_pairs.size() - 1)
                                      : ""));
  account.emplace_back("`manyworlds validate --gpu GPU` compares the times in these logs with simulated ones");
  result.account.insert(result.account.begin(), account.begin(), account.end());
  return result;
}

programs::Imported read_inspector(const std::vector<std::string>& paths) {
  std::vector<std::string> bytes;
  for (const std::string& path : paths) bytes.push_back(import::read_table_text(path, kMaxLogBytes));
  std::vector<std::pair<std::string, std::string_view>> texts;
  for (std::size_t i = 0; i < paths.size(); ++i) texts.emplace_back(paths[i], bytes[i]);
  return import_inspector(texts);
}

}  // namespace manyworlds::experiments::nccl_logs
