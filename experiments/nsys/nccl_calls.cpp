#include "experiments/nsys/nccl_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "experiments/profiler_traces/launches.hpp"

namespace manyworlds::experiments::nsys {
namespace {

using profiler::CommunicationArguments;
using profiler::kNone;
using profiler::RankTrace;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

struct NamedRange {
  std::string_view text;
  NcclRange range;
};
constexpr std::array kRanges{NamedRange{"ncclGroupStart", NcclRange::group_start},
                             NamedRange{"ncclGroupEnd", NcclRange::group_end},
                             NamedRange{"ncclAllReduce", NcclRange::all_reduce},
                             NamedRange{"ncclAllGather", NcclRange::all_gather},
                             NamedRange{"ncclReduceScatter", NcclRange::reduce_scatter},
                             NamedRange{"ncclAlltoAll", NcclRange::all_to_all},
                             NamedRange{"ncclBroadcast", NcclRange::broadcast},
                             NamedRange{"ncclBcast", NcclRange::broadcast},
                             NamedRange{"ncclReduce", NcclRange::reduce},
                             NamedRange{"ncclSend", NcclRange::send},
                             NamedRange{"ncclRecv", NcclRange::receive}};

/// The names of collectives as profiler::named_collective() knows them.
const char* name_of(NcclRange range) {
  switch (range) {
    case NcclRange::all_reduce:
      return "allreduce";
    case NcclRange::all_gather:
      return "all_gather";
    case NcclRange::reduce_scatter:
      return "reduce_scatter";
    case NcclRange::all_to_all:
      return "alltoall";  // of one call; that of sends and receives is an all_to_all
    case NcclRange::broadcast:
      return "broadcast";
    case NcclRange::reduce:
      return "reduce";
    case NcclRange::send:
      return "send";
    default:
      return "recv";
  }
}

bool is_transfer(const NcclCall& call) {
  return call.range == NcclRange::send || call.range == NcclRange::receive;
}

/// The index of a text in the names of a trace.
std::uint32_t name_in(RankTrace& trace, std::unordered_map<std::string, std::uint32_t>& known,
                      const std::string& text) {
  const auto [found, is_new] = known.try_emplace(text, static_cast<std::uint32_t>(trace.names.size()));
  if (is_new) trace.names.push_back(text);
  return found->second;
}

/// Follows the calls of one process, thread by thread.
class Matcher {
 public:
  Matcher(const std::vector<std::uint32_t>& numbers, const std::vector<std::int64_t>& zero, std::uint32_t first_number,
          std::vector<RankTrace>& traces, Communicators& communicators)
      : numbers_(numbers),
        zero_(zero),
        first_number_(first_number),
        traces_(traces),
        communicators_(communicators),
        names_(traces.size()) {}

  void match(CallsOfThreads& calls) {
    for (const std::uint32_t number : numbers_) find_launches(number);
    for (auto& [thread, launches] : launches_) {
      std::vector<NcclCall>& of_thread = calls[thread];
      std::stable_sort(of_thread.begin(), of_thread.end(),
                       [](const NcclCall& a, const NcclCall& b) { return a.start < b.start; });
      std::stable_sort(launches.begin(), launches.end(),
                       [](const Launch& a, const Launch& b) { return a.time < b.time; });
      follow(of_thread, launches);
    }
  }

 private:
  /// A kernel of NCCL, and when its call began as the export has it.
  struct Launch {
    std::int64_t time = 0;
    std::uint32_t trace = 0, op = 0;
  };

  void find_launches(std::uint32_t number) {
    const RankTrace& trace = traces_[number];
    const profiler::Launches launches(trace);
    for (std::uint32_t op = 0; op < trace.ops.size(); ++op) {
      const std::uint32_t call = launches.call_of(op);
      if (!trace.ops[op].is_collective || call == kNone) continue;
      launches_[trace.threads[trace.calls[call].thread]].push_back(
          {trace.calls[call].start + zero_[number], number, op});
    }
  }

  void follow(const std::vector<NcclCall>& calls, const std::vector<Launch>& launches) {
    auto launch = launches.begin();
    depth_ = 0, until_ = INT64_MIN;
    pending_.clear(), launched_.clear();
    for (const NcclCall& call : calls) {
      for (; launch != launches.end() && launch->time < call.start; ++launch) take(*launch);
      begin(call);
    }
    for (; launch != launches.end(); ++launch) take(*launch);
    finish_batch();
  }

  void begin(const NcclCall& call) {
    if (call.range == NcclRange::group_end) {
      depth_ = std::max(depth_ - 1, 0);
      if (depth_ == 0) until_ = call.end;
      return;
    }
    if (depth_ == 0) finish_batch();
    if (call.range == NcclRange::group_start) {
      ++depth_;
      return;
    }
    pending_.push_back(&call);
    if (depth_ == 0) until_ = call.end;
  }

  void take(const Launch& launch) {
    if (depth_ == 0 && launch.time <= until_) launched_.push_back(launch);
  }

