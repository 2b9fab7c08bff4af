// A record's calls as operations: each taken in turn, with what it waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "experiments/records/rank_record.hpp"
#include "experiments/records/stream_order.hpp"

namespace manyworlds::experiments::captured {

class DeviceCalls {
 public:
  /// Is told of each operation: its call, its place among the streams, and what it waits for.
  using Visit = std::function<void(const Call&, const StreamOrder::Issued&)>;

  /// `has_host` is whether every call is an operation of its thread of the host too. All calls before the first that is
  /// taken are over, as far as devices are concerned.
  explicit DeviceCalls(const RankRecord& record, Visit visit = {}, bool has_host = false);

  /// Takes the next call, by its number in the record. Calls of one group of NCCL's are issued with the last of them.
  void take(std::uint32_t call);

  /// Returns whether a thread of the host has waited for all that was issued, and none is in a group.
  bool is_idle(std::int32_t thread) const { return waiting_.empty() && order_.is_idle(thread); }
  /// Returns whether calls of a group were taken, and the last of them was not.
  bool is_in_group() const { return !waiting_.empty(); }
  const std::vector<StreamKey>& streams() const { return order_.streams(); }

 private:
  void communicate(std::uint32_t call);
  void issue_group(const std::vector<std::uint32_t>& calls);

  const RankRecord& record_;
  Visit visit_;
  bool has_host_;
  StreamOrder order_;
  std::vector<std::uint32_t> last_of_group_;                    // by call: the last one of its group
  std::map<std::int32_t, std::vector<std::uint32_t>> waiting_;  // by thread: calls of the group that is not complete
};

/// Returns whether a call gives a device something that takes time: no copy or product of nothing, none from the host
/// to the host, and nothing between ranks of a communicator of one.
bool has_operation(const RankRecord& record, const Call& call);

/// Returns whether a call is one end of a transfer of a rank with itself.
bool is_with_itself(const RankRecord& record, const Call& call);

}  // namespace manyworlds::experiments::captured
