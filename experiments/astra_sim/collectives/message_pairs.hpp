// Sends and receives that meet as in ASTRA-sim without congestion: by sender, receiver, tag and size alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace manyworlds::experiments::astra_sim {

/// `End` is a send or a receive. Of receives with one key, the k-th that is asked for meets the k-th message.
template <class End>
class MessagePairs {
 public:
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::int64_t>;  // from, to, tag, bytes
  struct Pair {
    std::queue<std::pair<std::int64_t, End>> arrivals;  // of messages that nobody has asked for yet, and their sends
    std::queue<End> asked;                              // receives whose message has not been sent yet
  };

  /// Notes that a message is sent which comes at `arrival`; returns the receive that waits for it, if one does.
  std::optional<End> send(const Key& key, std::int64_t arrival, End sender) {
    Pair& pair = pairs_[key];
    if (pair.asked.empty()) {
      pair.arrivals.push({arrival, sender});
      return std::nullopt;
    }
    const End receiver = pair.asked.front();
    pair.asked.pop();
    return receiver;
  }

  /// Notes that a message is asked for; returns when it comes, if it has been sent.
  std::optional<std::int64_t> receive(const Key& key, End receiver) {
    Pair& pair = pairs_[key];
    if (pair.arrivals.empty()) {
      pair.asked.push(receiver);
      return std::nullopt;
    }
    const std::int64_t arrival = pair.arrivals.front().first;
    pair.arrivals.pop();
    return arrival;
  }

  /// Those that have not met stand in the queues of their pairs.
  const std::map<Key, Pair>& pairs() const { return pairs_; }

 private:
  std::map<Key, Pair> pairs_;
};

}  // namespace manyworlds::experiments::astra_sim
