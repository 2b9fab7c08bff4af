// The record of one captured process: its calls, a line each (experiments/capture/README.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::captured {

/// What a call is to a step. `other`: nothing, as queries and settings, and calls that failed.
enum class CallKind : std::uint8_t {
  other,
  launch,
  product,
  copy,
  set,
  allocate,
  release,
  create_stream,
  record_event,
  wait_event,
  synchronise_stream,
  synchronise_event,
  synchronise_device,
  set_device,
  host_function,
  collective,
  send,
  receive,
  open_communicator,
  start_profiler,
  stop_profiler
};

/// Returns whether calls of a kind repeat with a step: they give a device work, order it, wait for it, or change what
/// is allocated.
bool is_part_of_step(CallKind kind);
/// Returns whether a call gives a device work that takes time.
bool is_work(CallKind kind);

/// `detail` of a release that does not wait for the device.
inline constexpr std::uint32_t kWithoutWait = 1;
/// Of a call that has no such number.
inline constexpr std::int32_t kNone = -1;

/// A line. What `number` is follows from the kind: of an event, an allocation, a communicator, or a device. `detail` is
/// an index in the list of the record that has more of its kind.
struct Call {
  CallKind kind = CallKind::other;
  std::uint32_t line = 0;
  std::uint32_t name = 0;  // index in Words: of a launch its kernel, else the function
  std::int32_t thread = 0, stream = kNone, number = kNone, group = kNone;
  std::uint32_t detail = 0;
  std::int64_t bytes = 0;
  std::uint64_t form = 0;  // a hash of all that is the same when the call is made again in another step
};

/// Whose numbers of arguments are NaN where they are no numbers.
struct Launch {
  std::array<std::int64_t, 3> grid{}, block{};
  std::int64_t shared_bytes = 0;
  std::uint32_t arguments = 0, argument_count = 0;  // in RankRecord::arguments
};

struct Product {
  programs::GemmShape shape;
  std::uint32_t dtype = 0;  // index in Words: as recorded
  bool has_rate = true;     // whether GPUs have a rate for its type
};

struct Copy {
  programs::CopyDirection direction = programs::CopyDirection::device_to_device;
  bool is_of_host = false;  // from the host to the host
  bool waits = false;       // the host until it is done
};

struct Created {
  bool is_blocking = true;
  std::int32_t device = 0;
};

/// A call of NCCL; `kind` is send for both ends of a transfer.
struct Communication {
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t count = 0, element_bytes = 0;
  std::uint32_t dtype = 0, reduction = 0;  // indices in Words
  std::int32_t peer = kNone;               // root, or the other end
};

struct OpenedCommunicator {
  std::string key;
  std::int32_t size = 0, in_rank = 0;
  std::uint32_t line = 0;
};

/// Texts of all records, each once.
class Words {
 public:
  std::uint32_t operator()(std::string_view text);
  const std::string& text(std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string> texts_;
};

struct RankRecord {
  std::string file;
  std::int32_t rank = 0, world = 1;
  std::string gpu;
  std::vector<Call> calls;  // in the order of the file
  std::vector<Launch> launches;
  std::vector<double> arguments;
  std::vector<Product> products;
  std::vector<Copy> copies;
  std::vector<Created> streams;
  std::vector<Communication> communications;
  std::vector<OpenedCommunicator> communicators;  // by their number in this rank
  std::int64_t failed = 0;                        // calls that returned an error
  std::int64_t beyond = 0;                        // calls that reach beyond an allocation
  bool has_end = false;
  std::string stopped;  // why, if the capture ended it
};

/// Returns whether a text begins as such a record does.
bool is_record(std::string_view head);

/// Parses a record; `file` is its name in messages. Throws InputError with the line for what is no JSON, for a call
/// that is unknown or lacks a member or has one of another type, for a stream or communicator that was not created, and
/// for a first line that is not that of a capture.
RankRecord parse_record(std::string_view text, const std::string& file, Words& words);

}  // namespace manyworlds::experiments::captured
