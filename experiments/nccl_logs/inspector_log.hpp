// What NCCL's Inspector logs of each operation (NVIDIA/nccl, plugins/profiler/inspector), by communicator and rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manyworlds::experiments::nccl_logs {

struct InspectedCall {
  std::string name;                      // AllReduce, Send
  std::int64_t number = 0;               // of its kind, collective or transfer, in the communicator
  std::int64_t bytes = 0;                // as the Inspector counts them
  std::int64_t peer = -1;                // of a transfer: rank of the communicator; below 0: it is a collective
  double us = 0;                         // that it took
  std::optional<std::int64_t> start_us;  // of the call, on the host's clock: in verbose logs
};

/// A process that logs; with several GPUs of one process, one of them.
struct InspectedProcess {
  std::string host;
  std::int64_t id = 0, rank = 0;  // rank: of the only communicator, if processes have several GPUs; otherwise 0
  auto operator<=>(const InspectedProcess&) const = default;
};

struct InspectedCommunicator {
  std::int64_t ranks = 0;
  std::map<std::int64_t, std::uint32_t> processes;           // by rank: index in InspectorLog::processes
  std::map<std::int64_t, std::vector<InspectedCall>> calls;  // by rank: ascending by number, collectives first
};

struct InspectorLog {
  std::vector<InspectedProcess> processes;  // in the order of their first objects
  std::map<std::string, InspectedCommunicator> communicators;
};

/// Parses logs, each a name and its text. Throws core::InputError as import_inspector() does.
InspectorLog parse_inspector_log(const std::vector<std::pair<std::string, std::string_view>>& texts);

}  // namespace manyworlds::experiments::nccl_logs