  /// Gives the kernels that were launched for the pending calls their arguments.
  void finish_batch() {
    const std::vector<const NcclCall*> calls = std::exchange(pending_, {});
    const std::vector<Launch> launched = std::exchange(launched_, {});
    until_ = INT64_MIN;
    if (calls.empty() || launched.empty()) return;
    std::set<std::uint32_t> devices;
    for (const Launch& one : launched) devices.insert(one.trace);
    if (devices.size() != launched.size()) return;  // several kernels of one GPU: of which call each is, nothing says
    const NcclCall& first = *calls.front();
    const bool are_alike = std::all_of(calls.begin(), calls.end(), [&](const NcclCall* call) {
      return call->range == first.range && call->communicator == first.communicator && call->other == first.other;
    });
    if (devices.size() > 1) {  // one thread calls a collective for each of its GPUs
      const bool are_same =
          std::all_of(calls.begin(), calls.end(), [&](const NcclCall* call) { return call->bytes == first.bytes; });
      if (!are_alike || !are_same || is_transfer(first) || calls.size() != devices.size()) return;
      for (const Launch& one : launched) set(one, first, first.bytes);
    } else if (calls.size() == 1) {
      set(launched.front(), first, first.bytes);
    } else if (are_alike && !is_transfer(first)) {
      std::int64_t bytes = 0;
      for (const NcclCall* call : calls) bytes = call->bytes < 0 || bytes < 0 ? -1 : bytes + call->bytes;
      set(launched.front(), first, bytes);
    } else {
      set_all_to_all(launched.front(), calls);
    }
  }

  CommunicationArguments& add(const Launch& launch, const NcclCall& call, const char* name) {
    RankTrace& trace = traces_[launch.trace];
    const auto named = [&](const std::string& text) { return name_in(trace, names_[launch.trace], text); };
    trace.ops[launch.op].communication = static_cast<std::uint32_t>(trace.communications.size());
    CommunicationArguments& to = trace.communications.emplace_back();
    to.collective = named(name);
    to.dtype = named("Byte");
    to.group = named(fmt::format("{:#x}", call.communicator));
    communicators_[call.communicator].users.insert(first_number_ + launch.trace);
    return to;
  }

  void set(const Launch& launch, const NcclCall& call, std::int64_t bytes) {
    if (bytes < 0 || bytes > kMaxBytes) return;
    CommunicationArguments& to = add(launch, call, name_of(call.range));
    to.in = bytes;
    if (call.range == NcclRange::send) to.destination = call.other;
    if (call.range == NcclRange::receive) to.source = call.other;
    if (call.range == NcclRange::broadcast || call.range == NcclRange::reduce) to.root = call.other;
  }

  /// A send to each rank of a communicator and a receive from each, in one kernel, is an all-to-all.
  void set_all_to_all(const Launch& launch, const std::vector<const NcclCall*>& calls) {
    const NcclCall& first = *calls.front();
    const auto known = communicators_.find(first.communicator);
    const std::int64_t ranks = known == communicators_.end() ? -1 : known->second.ranks;
    std::map<std::int64_t, std::int64_t> sends, receives;  // bytes by peer
    for (const NcclCall* call : calls) {
      if (!is_transfer(*call) || call->communicator != first.communicator || call->bytes < 0) return;
      (call->range == NcclRange::send ? sends : receives)[call->other] += call->bytes;
    }
    if (ranks < 2 || std::ssize(sends) != ranks || std::ssize(receives) != ranks || std::ssize(calls) != 2 * ranks ||
        sends.begin()->first != 0 || sends.rbegin()->first != ranks - 1)
      return;
    std::int64_t sum = 0;
    std::string split;
    for (const auto& [peer, bytes] : sends) {
      if (bytes > kMaxBytes - sum) return;
      sum += bytes;
      split += fmt::format("{}{}", split.empty() ? "[" : ", ", bytes);
    }
    CommunicationArguments& to = add(launch, first, "all_to_all");
    to.in = sum;
    to.in_split = name_in(traces_[launch.trace], names_[launch.trace], split + "]");
  }

  const std::vector<std::uint32_t>& numbers_;
  const std::vector<std::int64_t>& zero_;
  const std::uint32_t first_number_;
  std::vector<RankTrace>& traces_;
  Communicators& communicators_;
  std::vector<std::unordered_map<std::string, std::uint32_t>> names_;  // by trace: those that were added
  std::map<std::string, std::vector<Launch>> launches_;                // by thread
  // Of the thread that is followed.
  int depth_ = 0;                         // of groups that have begun
  std::int64_t until_ = 0;                // until when launches are of the pending calls
  std::vector<const NcclCall*> pending_;  // of one group, or one alone
  std::vector<Launch> launched_;          // for these
};

}  // namespace

std::optional<NcclRange> nccl_range(std::string_view text) {
  for (const NamedRange& one : kRanges)
    if (one.text == text) return one.range;
  return std::nullopt;
}

void match_calls(CallsOfThreads& calls, const std::vector<std::uint32_t>& numbers,
                 const std::vector<std::int64_t>& zero, std::uint32_t first_number, std::vector<RankTrace>& traces,
                 Communicators& communicators) {
  Matcher(numbers, zero, first_number, traces, communicators).match(calls);
}

}  // namespace manyworlds::experiments::nsys
