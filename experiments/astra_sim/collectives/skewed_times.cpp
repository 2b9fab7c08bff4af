#include "experiments/astra_sim/collectives/skewed_times.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

/// Carries one chunk through its only phase: when each member began becomes when it has ended.
class OneChunk {
 public:
  OneChunk(const Phase& phase, const Network& network) : phase_(phase), network_(network) {
    for (const Round& round : phase.rounds) {
      auto& of_round = delays_.emplace_back();
      for (const Message& message : round.messages) of_round.push_back(delays_of(message));
    }
  }

  void run(std::vector<std::int64_t>& times) {
    for (std::int64_t& time : times) time += phase_.before_ns;
    for (std::size_t i = 0; i < phase_.rounds.size(); ++i)
      for (std::int64_t time = 0; time < phase_.rounds[i].times; ++time) one_round(phase_.rounds[i], delays_[i], times);
  }

 private:
  using Delays = std::vector<std::int64_t>;  // by receiver

  Delays delays_of(const Message& message) const {
    const auto members = static_cast<std::uint32_t>(phase_.members.size());
    Delays delays(members);
    for (std::uint32_t place = 0; place < members; ++place)
      delays[place] = network_.message_ns(
          network_.way(phase_.members[message.sender(place, members)], phase_.members[place]), message.bytes);
    return delays;
  }

  void one_round(const Round& round, const std::vector<Delays>& delays, std::vector<std::int64_t>& times) {
    const auto members = static_cast<std::uint32_t>(times.size());
    sent_ = times;
    for (std::size_t i = 0; i < round.messages.size(); ++i)
      for (std::uint32_t place = 0; place < members; ++place)
        times[place] = std::max(times[place], sent_[round.messages[i].sender(place, members)] + delays[i][place]);
    for (std::int64_t& time : times) {
      time += round.after_ns;
      if (static_cast<double>(time) > 2 * kLongestNs)
        throw core::InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network_.name);
    }
  }

  const Phase& phase_;
  const Network& network_;
  std::vector<std::vector<Delays>> delays_;  // by round and message
  std::vector<std::int64_t> sent_;
};

}  // namespace

double skewed_messages(const Chunks& chunks) {
  double messages = 0;
  for (const Round& round : chunks.phases.front().rounds)
    messages += static_cast<double>(round.times) * static_cast<double>(round.messages.size());
  return messages * static_cast<double>(chunks.count) * static_cast<double>(chunks.phases.front().members.size());
}

std::vector<std::int64_t> skewed_ends(const Chunks& chunks, std::int64_t active_chunks, const Network& network,
                                      const std::vector<std::int64_t>& entries) {
  OneChunk chunk(chunks.phases.front(), network);
  std::vector<std::int64_t> ends = entries;
  for (std::int64_t first = 0; first < std::min(active_chunks, chunks.count); ++first) {
    std::vector<std::int64_t> times = entries;
    for (std::int64_t number = first; number < chunks.count; number += active_chunks) chunk.run(times);
    for (std::size_t place = 0; place < ends.size(); ++place) ends[place] = std::max(ends[place], times[place]);
  }
  return ends;
}

}  // namespace manyworlds::experiments::astra_sim
