// The dump of one rank by PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp): the last
// calls of its process groups.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/dag/kind.hpp"

namespace manyworlds::experiments::nccl_logs {

enum class CallState : std::uint8_t { scheduled, started, completed };

struct RecordedCall {
  std::int64_t record = 0, sequence = 0, transfer_sequence = 0, created_ns = 0;
  std::uint32_t group = 0;  // index in FlightDump::groups
  std::string name;         // without the backend: all_reduce, send, coalesced
  std::optional<core::collective::Kind> kind;
  std::int64_t source = -1, destination = -1;  // of a transfer: members of the group
  bool receives = false;
  std::int64_t bytes = 0;  // see core::collective::Kind
  CallState state = CallState::scheduled;
};

struct RecordedGroup {
  std::string name, description;
  std::vector<std::uint32_t> ranks;
  auto operator<=>(const RecordedGroup&) const = default;
};

struct FlightDump {
  std::string file;
  std::uint32_t rank = 0;
  std::vector<RecordedGroup> groups;  // those with calls
  std::vector<RecordedCall> calls;    // in the order of their records
  /// Whether earlier calls were overwritten, as the recorder keeps so many alone.
  bool has_wrapped() const { return !calls.empty() && calls.front().record > 0; }
};

/// Returns whether bytes begin as a dump does: as a pickle, or as JSON with what a dump has.
bool is_flight_dump(std::string_view bytes);

/// Returns the rank at the end of a file's name, such as nccl_trace_rank_3, or behind `rank` in it.
std::optional<std::uint32_t> rank_of_dump(const std::string& path);

/// Parses the bytes of a dump; `file` is its name in messages. Throws core::InputError for what is neither JSON nor a
/// pickle of plain values, for a member that is missing or of another type, for an entry of a group that `pg_config`
/// does not have, and for a type of elements that is not known.
FlightDump parse_flight_dump(std::string_view bytes, const std::string& file);

}  // namespace manyworlds::experiments::nccl_logs
