// The pending events of an engine. What travels on one link, and the acks of one flow, come in order, so only the
// first of each stands here: the heap holds a few entries per busy link, not one per packet.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace manyworlds::core::network {

struct Event {
  Time at = 0;
  std::uint64_t order = 0;  // kind in the top byte, then the order of the flow or the slot of the link
  std::uint64_t what = 0;   // a packet, or the slot of a flow or link

  bool before(const Event& other) const {
    if (at != other.at) return at < other.at;
    if (order != other.order) return order < other.order;
    return what < other.what;
  }
};

class EventHeap {
 public:
  bool empty() const { return heap_.empty(); }
  void clear() { heap_.clear(); }
  const Event& top() const { return heap_.front(); }
  const std::vector<Event>& all() const { return heap_; }

  void push(const Event& event) {
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 2;
      if (!event.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }
  void pop() {
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  /// pop() and push() in one.
  void replace_top(const Event& event) { sink(event); }

 private:
  void sink(const Event& event) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
      if (child + 1 < size && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(event)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = event;
  }
  std::vector<Event> heap_;
};

}  // namespace manyworlds::core::network
