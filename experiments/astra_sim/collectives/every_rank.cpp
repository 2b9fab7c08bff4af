#include "experiments/astra_sim/collectives/every_rank.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "core/base/error.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

/// A rank's place in a binary tree of 2^k members (BinaryTree.cc): in the order from left to right a root, which has
/// one child, and a full tree below it; the root is before or behind that tree.
struct TreePlace {
  std::optional<std::uint32_t> parent;
  std::vector<std::uint32_t> children;
};

TreePlace place_in_tree(std::uint32_t place, std::uint32_t members, bool is_root_last) {
  // Places count from 1 inside of the full tree; the lowest bit that is set says how high one is.
  const std::uint32_t shift = is_root_last ? 1 : 0, root = is_root_last ? members - 1 : 0, top = members / 2;
  TreePlace of;
  if (place == root) {
    of.children.push_back(top - shift);
    return of;
  }
  const std::uint32_t own = place + shift, height = own & (~own + 1);
  of.parent = own == top ? root : ((own - height) | (2 * height)) - shift;
  if (height > 1) of.children = {own - height / 2 - shift, own + height / 2 - shift};
  return of;
}

/// Runs the chunks of all ranks through their phases. Messages do not see each other, so when one comes is known when
/// it is sent; whoever waits for it may have to wait for others.
class EveryRank {
 public:
  EveryRank(const Chunks& chunks, const std::vector<std::int64_t>& turns, std::int64_t active_chunks,
            const Network& network, const std::vector<std::uint32_t>& ranks)
      : chunks_(chunks),
        turns_(turns),
        active_(active_chunks),
        network_(network),
        ranks_(ranks),
        states_(ranks.size()) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      index_.emplace(ranks[i], i);
      states_[i].chunks.resize(static_cast<std::size_t>(chunks.count));
    }
    for (const Phase& phase : chunks.phases) {
      std::vector<const Round*>& rounds = rounds_.emplace_back();
      for (const Round& round : phase.rounds)
        rounds.insert(rounds.end(), static_cast<std::size_t>(round.times), &round);
    }
  }

  RankEnds run(const std::vector<std::int64_t>& entries) {
    for (std::size_t rank = 0; rank < entries.size(); ++rank) schedule(entries[rank], What::entry, {rank, 0});
    ends_ = entries;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      if (event.what == What::entry) {
        for (std::uint32_t chunk = 0; chunk < chunks_.count; ++chunk) enqueue({event.of.rank, chunk});
      } else if (event.what == What::step) {
        begin_step(event.of);
      } else {
        end_phase(event.of);
      }
    }
    for (const State& state : states_)
      for (const Chunk& chunk : state.chunks)
        if (chunk.phase < chunks_.phases.size())
          throw core::InputError(
              "a collective with doubleBinaryTree waits for itself for ever, as in ASTRA-sim: ranks that come to it at "
              "different times take its chunks to a dimension in different orders",
              network_.name);
    return {std::move(ends_), has_ties_};
  }

 private:
  enum class What : std::uint8_t { entry, step, phase_end };
  /// A chunk of a rank.
  struct Of {
    std::size_t rank;
    std::uint32_t chunk;
  };
  struct Event {
    std::int64_t at;
    std::int64_t number;  // in the order in which they were scheduled
    What what;
    Of of;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  struct Inbox {
    std::size_t count = 0;
    std::int64_t latest = 0;
  };
  struct Chunk {
    std::size_t phase = 0, step = 0;       // a round; of a tree, 0 until what is below has come, then 1
    std::optional<std::int64_t> asked_at;  // since when it asks for the messages of its step
    std::map<std::pair<std::size_t, std::size_t>, Inbox> inbox;  // by phase and step: senders may be ahead
  };
  struct Queue {
    std::deque<std::uint32_t> waiting;
    std::int64_t running = 0;
    std::int64_t came_at = -1;  // when the last chunk came from another dimension
  };
  struct State {
    std::vector<Chunk> chunks;
    std::map<std::uint32_t, Queue> queues;  // by dimension
  };

  Chunk& at(Of of) { return states_[of.rank].chunks[of.chunk]; }
  const Phase& phase_of(Of of) { return chunks_.phases[at(of).phase]; }

  void schedule(std::int64_t when, What what, Of of) {
    if (static_cast<double>(when) > 2 * kLongestNs)
      throw core::InputError("bandwidth: must be such that a collective takes less than 10^15 ns", network_.name);
    events_.push({when, number_++, what, of});
  }

  std::uint32_t place_of(Of of) {
    const Phase& phase = phase_of(of);
    return ranks_[of.rank] / (phase.members[1] - phase.members[0]) % static_cast<std::uint32_t>(phase.members.size());
  }

  /// The same chunk of the rank at another place of the dimension.
  Of other(Of of, std::uint32_t place) {
    const Phase& phase = phase_of(of);
    const std::uint32_t apart = phase.members[1] - phase.members[0];
    return {index_.at(ranks_[of.rank] - place_of(of) * apart + place * apart), of.chunk};
  }

  TreePlace tree_place(Of of) {
    const Phase& phase = phase_of(of);
    std::int64_t before = 0;  // how often the chunk has been in trees of this dimension
    for (std::size_t i = 0; i < at(of).phase; ++i)
      if (chunks_.phases[i].tree && chunks_.phases[i].queue == phase.queue) ++before;
    const std::int64_t turn = turns_[phase.queue] + of.chunk * trees_of(chunks_, phase.queue) + before;
    return place_in_tree(place_of(of), static_cast<std::uint32_t>(phase.members.size()), turn % 2 == 0);
  }

  void enqueue(Of of) {
    const std::uint32_t dimension = phase_of(of).queue;
    Queue& queue = states_[of.rank].queues[dimension];
    has_ties_ = has_ties_ || (at(of).phase > 0 && queue.came_at == now_ && chunks_.count > active_);
    if (at(of).phase > 0) queue.came_at = now_;
    queue.waiting.push_back(of.chunk);
    start_waiting(of.rank, dimension);
  }

  void start_waiting(std::size_t rank, std::uint32_t dimension) {
    Queue& queue = states_[rank].queues[dimension];
    while (queue.running < active_ && !queue.waiting.empty()) {
      const Of of{rank, queue.waiting.front()};
      queue.waiting.pop_front();
      ++queue.running;
      if (phase_of(of).tree)
        begin_tree(of);
      else
        schedule(now_ + phase_of(of).before_ns, What::step, of);
    }
  }

  void end_phase(Of of) {
    const std::uint32_t dimension = phase_of(of).queue;
    --states_[of.rank].queues[dimension].running;
    at(of).phase += 1;
    at(of).step = 0;
    ends_[of.rank] = now_;
    if (at(of).phase < chunks_.phases.size()) enqueue(of);
    start_waiting(of.rank, dimension);
  }

  void send(Of from, Of to, std::size_t step, std::int64_t bytes, std::int64_t when) {
    const Way way = network_.way(ranks_[from.rank], ranks_[to.rank]);
    Inbox& inbox = at(to).inbox[{at(from).phase, step}];
    ++inbox.count;
    inbox.latest = std::max(inbox.latest, when + network_.message_ns(way, bytes));
    proceed(to);
  }

  void ask(Of of, std::int64_t when) {
    at(of).asked_at = when;
    proceed(of);
  }

  void begin_step(Of of) {
    if (at(of).step == rounds_[at(of).phase].size()) return end_phase(of);
    const auto members = static_cast<std::uint32_t>(phase_of(of).members.size());
    for (const Message& message : rounds_[at(of).phase][at(of).step]->messages)
      send(of, other(of, message.receiver(place_of(of), members)), at(of).step, message.bytes, now_);
    ask(of, now_);
  }

  /// Leaves send, all others wait for those below.
  void begin_tree(Of of) {
    const Tree& tree = *phase_of(of).tree;
    const TreePlace place = tree_place(of);
    if (!place.children.empty()) return ask(of, now_);
    at(of).step = 1;
    const std::int64_t when = now_ + tree.endpoint_ns;
    send(of, other(of, *place.parent), 0, tree.bytes, when);
    ask(of, when);
  }

  /// Goes on if all has come that the chunk of a rank asks for.
  void proceed(Of of) {
    Chunk& chunk = at(of);
    if (!chunk.asked_at) return;
    const auto found = chunk.inbox.find({chunk.phase, chunk.step});
    const std::size_t count = found == chunk.inbox.end() ? 0 : found->second.count;
    const bool is_tree = phase_of(of).tree.has_value();
    if (count < (is_tree ? expected_in_tree(of) : rounds_[chunk.phase][chunk.step]->messages.size())) return;
    const std::int64_t when = std::max(*chunk.asked_at, count > 0 ? found->second.latest : 0);
    chunk.asked_at.reset();
    if (count > 0) chunk.inbox.erase(found);
    if (is_tree) return proceed_in_tree(of, when);
    const std::int64_t after = rounds_[chunk.phase][chunk.step]->after_ns;
    ++chunk.step;
    schedule(when + after, What::step, of);
  }

  std::size_t expected_in_tree(Of of) { return at(of).step == 0 ? tree_place(of).children.size() : 1; }

  void proceed_in_tree(Of of, std::int64_t when) {
    const Tree& tree = *phase_of(of).tree;
    const TreePlace place = tree_place(of);
    when += tree.endpoint_ns + (place.children.empty() ? 0 : tree.reduction_ns);
    if (at(of).step == 0 && place.parent) {
      at(of).step = 1;
      send(of, other(of, *place.parent), 0, tree.bytes, when);
      return ask(of, when);
    }
    for (const std::uint32_t child : place.children) send(of, other(of, child), 1, tree.bytes, when);
    schedule(when, What::phase_end, of);
  }

  const Chunks& chunks_;
  const std::vector<std::int64_t>& turns_;
  std::int64_t active_;
  const Network& network_;
  const std::vector<std::uint32_t>& ranks_;
  std::unordered_map<std::uint32_t, std::size_t> index_;  // by rank
  std::vector<State> states_;
  std::vector<std::vector<const Round*>> rounds_;  // by phase and step
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t now_ = 0, number_ = 0;
  std::vector<std::int64_t> ends_;
  bool has_ties_ = false;
};

}  // namespace

double every_rank_messages(const Chunks& chunks, std::size_t ranks) {
  double messages = 0;
  for (const Phase& phase : chunks.phases) {
    if (phase.tree) messages += 2;
    for (const Round& round : phase.rounds)
      messages += static_cast<double>(round.times) * static_cast<double>(round.messages.size());
  }
  return messages * static_cast<double>(chunks.count) * static_cast<double>(ranks);
}

std::int64_t trees_of(const Chunks& chunks, std::uint32_t dimension) {
  return std::count_if(chunks.phases.begin(), chunks.phases.end(),
                       [&](const Phase& phase) { return phase.tree && phase.queue == dimension; });
}

RankEnds every_rank_ends(const Chunks& chunks, const std::vector<std::int64_t>& turns, std::int64_t active_chunks,
                         const Network& network, const std::vector<std::uint32_t>& ranks,
                         const std::vector<std::int64_t>& entries) {
  return EveryRank(chunks, turns, active_chunks, network, ranks).run(entries);
}

}  // namespace manyworlds::experiments::astra_sim
