#include "experiments/nccl_logs/inspector_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/error.hpp"
#include "experiments/nccl/nccl_inspector.hpp"

namespace manyworlds::experiments::nccl_logs {
namespace {

using core::InputError;
using import::JsonView;

constexpr std::int64_t kMaxRanks = 1 << 20, kMaxBytes = std::int64_t{1} << 45;

/// An object of a log before it is known which processes have several GPUs.
struct Logged {
  std::string communicator, host;
  std::int64_t process = 0, rank = 0, ranks = 0;
  InspectedCall call;
};

Logged logged_of(const JsonView& object, const JsonView& performance, bool is_transfer) {
  const auto member = [&](const char* of_transfer, const char* of_collective) {
    return performance.at(is_transfer ? of_transfer : of_collective);
  };
  Logged one;
  const JsonView header = object.at("header");
  one.communicator = header.at("id").text();
  one.ranks = header.at("n_ranks").whole(1, kMaxRanks);
  one.rank = header.at("rank").whole(0, one.ranks - 1);
  if (const auto metadata = object.find("metadata")) {
    if (const auto host = metadata->find("hostname")) one.host = host->text();
    if (const auto process = metadata->find("pid")) one.process = process->whole();
  }
  one.call.name = member("p2p", "coll").text();
  one.call.number = member("p2p_sn", "coll_sn").whole();
  one.call.bytes = member("p2p_msg_size_bytes", "coll_msg_size_bytes").whole(0, kMaxBytes);
  one.call.us = member("p2p_exec_time_us", "coll_exec_time_us").number(0);
  if (is_transfer) one.call.peer = performance.at("p2p_peer").whole(0, one.ranks - 1);
  if (const auto times = performance.find("event_trace_ts"))
    if (const auto start = times->find(is_transfer ? "p2p_start_ts" : "coll_start_ts"))
      one.call.start_us = start->whole();
  return one;
}

class LogBuilder {
 public:
  void add(Logged one) {
    ranks_of_process_[{one.communicator, one.host, one.process}].insert(one.rank);
    all_.push_back(std::move(one));
  }

  InspectorLog log() {
    InspectorLog result;
    const bool several = has_several_gpus();
    std::map<InspectedProcess, std::uint32_t> numbers;
    for (Logged& one : all_) {
      const InspectedProcess process{one.host, one.process, several ? one.rank : 0};
      const auto [known, is_new] = numbers.try_emplace(process, static_cast<std::uint32_t>(result.processes.size()));
      if (is_new) result.processes.push_back(process);
      InspectedCommunicator& to = result.communicators[one.communicator];
      if (to.ranks != 0 && to.ranks != one.ranks)
        throw InputError(
            fmt::format("has communicator {} with {} ranks, and with {}", one.communicator, to.ranks, one.ranks));
      to.ranks = one.ranks;
      const auto [of_rank, is_first] = to.processes.emplace(one.rank, known->second);
      if (!is_first && of_rank->second != known->second)
        throw InputError(
            fmt::format("has rank {} of communicator {} twice, of different processes", one.rank, one.communicator));
      to.calls[one.rank].push_back(std::move(one.call));
    }
    for (auto& [id, communicator] : result.communicators)
      for (auto& [rank, calls] : communicator.calls)
        std::stable_sort(calls.begin(), calls.end(), [](const InspectedCall& a, const InspectedCall& b) {
          return std::pair(a.peer >= 0, a.number) < std::pair(b.peer >= 0, b.number);
        });
    return result;
  }

 private:
  bool has_several_gpus() const {
    std::set<std::string> communicators;
    bool several = false;
    for (const auto& [process, ranks] : ranks_of_process_) {
      communicators.insert(std::get<0>(process));
      several |= ranks.size() > 1;
    }
    if (several && communicators.size() > 1)
      throw InputError(
          "has processes with several GPUs in several communicators, so that nothing tells which GPU is which; log "
          "with a process for each GPU");
    return several;
  }

  std::vector<Logged> all_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::set<std::int64_t>> ranks_of_process_;
};

}  // namespace

InspectorLog parse_inspector_log(const std::vector<std::pair<std::string, std::string_view>>& texts) {
  LogBuilder builder;
  for (const auto& [name, text] : texts) {
    std::size_t found = 0;
    import::for_each_inspector_object(text, name, [&](const JsonView& object, int) {
      const auto collective = object.find("coll_perf"), transfer = object.find("p2p_perf");
    if (!collective && !transfer) return;
    builder.add(logged_of(object, collective ? *collective : *transfer, !collective));
    ++found;
  });
  if (found == 0) throw InputError("has no operation ('coll_perf' or 'p2p_perf') of NCCL's Inspector", name);
}
try {
  return builder.log();
} catch (const InputError& error) {
  throw InputError(error.what(), texts.front().first);
}
}  // namespace manyworlds::experiments::nccl_logs

}  // namespace manyworlds::experiments::nccl_logs
