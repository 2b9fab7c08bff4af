// Generates the transfers of a two-level collective. A row of transfers is a round of one slice in one channel;
// position i of it is what member i sends.
#include "core/collective/transfers/two_level_generator.hpp"

#include <algorithm>
#include <array>

#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

class TwoLevelGenerator final : public TransferGenerator {
 public:
  TwoLevelGenerator(const Shape& shape, std::uint32_t width)
      : TransferGenerator(shape, width),
        nodes_(shape.members / shape.per_node),
        slices_(two_level_slices(shape)),
        in_flight_(shape.chunk_bytes > 0 ? 2 : 1) {
    const bool reduce = shape.kind != Kind::all_gather, gather = shape.kind != Kind::reduce_scatter;
    if (reduce) add_phase(false, {true, false});
    add_phase(true, {reduce, gather});
    if (gather) add_phase(false, {false, true});
  }

  /// Blocks of unequal sizes go round between nodes, so that no rotation leaves the transfers as they are. Inside nodes
  /// the sizes depend on the local index alone.
  std::uint32_t least_width() const override {
    return has_equal_blocks(shape_.channels * slices_) ? shape_.per_node : shape_.members;
  }
  std::uint64_t transfer_rows() const override { return std::uint64_t{shape_.channels} * rows_; }
  std::uint32_t pair_rows() const override { return shape_.channels * pair_rows_; }

  std::pair<std::uint32_t, std::uint32_t> ends(std::uint32_t pair) const override {
    const std::uint32_t row = pair / width_ % pair_rows_, member = pair % width_;
    const auto phase =
        std::find_if(phases_.begin(), phases_.end(), [&](const Phase& one) { return one.pair_row == row; });
    return {member, next(*phase, member) % width_};
  }

  Transfer transfer(std::uint32_t number) const override {
    const Place at = place(number);
    const Phase& phase = phases_[at.phase];
    const std::uint32_t pair = (at.channel * pair_rows_ + phase.pair_row) * width_ + at.member;
    return transfer_between(at.member, next(phase, at.member), pair, data_bytes(at));
  }

  std::uint32_t wait_count(std::uint32_t number) const override {
    const Place at = place(number);
    const Before before = before_of(at);
    return before.count + waits_for_entry(before, at.member) + waits_for_entry(before, destination(at));
  }

  void add_successors(std::uint32_t number, std::vector<std::uint32_t>& successors) const override {
    const Place at = place(number);
    const Phase& phase = phases_[at.phase];
    const std::uint32_t receiver = destination(at);
    std::vector<Place> after;
    if (at.round + 1 < phase.rounds) {
      after.push_back({at.channel, at.phase, at.round + 1, at.slice, receiver});
    } else if (at.phase + 1 < phases_.size()) {
      const Phase& following = phases_[at.phase + 1];
      for (const std::uint32_t member : {at.member, receiver}) {
        const std::uint32_t sender = previous(following, member);
        after.push_back({at.channel, at.phase + 1, 0, at.slice, member});
        after.push_back({at.channel, at.phase + 1, 0, at.slice, sender});
        if (following.rounds > 1) after.push_back({at.channel, at.phase + 1, 1, at.slice, sender});
      }
    }
    if (Place later = at; move_on_connection(later, in_flight_)) after.push_back(later);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    const std::size_t first = successors.size();
    for (const Place& one : after) successors.push_back(number_of(one));
    std::sort(successors.begin() + static_cast<std::ptrdiff_t>(first), successors.end());
  }

  /// What comes later waits for a transfer of either member.
  void add_entry(std::uint32_t member, std::vector<std::uint32_t>& entry) const override {
    const std::size_t first = entry.size();
    const Phase& phase = phases_.front();
    for (std::uint32_t channel = 0; channel < shape_.channels; ++channel)
      for (std::uint32_t i = 0; i < std::min(in_flight_, phase.rounds * slices_); ++i)
        for (const std::uint32_t sender : {member, previous(phase, member)}) {
          const Place at{channel, 0, i / slices_, i % slices_, sender};
          if (waits_for_entry(before_of(at), member)) entry.push_back(number_of(at));
        }
    std::sort(entry.begin() + static_cast<std::ptrdiff_t>(first), entry.end());
  }

  std::uint32_t transfer_count(std::uint32_t) const override { return 2 * shape_.channels * rows_; }

 private:
  /// The rounds of the rings on one level: inside nodes, or between members of equal local index.
  struct Phase {
    bool inter_node;
    std::uint32_t first_round;  // of those that rings have which reduce and gather
    std::uint32_t rounds, first_row, pair_row;
    std::uint32_t first_step;  // transfers of its connections before it
  };
  /// A transfer, by the member of the whole collective that sends it. `round` counts from the first one of the phase.
  struct Place {
    std::uint32_t channel, phase, round, slice, member;
    auto operator<=>(const Place&) const = default;
  };
  /// The transfers that one waits for, each once.
  struct Before {
    std::array<Place, 5> places;
    std::uint32_t count = 0;
    void add(const Place& place) {
      if (std::find(places.begin(), places.begin() + count, place) == places.begin() + count) places[count++] = place;
    }
  };

  void add_phase(bool inter_node, RingPhases phases) {
    const std::uint32_t n = inter_node ? nodes_ : shape_.per_node;
    if (n < 2) return;
    Phase phase{inter_node, phases.reduce ? 0 : n - 1, (phases.reduce + phases.gather) * (n - 1), rows_, pair_rows_, 0};
    for (const Phase& earlier : phases_)
      if (earlier.inter_node == inter_node)
        phase.pair_row = earlier.pair_row, phase.first_step = earlier.rounds * slices_;
    pair_rows_ = std::max(pair_rows_, phase.pair_row + 1);
    rows_ += phase.rounds * slices_;
    phases_.push_back(phase);
  }

