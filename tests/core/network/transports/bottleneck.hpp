// One queue and n senders of a protocol, as plain as can be: an ordered set of happenings, one entry per packet and
// step. It knows nothing of the packet engine; protocols are held to their papers on it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/network/engine/sender_protocol.hpp"

namespace transport_tests {

using namespace manyworlds::core;
using namespace manyworlds::core::network;

inline constexpr std::int64_t kLine = 400'000'000'000;
inline constexpr std::int64_t kPacketBytes = 4'160;
inline constexpr Time kSend = 83'200;  // of a packet at kLine
inline constexpr Time kWay = 2 * kMicrosecond;

/// NIC, wire, switch, wire and back: two packets sent, three wires' worth of latency forth and back.
inline PathInfo bottleneck_path() {
  return {kLine, kPacketBytes, 2 * kSend + 2 * kWay, 2};
}

/// Senders that always have something to send share a link of their own rate.
template <SenderProtocol P>
class Bottleneck {
 public:
  struct Sender {
    P protocol;
    Time next_at = 0;  // by pacing and its NIC
    std::uint32_t in_flight = 0;
    std::int64_t delivered = 0;  // bytes
  };

  Bottleneck(std::size_t count, std::int64_t mark_above_bytes, typename P::Parameters with = {})
      : with_(with), mark_above_(mark_above_bytes), senders(count) {
    for (std::size_t i = 0; i < count; ++i) {
      senders[i].protocol.start(with_, bottleneck_path(), 0);
      senders[i].next_at = static_cast<Time>(i) * 1'009;  // not all in step
      at(senders[i].next_at, [this, i] { try_to_send(i); });
    }
  }

  void run_until(Time end) {
    while (!happenings_.empty() && happenings_.begin()->first <= end) {
      now_ = happenings_.begin()->first;
      auto happening = std::move(happenings_.begin()->second);
      happenings_.erase(happenings_.begin());
      happening();
    }
    now_ = end;
  }

  /// Forgets what was measured; states stay.
  void measure_from_here() {
    for (Sender& sender : senders) sender.delivered = 0;
    waited_ = longest_ = 0;
    packets_ = 0;
    since_ = now_;
  }
  double utilisation() const {
    std::int64_t bytes = 0;
    for (const Sender& sender : senders) bytes += sender.delivered;
    return static_cast<double>(bytes) * 8e12 / static_cast<double>(kLine) / static_cast<double>(now_ - since_);
  }
  /// Jain's index of the senders' shares.
  double fairness() const {
    double sum = 0, squares = 0;
    for (const Sender& sender : senders) {
      sum += static_cast<double>(sender.delivered);
      squares += static_cast<double>(sender.delivered) * static_cast<double>(sender.delivered);
    }
    return sum * sum / squares / static_cast<double>(senders.size());
  }
  Time mean_wait() const { return packets_ == 0 ? 0 : waited_ / packets_; }
  Time longest_wait() const { return longest_; }

 private:
  struct Packet {
    std::size_t sender;
    Time left_nic;
    bool marked;
    Telemetry telemetry;
  };

  template <class F>
  void at(Time when, F happening) {
    happenings_.emplace(when, std::move(happening));
  }

  void try_to_send(std::size_t i) {
    Sender& sender = senders[i];
    for (Time due; (due = sender.protocol.deadline()) <= now_;) sender.protocol.expire(with_, now_);
    if (now_ < sender.next_at) return;  // a later call is on its way
    const std::int64_t window = sender.protocol.window_bytes();
    if (sender.in_flight > 0 && (sender.in_flight + std::int64_t{1}) * kPacketBytes > window) return;
    ++sender.in_flight;
    sender.next_at = now_ + std::max(kSend, sender.protocol.gap(kPacketBytes));
    at(now_ + kSend + kWay / 2, [this, packet = Packet{i, now_, false, {}}] { arrive(packet); });
    at(now_ + kSend, [this, i] { senders[i].protocol.sent(with_, kPacketBytes, now_); });
    at(sender.next_at, [this, i] { try_to_send(i); });
  }

  void arrive(Packet packet) {
    const Time starts = std::max(now_, free_at_);
    free_at_ = starts + kSend;
    packet.marked = (starts - now_) / kSend * kPacketBytes > mark_above_;
    ++waiting_;
    at(starts, [this, packet] { leave(packet); });
  }

  void leave(Packet packet) {
    --waiting_;
    sent_ += kPacketBytes;
    packet.telemetry = {now_, waiting_ * kPacketBytes, sent_, kLine};
    const Time wait = now_ - packet.left_nic - kSend - kWay / 2;
    waited_ += wait, longest_ = std::max(longest_, wait), ++packets_;
    at(now_ + kSend + kWay / 2 + kWay, [this, packet] { acknowledge(packet); });
  }

  void acknowledge(const Packet& packet) {
    Sender& sender = senders[packet.sender];
    --sender.in_flight;
    sender.delivered += kPacketBytes;
    sender.protocol.acknowledged(
        with_, {now_, now_ - packet.left_nic, kPacketBytes, sender.in_flight, packet.marked, &packet.telemetry});
    try_to_send(packet.sender);
  }

  typename P::Parameters with_;
  std::int64_t mark_above_;
  std::multimap<Time, std::function<void()>> happenings_;  // those of one instant in the order they were made
  Time now_ = 0, free_at_ = 0, since_ = 0;
  std::int64_t waiting_ = 0, sent_ = 0, packets_ = 0;
  Time waited_ = 0, longest_ = 0;

 public:
  std::vector<Sender> senders;
};

}  // namespace transport_tests
