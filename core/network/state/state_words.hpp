// The visitors of network_state.hpp that write a state as canonical words and read it back. Words contain no absolute
// times and no slots of an engine, so that equal words mean equal futures.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/state/component_numbering.hpp"
#include "core/network/state/network_state.hpp"

namespace manyworlds::core::network {

/// Bytes sent so far by each link of a flow's path, by hop, for visitor.link_bytes().
using SentBytes = std::array<std::int64_t, kMaxHops>;

class StateWriter {
 public:
  StateWriter(const ComponentNumbering& numbering, Time now) : numbering_(numbering), now_(now) {}

  /// Appends to `words` from now on.
  void write_to(StateWords& words) { out_ = &words; }
  /// Leaves out how many packets the flows have left, except whether there are any, and numbers packets relative to
  /// them. `remaining` is indexed by slot of the flow.
  void exclude_remaining(std::vector<std::uint32_t> remaining) { excluded_ = std::move(remaining); }
  void set_sent_bytes(const SentBytes& sent) { sent_bytes_ = sent; }

  template <class Value>
  void scalar(Value value) {
    put(static_cast<std::uint64_t>(value));
  }
  template <class... Flags>
  void flags(Flags... bits) {
    std::uint64_t word = 0, bit = 1;
    ((word |= bits ? bit : 0, bit <<= 1), ...);
    put(word);
  }
  void deadline(Time at) { scalar(at == kNever ? kNever : at - now_); }
  void future_time(Time at) { scalar(std::max<Time>(at - now_, 0)); }
  void age(Time at, Time max_age) { scalar(std::min(now_ - at, max_age)); }
  void link_bytes(std::int64_t bytes, std::uint32_t hop) { scalar(sent_bytes_[hop] - bytes); }
  void remaining(std::uint32_t packets) { put(excluded_.empty() ? packets : packets > 0); }
  void packet(Packet packet) {
    const std::uint32_t slot = flow_of(packet);
    const Packet offset = excluded_.empty() ? 0 : make_packet(0, excluded_[slot]);
    put(make_packet(numbering_.number_of_flow(slot), 0) | ((packet - offset) & kAllButFlowMask));
  }
  void flow(std::uint32_t slot) { put(numbering_.number_of_flow(slot)); }
  void link(std::uint32_t slot) { put(numbering_.number_of_link(slot)); }
  template <class Queue, class Visit>
  void list(const Queue& queue, Visit visit) {
    put(queue.size());
    for (std::size_t i = 0; i < queue.size(); ++i) {
      auto element = queue[i];
      visit(element);
    }
  }
  template <class Visit>
  void rows(TelemetryRows& rows, Visit visit) {
    put(rows.size());
    for (std::uint32_t i = 0; i < rows.size(); ++i) visit(rows.row(i));
  }

 private:
  void put(std::uint64_t word) { out_->push_back(word); }

  const ComponentNumbering& numbering_;
  Time now_;
  StateWords* out_ = nullptr;
  std::vector<std::uint32_t> excluded_;
  SentBytes sent_bytes_{};
};

/// Translates the numbers of flows and links to slots through `flows` and `links`, which the engine fills. Words that
/// are cut short are an internal error.
class StateReader {
 public:
  StateReader(std::span<const std::uint64_t> words, const std::vector<std::uint32_t>& flows,
              const std::vector<std::uint32_t>& links, Time now)
      : words_(words), flows_(flows), links_(links), now_(now) {}

  void set_sent_bytes(const SentBytes& sent) { sent_bytes_ = sent; }

  std::uint64_t next() {
    MANYWORLDS_CHECK(position_ < words_.size(), "state of {} words is cut short", words_.size());
    return words_[position_++];
  }
  template <class Value>
  void scalar(Value& value) {
    value = static_cast<Value>(next());
  }
  template <class... Flags>
  void flags(Flags&... bits) {
    std::uint64_t word = next();
    ((bits = (word & 1) != 0, word >>= 1), ...);
  }
  void deadline(Time& at) {
    scalar(at);
    if (at != kNever) at += now_;
  }
  void future_time(Time& at) { at = now_ + static_cast<Time>(next()); }
  void age(Time& at, Time) { at = now_ - static_cast<Time>(next()); }
  void link_bytes(std::int64_t& bytes, std::uint32_t hop) {
    bytes = sent_bytes_[hop] - static_cast<std::int64_t>(next());
  }
  void remaining(std::uint32_t& packets) { scalar(packets); }
  void packet(Packet& packet) {
    const Packet word = next();
    packet = make_packet(flows_[flow_of(word)], 0) | (word & kAllButFlowMask);
  }
  void flow(std::uint32_t& slot) { slot = flows_[next()]; }
  void link(std::uint32_t& slot) { slot = links_[next()]; }
  template <class Queue, class Visit>
  void list(Queue& queue, Visit visit) {
    for (std::uint64_t left = next(); left > 0; --left) {
      std::remove_cvref_t<decltype(queue[0])> element{};
      visit(element);
      append(queue, element);
    }
  }
  template <class Visit>
  void rows(TelemetryRows& rows, Visit visit) {
    for (std::uint64_t left = next(); left > 0; --left) visit(rows.push());
  }

 private:
  template <class T>
  static void append(Fifo<T>& queue, const T& element) {
    queue.push(element);
  }
  template <class T>
  static void append(std::vector<T>& queue, const T& element) {
    queue.push_back(element);
  }

  std::span<const std::uint64_t> words_;
  const std::vector<std::uint32_t>& flows_;
  const std::vector<std::uint32_t>& links_;
  Time now_;
  std::size_t position_ = 0;
  SentBytes sent_bytes_{};
};

}  // namespace manyworlds::core::network