  std::uint32_t next(const Phase& phase, std::uint32_t member) const { return moved(phase, member, 1); }
  std::uint32_t previous(const Phase& phase, std::uint32_t member) const {
    return moved(phase, member, (phase.inter_node ? nodes_ : shape_.per_node) - 1);
  }
  /// Returns the member that is some positions further in the ring of `member`.
  std::uint32_t moved(const Phase& phase, std::uint32_t member, std::uint32_t positions) const {
    const std::uint32_t p = shape_.per_node, local = member % p, node = member / p;
    return phase.inter_node ? (node + positions) % nodes_ * p + local : node * p + (local + positions) % p;
  }
  std::uint32_t destination(const Place& at) const { return next(phases_[at.phase], at.member); }

  Place place(std::uint32_t number) const {
    const std::uint32_t row = number / width_, of_channel = row % rows_;
    std::uint32_t phase = 0;
    while (phase + 1 < phases_.size() && phases_[phase + 1].first_row <= of_channel) ++phase;
    const std::uint32_t step = of_channel - phases_[phase].first_row;
    return {row / rows_, phase, step / slices_, step % slices_, number % width_};
  }
  std::uint32_t number_of(const Place& at) const {
    const std::uint32_t row = at.channel * rows_ + phases_[at.phase].first_row + at.round * slices_ + at.slice;
    return row * width_ + at.member % width_;
  }

  /// Moves `at` by some transfers along its connection; returns false if there is none there.
  bool move_on_connection(Place& at, std::int64_t transfers) const {
    const std::uint32_t pair_row = phases_[at.phase].pair_row;
    const std::int64_t step = phases_[at.phase].first_step + at.round * slices_ + at.slice + transfers;
    for (at.phase = 0; at.phase < phases_.size(); ++at.phase) {
      const Phase& phase = phases_[at.phase];
      if (phase.pair_row != pair_row || step < phase.first_step || step >= phase.first_step + phase.rounds * slices_)
        continue;
      const auto local = static_cast<std::uint32_t>(step - phase.first_step);
      at.round = local / slices_, at.slice = local % slices_;
      return true;
    }
    return false;
  }

  /// A transfer waits for what it forwards, or, at the begin of a phase, for all that its members did in the one
  /// before; so does the second for its destination. On a connection it waits for an earlier one.
  Before before_of(const Place& at) const {
    Before before;
    const auto add_frontier = [&](std::uint32_t member) {
      if (at.phase == 0) return;
      const Phase& phase = phases_[at.phase - 1];
      for (const std::uint32_t sender : {member, previous(phase, member)})
        before.add({at.channel, at.phase - 1, phase.rounds - 1, at.slice, sender});
    };
    if (at.round == 0)
      add_frontier(at.member);
    else
      before.add({at.channel, at.phase, at.round - 1, at.slice, previous(phases_[at.phase], at.member)});
    if (at.round <= 1) add_frontier(destination(at));
    if (Place earlier = at; move_on_connection(earlier, -std::int64_t{in_flight_})) before.add(earlier);
    return before;
  }

  /// Returns whether nothing in `before` implies that `member` has entered.
  bool waits_for_entry(const Before& before, std::uint32_t member) const {
    return std::none_of(before.places.begin(), before.places.begin() + before.count,
                        [&](const Place& one) { return one.member == member || destination(one) == member; });
  }

  std::int64_t data_bytes(const Place& at) const {
    const Phase& phase = phases_[at.phase];
    const std::uint32_t n = shape_.members, p = shape_.per_node, ring = phase.inter_node ? nodes_ : p;
    const std::uint32_t shares = shape_.channels * slices_, share = at.channel * slices_ + at.slice;
    // The block of the member that is a round's number of positions behind the sender, and one more.
    const std::uint32_t owner = moved(phase, at.member, (2 * ring - 1 - (phase.first_round + at.round)) % ring);
    if (phase.inter_node) return chunk_bytes(chunk_bytes(shape_.bytes, n, owner), shares, share);
    const std::uint32_t local = owner % p;
    const auto larger = static_cast<std::uint32_t>(shape_.bytes % n);  // blocks that have one byte more
    const std::uint32_t larger_here = larger > local ? (larger - local + p - 1) / p : 0;
    return larger_here * chunk_bytes(shape_.bytes / n + 1, shares, share) +
           (nodes_ - larger_here) * chunk_bytes(shape_.bytes / n, shares, share);
  }

  std::uint32_t nodes_, slices_;
  std::uint32_t in_flight_;  // transfers on a connection
  std::vector<Phase> phases_;
  std::uint32_t rows_ = 0, pair_rows_ = 0;  // of one channel
};

}  // namespace

std::uint32_t two_level_slices(const Shape& shape) {
  Shape block = shape;
  if (shape.per_node > 1 && shape.chunk_bytes > 0)
    block.chunk_bytes = std::max<std::int64_t>(1, shape.chunk_bytes / (shape.members / shape.per_node));
  return slice_count(block, chunk_bytes(shape.bytes, shape.members, 0));
}

std::shared_ptr<const TransferGenerator> two_level_generator(const Shape& shape, std::uint32_t width) {
  if (shape.node_mesh) return nullptr;
  return std::make_shared<TwoLevelGenerator>(shape, width);
}

}  // namespace manyworlds::core::collective
