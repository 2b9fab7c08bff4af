#include "experiments/astra_sim/collectives/chunk_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <queue>

#include "core/base/error.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using core::InputError;

constexpr double kMaxEvents = 2e7;

Way way_of(const Message& message, const Phase& phase, const Network& network, std::uint32_t place) {
  const auto members = static_cast<std::uint32_t>(phase.members.size());
  return network.way(phase.members[place], phase.members[message.receiver(place, members)]);
}

std::int64_t message_ns(const Message& message, const Phase& phase, const Network& network) {
  return network.message_ns(way_of(message, phase, network, 0), message.bytes);
}

/// A phase by itself, where messages do not see each other.
std::int64_t phase_ns(const Phase& phase, const Network& network) {
  std::int64_t total = phase.before_ns;
  double check = static_cast<double>(total);
  for (const Round& round : phase.rounds) {
    std::int64_t longest = 0;
    for (const Message& message : round.messages) longest = std::max(longest, message_ns(message, phase, network));
    if (phase.needs_equal_messages)
      for (const Message& message : round.messages)
        if (message_ns(message, phase, network) != longest)
          throw InputError(
              "topology: must be FullyConnected or Switch, or a Ring of three at most, for a direct all-reduce",
              network.name);
    check += static_cast<double>(round.times) * static_cast<double>(longest + round.after_ns);
    if (!(check < kLongestNs))
      throw InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network.name);
    total += round.times * (longest + round.after_ns);
  }
  return total;
}

/// Runs the chunks of one member through the queues of the dimensions, and with congestion its messages over links.
class Run {
 public:
  Run(const Chunks& chunks, std::int64_t active_chunks, const Network& network, Congestion congestion)
      : phases_(chunks.phases), active_(active_chunks), network_(network), is_aware_(congestion == Congestion::aware) {
    chunks_.resize(static_cast<std::size_t>(chunks.count));
    if (!is_aware_)
      for (const Phase& phase : phases_) alone_ns_.push_back(phase_ns(phase, network));
  }

  std::int64_t run() {
    for (std::uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) enqueue(chunk);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (static_cast<double>(now_) > kLongestNs)
        throw InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network_.name);
      if (event.what == What::phase_end) {
        end_phase(event.chunk);
      } else if (event.what == What::round) {
        begin_round(event.chunk);
      } else {
        arrive(event);
      }
    }
    return now_;
  }

 private:
  enum class What : std::uint8_t { round, arrival, phase_end };
  struct Event {
    std::int64_t at;
    std::int64_t number;  // in the order in which they were scheduled
    What what;
    std::uint32_t chunk, message, hop;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  struct Chunk {
    std::size_t phase = 0, round = 0;
    std::int64_t time = 0;  // of those of a round
    std::size_t arrived = 0;
  };
  struct Queue {
    std::deque<std::uint32_t> waiting;
    std::int64_t running = 0;
  };

  void schedule(std::int64_t after, What what, std::uint32_t chunk, std::uint32_t message = 0, std::uint32_t hop = 0) {
    events_.push({now_ + after, number_++, what, chunk, message, hop});
  }

  const Phase& phase_of(std::uint32_t chunk) const { return phases_[chunks_[chunk].phase]; }

  void enqueue(std::uint32_t chunk) {
    const std::uint32_t queue = phase_of(chunk).queue;
    queues_[queue].waiting.push_back(chunk);
    start_waiting(queue);
  }

  void start_waiting(std::uint32_t number) {
    Queue& queue = queues_[number];
    for (; queue.running < active_ && !queue.waiting.empty(); queue.waiting.pop_front(), ++queue.running) {
      const std::uint32_t chunk = queue.waiting.front();
      if (is_aware_)
        schedule(phase_of(chunk).before_ns, What::round, chunk);
      else
        schedule(alone_ns_[chunks_[chunk].phase], What::phase_end, chunk);
    }
  }

  void end_phase(std::uint32_t chunk) {
    Chunk& one = chunks_[chunk];
    const std::uint32_t queue = phase_of(chunk).queue;
    --queues_[queue].running;
    one = {one.phase + 1};
    if (one.phase < phases_.size()) enqueue(chunk);
    start_waiting(queue);
  }

  void begin_round(std::uint32_t chunk) {
    const Chunk& one = chunks_[chunk];
    if (one.round == phase_of(chunk).rounds.size()) return end_phase(chunk);
    const Round& round = phase_of(chunk).rounds[one.round];
    for (std::uint32_t message = 0; message < round.messages.size(); ++message) send(chunk, message, 0);
  }

  /// Puts a message on the next link of its way: that to a switch and the one from it, or the only one to its receiver.
  void send(std::uint32_t chunk, std::uint32_t number, std::uint32_t hop) {
    const Phase& phase = phase_of(chunk);
    const Message& message = phase.rounds[chunks_[chunk].round].messages[number];
    const Way way = way_of(message, phase, network_, 0);
    const NetworkDimension& dimension = network_.dimensions[way.dimension];
    const std::uint32_t link = dimension.block == Block::switched ? hop : message.distance + 1;
    const double sending_ns = static_cast<double>(message.bytes) / dimension.bytes_per_ns();
    std::int64_t& free_at = free_at_[link];
    const std::int64_t begin = std::max(now_, free_at);
    free_at = begin + static_cast<std::int64_t>(sending_ns);
    schedule(begin + static_cast<std::int64_t>(dimension.latency_ns + sending_ns) - now_, What::arrival, chunk, number,
             hop + 1);
  }

  void arrive(const Event& event) {
    Chunk& one = chunks_[event.chunk];
    const Phase& phase = phase_of(event.chunk);
    const Round& round = phase.rounds[one.round];
    if (event.hop < way_of(round.messages[event.message], phase, network_, 0).hops)
      return send(event.chunk, event.message, event.hop);
    if (++one.arrived < round.messages.size()) return;
    const std::int64_t after = round.after_ns;
    one.arrived = 0;
    if (++one.time == round.times) one.time = 0, ++one.round;
    schedule(after, What::round, event.chunk);
  }

  const std::vector<Phase>& phases_;
  std::int64_t active_;
  const Network& network_;
  bool is_aware_;
  std::vector<std::int64_t> alone_ns_;  // by phase, without congestion
  std::vector<Chunk> chunks_;
  std::map<std::uint32_t, Queue> queues_;          // by dimension
  std::map<std::uint32_t, std::int64_t> free_at_;  // by link
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t now_ = 0, number_ = 0;
};

