// The calls of a captured process, as its record has them.
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
  library_kernel,  // of cuDNN
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
  stop_profiler,
  launch_graph  // what is in the graph follows, as calls of their own
};

/// Returns whether calls of a kind repeat with a step: they give a device work, order it, wait for it, or change what
/// is allocated.
bool is_part_of_step(CallKind kind);
/// Returns whether a call gives a device work that takes time.
bool is_work(CallKind kind);
/// Returns whether calls of a function, by its name, have no part in a step, and nothing that is read.
bool is_without_part(std::string_view function);
/// Returns whether a function is one of cuDNN's legacy API that gives a device work: its line has the operation.
bool is_library_kernel(std::string_view function);
/// Returns the bytes of an element of a type of NCCL's, by its name in records; 0 of what is none.
std::int64_t element_bytes(std::string_view type);
/// Returns whether a call moves data between ranks.
bool is_communication(CallKind kind);

/// `detail` of a release that does not wait for the device.
inline constexpr std::uint32_t kWithoutWait = 1;
/// What is added to the number of a stream, or of an event, inside of graphs: they are others than those outside.
inline constexpr std::int32_t kInGraphs = 1 << 25;
/// The first number of a stream, or of an event, that an instance of a graph has which was made node by node.
inline constexpr std::int32_t kOfNodes = 1 << 26;
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
  bool is_of_graph = false;  // one that the launch of a graph makes, without a call of the host
  std::uint64_t form = 0;    // a hash of all that is the same when the call is made again in another step
};

/// A hash, with which calls of other steps that are the same are found.
class Form {
 public:
  Form& add(std::uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 29;
    return *this;
  }
  Form& add_signed(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
  Form& add_shape(const programs::GemmShape& shape) {
    return add_signed(shape.m).add_signed(shape.n).add_signed(shape.k).add_signed(shape.batch);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
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

/// A kernel of cuDNN: what it works on is not known if `work` has no shape.
struct LibraryKernel {
  programs::KernelWork work;
  std::uint32_t dtype = 0;  // index in Words: of its products, as recorded; empty if it has none
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

}  // namespace manyworlds::experiments::captured
