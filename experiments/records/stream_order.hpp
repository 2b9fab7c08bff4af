// What each operation that a process gave a device waits for: CUDA's rules of streams, events and the host's waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace manyworlds::experiments::captured {

/// A stream of operations that run one after the other. `number` is the record's; the default stream of each thread
/// (1) is one stream per thread, and so are the launches of each thread of the host. Of the transfers of one group of
/// NCCL's, which run side by side, each but the first has a lane.
struct StreamKey {
  enum class Kind : std::uint8_t { device, host } kind = Kind::device;
  std::int32_t number = 0, thread = 0, lane = 0;
  auto operator<=>(const StreamKey&) const = default;
};

/// How many operations of each stream are over, by stream; those that are not in the list: none.
using Progress = std::vector<std::uint32_t>;

/// Takes the calls of a process in their order. After "CUDA Runtime API" (stream synchronization behavior; API
/// synchronization behavior) and the CUDA C++ Programming Guide (default stream, events).
class StreamOrder {
 public:
  struct Issued {
    std::uint32_t stream = 0;          // numbered as they first get operations
    std::vector<std::uint32_t> after;  // operations, ascending; what another of them waits for is left out
  };

  /// Says that a stream does not wait for the legacy default stream (cudaStreamNonBlocking).
  void set_non_blocking(std::int32_t stream);

  /// An operation that a thread of the host gives a stream; operations are numbered from 0 in this order.
  Issued issue(std::int32_t stream, std::int32_t thread);
  /// What a thread of the host does itself; what it issues then waits for it.
  Issued issue_host(std::int32_t thread);

  void record_event(std::int32_t event, std::int32_t stream, std::int32_t thread);
  void wait_event(std::int32_t event, std::int32_t stream, std::int32_t thread);
  void synchronise_stream(std::int32_t stream, std::int32_t thread);
  void synchronise_event(std::int32_t event, std::int32_t thread);
  void synchronise_device(std::int32_t thread);
  /// The host waits for the last operation of the stream.
  void await_last(std::int32_t stream, std::int32_t thread);

  /// Operations of NCCL that are issued together: they start when all streams among them have come there and the
  /// communicator's last operation is over, and all these streams go on when they are over. `stream` and `lane` are of
  /// each operation, `communicator` too.
  struct Member {
    std::int32_t stream = 0, lane = 0, communicator = 0;
  };
  std::vector<Issued> issue_group(const std::vector<Member>& members, std::int32_t thread);

  /// Returns whether the host has waited for all that was issued.
  bool is_idle(std::int32_t thread) const;

  const std::vector<StreamKey>& streams() const { return keys_; }

 private:
  struct Stream {
    Progress done;     // when its next operation may start: its own before it, and what it waits for
    Progress implied;  // when its last operation is over
    std::vector<std::uint32_t> operations;
    bool is_blocking = true;
    bool is_legacy = false;
  };

  std::uint32_t index_of(const StreamKey& key);
  std::uint32_t device_stream(std::int32_t number, std::int32_t thread, std::int32_t lane = 0);
  Progress& host(std::int32_t thread);
  /// Brings a stream to what an operation that is now issued on it waits for.
  void touch(std::uint32_t stream, std::int32_t thread);
  Issued add(std::uint32_t stream);

  std::map<StreamKey, std::uint32_t> indices_;
  std::vector<StreamKey> keys_;
  std::vector<Stream> streams_;
  std::map<std::int32_t, Progress> hosts_;                          // by thread: what it has waited for
  std::map<std::int32_t, std::shared_ptr<const Progress>> events_;  // as last recorded
  std::map<std::int32_t, Progress> communicators_;                  // what was over when its last operation is
  std::map<std::int32_t, bool> non_blocking_;
  std::vector<Progress> of_operation_;  // what is over when it is
};

}  // namespace manyworlds::experiments::captured
