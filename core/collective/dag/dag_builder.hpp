// Builds a DAG transfer by transfer. Each transfer is described by the blocks of the buffer that it carries; its bytes,
// its protocol costs and the trace that tests replay follow from that description.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/collective/dag/dag.hpp"

namespace manyworlds::core::collective {

/// A set of blocks of the buffer, as partitioned by DagBuilder::set_block_partition(): `count` blocks from `first` on,
/// `stride` apart, and part `share` of `shares` of each. `bytes` is the size on the wire if blocks are deduplicated;
/// -1: their own size.
struct BlockSet {
  std::uint32_t first = 0, count = 1, stride = 1;
  std::uint32_t share = 0, shares = 1;
  std::int64_t bytes = -1;
};

/// What the destination does with the data.
enum class Effect : std::uint8_t { copy, reduce };

/// The data that a DAG's transfers carry, as byte ranges of the operation's whole buffer: for an all_to_all the send
/// buffers of all members, concatenated; otherwise the vector (or the gathered result), of which every member has a
/// copy.
struct Trace {
  struct Range {
    std::uint32_t transfer = 0;
    std::int64_t begin = 0, end = 0;
  };
  std::vector<Range> ranges;    // in the order of transfers
  std::vector<Effect> effects;  // by transfer
};

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

class DagBuilder {
 public:
  explicit DagBuilder(const Shape& shape, Trace* trace = nullptr);

  /// Sets the block partition for the following transfers: a buffer of `rows` x shape.bytes with `blocks` blocks per
  /// row. The blocks of a row are as equal as possible or, if there are several rows, have the sizes of the shape's
  /// split.
  void set_block_partition(std::uint32_t blocks, std::uint32_t rows = 1);
  std::int64_t bytes_of(const BlockSet& block_set) const;

  /// Sets the channel of the following transfers. Each channel has its own connections.
  void set_channel(std::uint32_t channel) { channel_ = channel; }

  /// Adds a switch that `a` and `b` are connected to, and returns its number as a source or destination of transfers.
  std::uint32_t add_switch(std::uint32_t a, std::uint32_t b);

  /// Adds a transfer after the nodes `after` (kNoNode and duplicates are ignored) and after the previous transfer on
  /// its connection (with chunks, after the one before that, so that two are in flight). Returns its node. Between
  /// nodes it is as many transfers as queue pairs have a share of it (Shape::queue_pairs), for all of which that node
  /// stands as one of `after`.
  std::uint32_t add(std::uint32_t source, std::uint32_t destination, const BlockSet& block_set, Effect effect,
                    std::span<const std::uint32_t> after);
  std::uint32_t add(std::uint32_t source, std::uint32_t destination, const BlockSet& block_set, Effect effect,
                    std::initializer_list<std::uint32_t> after = {}) {
    return add(source, destination, block_set, effect, std::span(after.begin(), after.size()));
  }

  /// Adds a join node of `member`, which finishes when all nodes in `after` have finished. The member must be an
  /// endpoint of each of them. Returns its node.
  std::uint32_t add_join(std::uint32_t member, std::span<const std::uint32_t> after);

  /// Returns the DAG; the builder must not be used afterwards.
  Dag finish();

 private:
  struct Connection {
    std::uint32_t last = kNoNode, second_last = kNoNode;
    std::uint32_t next_queue_pair = 0;  // that takes its next message
  };
  /// What one queue pair sends of a transfer.
  struct Part {
    std::uint32_t queue_pair = 0;
    std::int64_t bytes = 0;                                          // on the wire
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges = {};  // of the transfer's bytes
  };

  struct Block {
    std::int64_t begin, bytes;
  };
  Block block(std::uint32_t number) const;
  std::uint32_t connection_of(std::uint32_t source, std::uint32_t destination);
  std::uint32_t pair_of(std::uint32_t connection, std::uint32_t queue_pair, std::uint32_t source,
                        std::uint32_t destination);
  void divide(Connection& connection, bool has_queue_pairs, std::int64_t bytes);
  void grow_hash_table();
  std::uint32_t node_of(std::uint32_t member) const { return member / shape_.per_node; }
  bool crosses_nodes(std::uint32_t source, std::uint32_t destination) const;
  void record_part(std::uint32_t transfer, const BlockSet& block_set, const Part& part, std::int64_t whole);
  bool is_endpoint(std::uint32_t member, std::uint32_t node) const;
  void find_dependencies();
  void add_dependencies(std::uint32_t node, std::span<const std::uint32_t> members);

  Shape shape_;
  Trace* trace_;
  Dag dag_;
  std::uint32_t blocks_ = 1, rows_ = 1, channel_ = 0;
  std::vector<std::int64_t> split_offsets_;  // bytes of the split before each member
  ProtocolCosts costs_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> pairs_;               // by connection and queue pair; kNoNode before its first transfer
  std::vector<Part> parts_;                        // of the transfer being added
  std::vector<std::uint64_t> connection_keys_;     // hash table with open addressing: (channel, source, destination)
  std::vector<std::uint32_t> connection_by_slot_;  // by slot of the hash table: its connection
  std::vector<std::uint32_t> predecessors_;        // predecessors of the node being added
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries_;  // (member, node)
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;    // (before, after)
  std::vector<std::uint32_t> join_members_;                       // by join node
  std::vector<std::uint16_t> join_wait_counts_;
};

}  // namespace manyworlds::core::collective
