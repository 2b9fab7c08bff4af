// Generates the transfers of a ring. A row of transfers is a round of one slice in one channel; position i of it sends
// to position i + 1 of the channel's ring.
#include "core/collective/transfers/ring_generator.hpp"

#include <algorithm>

#include "core/collective/dag/transfer_generator.hpp"
#include "core/collective/transfers/mesh_orders.hpp"
#include "core/collective/transfers/ring_rounds.hpp"

namespace manyworlds::core::collective {
namespace {

class RingGenerator final : public TransferGenerator {
 public:
  RingGenerator(const Shape& shape, std::uint32_t width)
      : TransferGenerator(shape, width),
        slices_(slice_count(shape, chunk_bytes(shape.bytes, shape.members, 0))),
        first_round_(shape.kind == Kind::all_gather ? shape.members - 1 : 0),
        rounds_((shape.kind == Kind::all_reduce ? 2 : 1) * (shape.members - 1)),
        in_flight_(shape.chunk_bytes > 0 ? 2 : 1) {
    for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
      orders_.push_back(ring_order(shape, channel));
      auto& positions = positions_.emplace_back(width);
      for (std::uint32_t i = 0; i < width; ++i) positions[orders_.back()[i] % width] = i;
    }
  }

  /// The nodes of a ring are traversed forwards and backwards in turn. Blocks of unequal sizes go round, so that no
  /// rotation leaves the transfers as they are, nor does one inside a mesh, whose rings have different orders.
  std::uint32_t least_width() const override {
    const std::uint32_t p = shape_.per_node, n = shape_.members;
    if (!has_equal_blocks(shape_.channels * slices_)) return n;
    const std::uint32_t least = p == 1 || (p == n && !spreads_over_mesh(shape_)) ? 1 : 2 * p;
    return n % least == 0 ? least : n;
  }
  std::uint64_t transfer_rows() const override { return std::uint64_t{shape_.channels} * rounds_ * slices_; }
  std::uint32_t pair_rows() const override { return shape_.channels; }

  std::pair<std::uint32_t, std::uint32_t> ends(std::uint32_t pair) const override {
    const auto& order = orders_[pair / width_];
    const std::uint32_t i = pair % width_;
    return {order[i] % width_, order[(i + 1) % shape_.members] % width_};
  }

  Transfer transfer(std::uint32_t number) const override {
    const Place at = place(number);
    const std::uint32_t n = shape_.members, round = first_round_ + at.round;
    const auto& order = orders_[at.channel];
    const std::uint32_t block = order[(at.position + 2 * n - 1 - round) % n];
    const std::int64_t bytes =
        chunk_bytes(chunk_bytes(shape_.bytes, n, block), shape_.channels * slices_, at.channel * slices_ + at.slice);
    return transfer_between(order[at.position], order[(at.position + 1) % n], at.channel * width_ + at.position, bytes);
  }

  /// It waits for what it forwards and for an earlier one on its connection; without these, for its members.
  std::uint32_t wait_count(std::uint32_t number) const override {
    const Place at = place(number);
    const bool forwards = at.round > 0, follows = step(at) >= in_flight_;
    return forwards + follows + source_waits(at) + destination_waits(at);
  }

  void add_successors(std::uint32_t number, std::vector<std::uint32_t>& successors) const override {
    const Place at = place(number);
    const std::size_t first = successors.size();
    if (at.round + 1 < rounds_)
      successors.push_back(number_of({at.channel, at.round + 1, at.slice, (at.position + 1) % width_}));
    if (const std::uint32_t next = step(at) + in_flight_; next < rounds_ * slices_)
      successors.push_back(number_of({at.channel, next / slices_, next % slices_, at.position}));
    std::sort(successors.begin() + static_cast<std::ptrdiff_t>(first), successors.end());
  }

  void add_entry(std::uint32_t member, std::vector<std::uint32_t>& entry) const override {
    const std::size_t first = entry.size();
    for (std::uint32_t channel = 0; channel < shape_.channels; ++channel) {
      const std::uint32_t sends = positions_[channel][member], receives = (sends + width_ - 1) % width_;
      // Of later steps every one follows another.
      for (std::uint32_t i = 0; i < std::min(in_flight_, rounds_ * slices_); ++i) {
        const Place sent{channel, i / slices_, i % slices_, sends},
            received{channel, i / slices_, i % slices_, receives};
        if (source_waits(sent)) entry.push_back(number_of(sent));
        if (destination_waits(received)) entry.push_back(number_of(received));
      }
    }
    std::sort(entry.begin() + static_cast<std::ptrdiff_t>(first), entry.end());
  }

  std::uint32_t transfer_count(std::uint32_t) const override { return 2 * shape_.channels * rounds_ * slices_; }

 private:
  struct Place {
    std::uint32_t channel, round, slice, position;
  };
  Place place(std::uint32_t number) const {
    const std::uint32_t row = number / width_;
    return {row / slices_ / rounds_, row / slices_ % rounds_, row % slices_, number % width_};
  }
  std::uint32_t number_of(const Place& at) const {
    return ((at.channel * rounds_ + at.round) * slices_ + at.slice) * width_ + at.position;
  }
  /// Returns the number of a transfer among those of its connection.
  std::uint32_t step(const Place& at) const { return at.round * slices_ + at.slice; }
  // A member has entered if it takes part in what the transfer waits for.
  bool source_waits(const Place& at) const { return at.round == 0 && step(at) < in_flight_; }
  bool destination_waits(const Place& at) const {
    const bool of_two = shape_.members == 2 && at.round > 0;  // what it forwards came from the destination
    return step(at) < in_flight_ && !of_two;
  }

  std::uint32_t slices_, first_round_, rounds_;
  std::uint32_t in_flight_;                            // transfers on a connection
  std::vector<std::vector<std::uint32_t>> orders_;     // by channel: all members in ring order
  std::vector<std::vector<std::uint32_t>> positions_;  // by channel and member: its position
};

}  // namespace

std::shared_ptr<const TransferGenerator> ring_generator(const Shape& shape, std::uint32_t width) {
  return std::make_shared<RingGenerator>(shape, width);
}

}  // namespace manyworlds::core::collective