/// Throws unless one member's messages stand for those of all, link by link.
void check_aware(const Chunks& chunks, const Network& network) {
  if (network.dimensions.size() > 1)
    throw InputError("topology: must have one dimension, as the congestion-aware backend has no more", network.name);
  double events = 0;
  const Block block = network.dimensions.front().block;
  for (const Phase& phase : chunks.phases)
    for (const Round& round : phase.rounds) {
      events += static_cast<double>(chunks.count) * static_cast<double>(round.times) *
                static_cast<double>(round.messages.size());
      for (const Message& message : round.messages)
        if (block == Block::ring && way_of(message, phase, network, 0).hops > 1)
          throw InputError(
              "topology: must not be a Ring, on which messages to other than neighbours meet in the congestion-aware "
              "backend",
              network.name);
      if (block == Block::switched && phase.needs_equal_messages && round.messages.size() > 1)
        throw InputError(
            "topology: must not be a Switch for a direct all-reduce with congestion: its second half begins bit by bit",
            network.name);
    }
  if (events > kMaxEvents)
    throw InputError(fmt::format("npus_count: must be such that a collective has 20,000,000 messages of a rank at "
                                 "most with congestion, not {:.0f}",
                                 events),
                     network.name);
}

}  // namespace

bool is_symmetric(const Phase& phase, const Network& network) {
  if (phase.members.size() == network.ranks()) return true;
  for (const Round& round : phase.rounds)
    for (const Message& message : round.messages)
      for (std::uint32_t place = 1; place < phase.members.size(); ++place)
        if (way_of(message, phase, network, place) != way_of(message, phase, network, 0)) return false;
  return true;
}

std::int64_t chunks_ns(const Chunks& chunks, std::int64_t active_chunks, const Network& network,
                       Congestion congestion) {
  if (congestion == Congestion::aware) {
    check_aware(chunks, network);
  } else if (chunks.phases.size() == 1) {
    const std::int64_t one = phase_ns(chunks.phases.front(), network),
                       turns = (chunks.count + active_chunks - 1) / active_chunks;
    if (!(static_cast<double>(one) * static_cast<double>(turns) < kLongestNs))
      throw InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network.name);
    return turns * one;
  }
  return Run(chunks, active_chunks, network, congestion).run();
}

}  // namespace manyworlds::experiments::astra_sim
