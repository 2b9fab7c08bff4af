// The flows in an engine: the tie orders that they get, and which flow has which slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::network {

class FlowRegistry {
 public:
  /// Sets the tie orders of collectives. Throws InternalError if an earlier one changes: engines order flows by it.
  void set_tie_order(const std::vector<std::uint32_t>& tie_order) {
    MANYWORLDS_CHECK(
        tie_order_.size() <= tie_order.size() && std::equal(tie_order_.begin(), tie_order_.end(), tie_order.begin()),
        "the ranks of {} collectives changed", tie_order_.size());
    tie_order_ = tie_order;
  }
  void add_tie_order(std::uint32_t position) { tie_order_.push_back(position); }

  /// Returns the tie order of a flow in the engine: that of its collective, then its transfer.
  std::uint64_t order_of(FlowId id) const {
    return static_cast<std::uint64_t>(tie_order_[id.collective]) << 32 | id.transfer;
  }
  /// Returns the flow with this order.
  FlowId id_of(std::uint64_t order) const {
    const auto position = std::find(tie_order_.begin(), tie_order_.end(), static_cast<std::uint32_t>(order >> 32));
    return {static_cast<std::uint32_t>(position - tie_order_.begin()), static_cast<std::uint32_t>(order)};
  }

  void set_slot(FlowId id, std::uint32_t slot) {
    if (slot >= ids_.size()) ids_.resize(slot + 1);
    ids_[slot] = id;
  }
  /// Appends the flows in these slots to `finished`, ascending.
  void append(const std::vector<std::uint32_t>& slots, std::vector<FlowId>& finished) const {
    const auto first = static_cast<std::ptrdiff_t>(finished.size());
    for (const std::uint32_t slot : slots) finished.push_back(ids_[slot]);
    std::sort(finished.begin() + first, finished.end());
  }

 private:
  std::vector<std::uint32_t> tie_order_;  // by collective
  std::vector<FlowId> ids_;               // by slot of the engine
};

}  // namespace manyworlds::core::network
