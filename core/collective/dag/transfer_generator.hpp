// Generates a collective's transfers: what DagBuilder would write out, computed from the number of a transfer when it
// is asked for. A ring of n members has 2 n (n - 1) transfers, so a DAG that is written out grows with the square of
// its members.
//
// Transfers are numbered in rows of one transfer per position: transfer row * width + i belongs to position i, and so
// do connections. With `width` = the number of members, the generator is the DAG of build(), transfer by transfer. With
// a smaller width it is that DAG with members i, i + width, i + 2 width, … merged into one, which needs a rotation by
// `width` to leave the DAG unchanged: every transfer keeps its bytes and waits for as many others as before.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

class TransferGenerator {
 public:
  /// Throws InternalError unless `width` divides shape.members.
  TransferGenerator(const Shape& shape, std::uint32_t width);
  virtual ~TransferGenerator() = default;

  std::uint32_t width() const { return width_; }
  std::uint32_t all_members() const { return shape_.members; }
  Time launch_ps() const { return costs_.launch_ps; }
  std::uint64_t transfers() const { return transfer_rows() * width_; }
  std::uint32_t pairs() const { return pair_rows() * width_; }

  /// Returns the least width that the algorithm allows; shape.members if there is none below it.
  virtual std::uint32_t least_width() const = 0;
  virtual std::uint64_t transfer_rows() const = 0;
  virtual std::uint32_t pair_rows() const = 0;
  /// Returns the members at the ends of a connection, (source, destination), as in Dag::pairs.
  virtual std::pair<std::uint32_t, std::uint32_t> ends(std::uint32_t pair) const = 0;
  virtual Transfer transfer(std::uint32_t number) const = 0;
  /// Return what Dag has under these names. A successor or transfer occurs twice where it waits for two merged ones.
  virtual std::uint32_t wait_count(std::uint32_t number) const = 0;
  virtual void add_successors(std::uint32_t number, std::vector<std::uint32_t>& successors) const = 0;
  virtual void add_entry(std::uint32_t member, std::vector<std::uint32_t>& entry) const = 0;
  virtual std::uint32_t transfer_count(std::uint32_t member) const = 0;

 protected:
  /// Returns a transfer between two members of the whole collective.
  Transfer transfer_between(std::uint32_t source, std::uint32_t destination, std::uint32_t pair,
                            std::int64_t data_bytes) const;
  /// Returns whether the parts of all blocks of the buffer, one block per member and each in `parts` parts, are equally
  /// large on the wire. Their sizes in memory differ by a byte if they do not divide the buffer.
  bool has_equal_blocks(std::uint32_t parts) const;

  Shape shape_;
  std::uint32_t width_;
  ProtocolCosts costs_;
};

}  // namespace manyworlds::core::collective
