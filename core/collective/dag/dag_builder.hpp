// Builds a DAG transfer by transfer, each named by the part of the buffer it carries: bytes, protocol costs and what
// the tests play come from the same description.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// A set of blocks of the buffer as DagBuilder::cut() left it: `count` blocks from `first` on, `stride` apart, and of
/// each of them share `share` of `shares`. Blocks with much in common go in fewer `bytes` than they have; -1: in
/// theirs.
struct Part {
  std::uint32_t first = 0, count = 1, stride = 1;
  std::uint32_t share = 0, shares = 1;
  std::int64_t bytes = -1;
};

/// What the destination does with it.
enum class Effect : std::uint8_t { copy, reduce };

/// What a DAG's transfers carry, in bytes of the operation's whole buffer: of an all_to_all the send buffers of all
/// members one after another; else the vector (or gathered result), of which every member has a copy.
struct Trace {
  struct Range {
    std::uint32_t transfer = 0;
    std::int64_t begin = 0, end = 0;
  };
  std::vector<Range> ranges;    // by transfer
  std::vector<Effect> effects;  // of each transfer
};

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

class DagBuilder {
 public:
  explicit DagBuilder(const Shape& shape, Trace* trace = nullptr);

  /// From now on the buffer of `rows` x shape.bytes is cut into `blocks` blocks a row, as even as bytes allow, or where
  /// there are several rows as the shape's split has it.
  void cut(std::uint32_t blocks, std::uint32_t rows = 1);
  std::int64_t bytes_of(const Part& part) const;

  /// Channels have connections of their own.
  void set_channel(std::uint32_t channel) { channel_ = channel; }

  /// A switch on which `a` and `b` hang, as a source and destination of transfers.
  std::uint32_t add_switch(std::uint32_t a, std::uint32_t b);

  /// Adds a transfer after the given nodes (kNoNode and duplicates do not count) and after the transfer before it on
  /// its connection (with chunks the one before that, so that two are under way). Returns its number.
  std::uint32_t add(std::uint32_t source, std::uint32_t destination, const Part& part, Effect effect,
                    std::span<const std::uint32_t> after);
  std::uint32_t add(std::uint32_t source, std::uint32_t destination, const Part& part, Effect effect,
                    std::initializer_list<std::uint32_t> after = {}) {
    return add(source, destination, part, effect, std::span(after.begin(), after.size()));
  }

  /// A joint of `member`: after it stands for after all of `after`, in which the member takes part.
  std::uint32_t join(std::uint32_t member, std::span<const std::uint32_t> after);

  Dag finish();

 private:
  struct Connection {
    std::uint32_t last = kNoNode, before_last = kNoNode;
  };

  struct Block {
    std::int64_t begin, bytes;
  };
  Block block(std::uint32_t number) const;
  std::uint32_t pair_of(std::uint32_t source, std::uint32_t destination);
  void grow();
  std::uint32_t node_of(std::uint32_t member) const { return member / shape_.per_node; }
  bool is_between(std::uint32_t source, std::uint32_t destination) const;
  void record(std::uint32_t transfer, const Part& part, Effect effect);
  bool takes_part(std::uint32_t member, std::uint32_t node) const;
  void order(std::uint32_t node, std::span<const std::uint32_t> members);

  Shape shape_;
  Trace* trace_;
  Dag dag_;
  std::uint32_t blocks_ = 1, rows_ = 1, channel_ = 0;
  std::vector<std::int64_t> before_;  // bytes of the split before each member
  ProtocolCosts costs_;
  std::vector<Connection> connections_;                           // by pair
  std::vector<std::uint64_t> keys_;                               // open addressing: what a slot is for
  std::vector<std::uint32_t> slots_;                              // its pair
  std::vector<std::uint32_t> after_;                              // of the node being added
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries_;  // (member, node)
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;    // (before, after)
  std::vector<std::uint32_t> joint_members_;                      // by joint
  std::vector<std::uint16_t> joint_waits_;
};

}  // namespace manyworlds::core::collective
