#include "core/collective/dag/dag_builder.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::uint32_t kJoinFlag =
    1u << 31;  // flag in the number of a join node; finish() replaces it by a number after all transfers
// Marks an empty slot of the hash table.
constexpr std::uint64_t kEmptySlot = UINT64_MAX;

}  // namespace

DagBuilder::DagBuilder(const Shape& shape, Trace* trace) : shape_(shape), trace_(trace), costs_(costs_of(shape)) {
  MANYWORLDS_CHECK(shape.members < 1u << 24 && shape.per_node > 0, "{} members, {} per node", shape.members,
                   shape.per_node);
  MANYWORLDS_CHECK(shape.split.even() || shape.split.bytes.size() == shape.members, "{} shares for {} members",
                   shape.split.bytes.size(), shape.members);
  split_offsets_.assign(1, 0);
  for (const std::int64_t each : shape.split.bytes) split_offsets_.push_back(split_offsets_.back() + each);
  MANYWORLDS_CHECK(shape.split.even() || split_offsets_.back() == shape.bytes, "shares of {} B make {} B", shape.bytes,
                   split_offsets_.back());
  dag_.launch_ps = costs_.launch_ps;
  dag_.members = shape.members;
  dag_.transfer_count.assign(shape.members, 0);
  connection_keys_.assign(64, kEmptySlot);
  connection_by_slot_.assign(64, 0);
}

void DagBuilder::set_block_partition(std::uint32_t blocks, std::uint32_t rows) {
  blocks_ = blocks;
  rows_ = rows;
}

DagBuilder::Block DagBuilder::block(std::uint32_t number) const {
  const std::uint32_t row = number / blocks_, column = number % blocks_;
  if (rows_ == 1 || shape_.split.even())
    return {row * shape_.bytes + chunk_begin(shape_.bytes, blocks_, column),
            chunk_bytes(shape_.bytes, blocks_, column)};
  const std::uint32_t member = shape_.split.by_source ? row : column;
  const std::int64_t bytes = shape_.split.bytes[member];
  if (shape_.split.by_source) return {rows_ * split_offsets_[row] + column * bytes, bytes};
  return {row * shape_.bytes + split_offsets_[column], bytes};
}

std::int64_t DagBuilder::bytes_of(const BlockSet& block_set) const {
  if (block_set.bytes >= 0) return block_set.bytes;
  if (block_set.shares == 1 && block_set.stride == 1 && rows_ == 1)
    return chunk_begin(shape_.bytes, blocks_, block_set.first + block_set.count) -
           chunk_begin(shape_.bytes, blocks_, block_set.first);
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < block_set.count; ++i)
    sum += chunk_bytes(block((block_set.first + i * block_set.stride) % (rows_ * blocks_)).bytes, block_set.shares,
                       block_set.share);
  return sum;
}

/// Records the bytes of the block set that a part of the transfer carries; `whole` are the transfer's on the wire.
void DagBuilder::record_part(std::uint32_t transfer, const BlockSet& block_set, const Part& part, std::int64_t whole) {
  std::vector<std::pair<std::int64_t, std::int64_t>> blocks;
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < block_set.count; ++i) {
    const Block full_block = block(block_set.first + i * block_set.stride);
    const std::int64_t begin = full_block.begin + chunk_begin(full_block.bytes, block_set.shares, block_set.share);
    blocks.emplace_back(begin, begin + chunk_bytes(full_block.bytes, block_set.shares, block_set.share));
    total += blocks.back().second - blocks.back().first;
  }
  if (part.ranges.empty() || whole == 0) {  // all of it
    for (const auto& [begin, end] : blocks) trace_->ranges.push_back({transfer, begin, end});
    return;
  }
  // Flags of a protocol and blocks that are sent once for several make the wire's bytes others than the blocks'.
  for (const auto& [from, to] : part.ranges) {
    std::int64_t at = 0;
    for (const auto& [begin, end] : blocks) {
      const std::int64_t first = std::max(at, from * total / whole),
                         last = std::min(at + end - begin, to * total / whole);
      if (first < last) trace_->ranges.push_back({transfer, begin + first - at, begin + last - at});
      at += end - begin;
    }
  }
}

void DagBuilder::grow_hash_table() {
  std::vector<std::uint64_t> keys(2 * connection_keys_.size(), kEmptySlot);
  std::vector<std::uint32_t> slots(keys.size(), 0);
  keys.swap(connection_keys_);
  slots.swap(connection_by_slot_);
  for (std::size_t old = 0; old < keys.size(); ++old) {
    if (keys[old] == kEmptySlot) continue;
    std::size_t at = keys[old] * 0x9E3779B97F4A7C15ull >> 32 & (connection_keys_.size() - 1);
    while (connection_keys_[at] != kEmptySlot) at = (at + 1) & (connection_keys_.size() - 1);
    connection_keys_[at] = keys[old];
    connection_by_slot_[at] = slots[old];
  }
}

std::uint32_t DagBuilder::connection_of(std::uint32_t source, std::uint32_t destination) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(channel_) << 48 | static_cast<std::uint64_t>(source) << 24 | destination;
  std::size_t at = key * 0x9E3779B97F4A7C15ull >> 32 & (connection_keys_.size() - 1);
  for (; connection_keys_[at] != kEmptySlot; at = (at + 1) & (connection_keys_.size() - 1))
    if (connection_keys_[at] == key) return connection_by_slot_[at];
  connection_keys_[at] = key;
  const auto connection = static_cast<std::uint32_t>(connections_.size());
  connection_by_slot_[at] = connection;
  connections_.emplace_back();
  pairs_.resize(connections_.size() * shape_.queue_pairs, kNoNode);
  if (2 * connections_.size() > connection_keys_.size()) grow_hash_table();
  return connection;
}

std::uint32_t DagBuilder::pair_of(std::uint32_t connection, std::uint32_t queue_pair, std::uint32_t source,
                                  std::uint32_t destination) {
  std::uint32_t& pair = pairs_[connection * shape_.queue_pairs + queue_pair];
  if (pair != kNoNode) return pair;
  pair = static_cast<std::uint32_t>(dag_.pairs.size());
  dag_.pairs.emplace_back(source, destination);
  return pair;
}

/// Sets `parts_` to the shares of queue pairs in a transfer. Those without a byte of it have none, but one queue pair
/// sends what is empty.
void DagBuilder::divide(Connection& connection, bool has_queue_pairs, std::int64_t bytes) {
  parts_.clear();
  const std::uint32_t n = has_queue_pairs ? shape_.queue_pairs : 1;
  if (n == 1) {
    parts_.push_back({0, bytes});
    return;
  }
  for (std::uint32_t i = 0; i < n; ++i) parts_.push_back({i});
  const auto give = [&](std::uint32_t queue_pair, std::int64_t begin, std::int64_t size) {
    parts_[queue_pair].bytes += size;
    if (trace_ != nullptr) parts_[queue_pair].ranges.emplace_back(begin, begin + size);
  };
  std::uint32_t kept_if_empty = 0;
  if (shape_.message_bytes == 0) {
    for (std::uint32_t i = 0; i < n; ++i) give(i, chunk_begin(bytes, n, i), chunk_bytes(bytes, n, i));
  } else {
    kept_if_empty = connection.next_queue_pair;
    const std::int64_t messages = std::max<std::int64_t>(1, (bytes + shape_.message_bytes - 1) / shape_.message_bytes);
    const auto of = [&](std::int64_t message) {
      return static_cast<std::uint32_t>((connection.next_queue_pair + message) % n);
    };
    for (std::int64_t i = 0; i < messages; ++i)
      give(of(i), i * shape_.message_bytes, std::min(shape_.message_bytes, bytes - i * shape_.message_bytes));
    connection.next_queue_pair = of(messages);
  }
  std::erase_if(parts_,
                [&](const Part& part) { return part.bytes == 0 && (bytes > 0 || part.queue_pair != kept_if_empty); });
}

std::uint32_t DagBuilder::add_switch(std::uint32_t a, std::uint32_t b) {
  dag_.switches.emplace_back(a, b);
  return dag_.members + static_cast<std::uint32_t>(dag_.switches.size()) - 1;
}

bool DagBuilder::crosses_nodes(std::uint32_t source, std::uint32_t destination) const {
  if (std::max(source, destination) < dag_.members) return node_of(source) != node_of(destination);
  const auto& [a, b] = dag_.switches[std::max(source, destination) - dag_.members];
  return node_of(a) != node_of(b);
}

bool DagBuilder::is_endpoint(std::uint32_t member, std::uint32_t node) const {
  if ((node & kJoinFlag) != 0) return join_members_[node ^ kJoinFlag] == member;
  const auto& [from, to] = dag_.pairs[dag_.transfers[node].pair];
  return from == member || to == member;
}

/// Makes `predecessors_` ascending, each node once, with all parts of every transfer.
void DagBuilder::find_dependencies() {
  std::sort(predecessors_.begin(), predecessors_.end());
  predecessors_.erase(std::unique(predecessors_.begin(), predecessors_.end()), predecessors_.end());
  if (!predecessors_.empty() && predecessors_.back() == kNoNode) predecessors_.pop_back();
  if (shape_.queue_pairs == 1) return;
  const std::size_t named = predecessors_.size();
  for (std::size_t i = 0; i < named; ++i) {
    const std::uint32_t first = predecessors_[i];
    if ((first & kJoinFlag) != 0) continue;
    for (std::uint32_t part = first + 1; part < dag_.message.size() && dag_.message[part] == first; ++part)
      predecessors_.push_back(part);
  }
  std::sort(predecessors_.begin(), predecessors_.end());
}

/// Sets the predecessors of `node`: the nodes in `predecessors_`, and the entries of `members`.
void DagBuilder::add_dependencies(std::uint32_t node, std::span<const std::uint32_t> members) {
  std::size_t wait_count = predecessors_.size();
  // A member of a predecessor has entered before it; only other members need an entry dependency.
  for (const std::uint32_t member : members)
    if (std::none_of(predecessors_.begin(), predecessors_.end(),
                     [&](std::uint32_t before) { return is_endpoint(member, before); }))
      entries_.emplace_back(member, node), ++wait_count;
  for (const std::uint32_t before : predecessors_) edges_.emplace_back(before, node);
  MANYWORLDS_CHECK(wait_count <= std::numeric_limits<std::uint16_t>::max(), "a node waits for {}", wait_count);
  ((node & kJoinFlag) != 0 ? join_wait_counts_ : dag_.wait_count).push_back(static_cast<std::uint16_t>(wait_count));
}

std::uint32_t DagBuilder::add(std::uint32_t source, std::uint32_t destination, const BlockSet& block_set, Effect effect,
                              std::span<const std::uint32_t> after) {
  MANYWORLDS_CHECK(source != destination, "member {} sends to itself", source);
  const auto number = static_cast<std::uint32_t>(dag_.transfers.size());
  const std::uint32_t connection_number = connection_of(source, destination);
  Connection& connection = connections_[connection_number];
  const bool inter_node = crosses_nodes(source, destination);
  // A switch forwards without delay, and has no queue pairs.
  const std::uint32_t delay = source >= dag_.members ? 0 : inter_node ? costs_.inter_node_ps : costs_.intra_node_ps;
  const std::int64_t bytes = costs_.wire_bytes(bytes_of(block_set), inter_node);
  divide(connection, inter_node && std::max(source, destination) < dag_.members, bytes);
  predecessors_.assign(after.begin(), after.end());
  predecessors_.push_back(shape_.chunk_bytes > 0 ? connection.second_last : connection.last);
  find_dependencies();
  connection.second_last = connection.last;
  connection.last = number;
  for (const Part& part : parts_) {
    const auto transfer = static_cast<std::uint32_t>(dag_.transfers.size());
    dag_.transfers.push_back({pair_of(connection_number, part.queue_pair, source, destination), delay, part.bytes});
    if (shape_.queue_pairs > 1) dag_.message.push_back(number);
    if (trace_ != nullptr) record_part(transfer, block_set, part, bytes), trace_->effects.push_back(effect);
    std::uint32_t members[2];
    std::size_t count = 0;
    for (const std::uint32_t member : {source, destination})
      if (member < dag_.members) ++dag_.transfer_count[member], members[count++] = member;
    add_dependencies(transfer, {members, count});
  }
  return number;
}

std::uint32_t DagBuilder::add_join(std::uint32_t member, std::span<const std::uint32_t> after) {
  const auto node = static_cast<std::uint32_t>(join_members_.size()) | kJoinFlag;
  join_members_.push_back(member);
  predecessors_.assign(after.begin(), after.end());
  find_dependencies();
  add_dependencies(node, {});
  return node;
}

namespace {

// Converts edges (from, to) to compressed rows: the successors of `from` i are [begin[i], begin[i + 1]) of `to`, in the
// order in which they were added.
void to_compressed_rows(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges, std::size_t rows,
                        std::vector<std::uint32_t>& begin, std::vector<std::uint32_t>& to) {
  begin.assign(rows + 1, 0);
  for (const auto& edge : edges) ++begin[edge.first + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  to.resize(edges.size());
  std::vector<std::uint32_t> at(begin.begin(), begin.end() - 1);
  for (const auto& edge : edges) to[at[edge.first]++] = edge.second;
}

}  // namespace

Dag DagBuilder::finish() {
  const auto transfers = static_cast<std::uint32_t>(dag_.transfers.size());
  if (!join_members_.empty()) {
    const auto number = [&](std::uint32_t& node) {
      if ((node & kJoinFlag) != 0) node = transfers + (node ^ kJoinFlag);
    };
    for (auto& [before, after] : edges_) number(before), number(after);
    dag_.wait_count.insert(dag_.wait_count.end(), join_wait_counts_.begin(), join_wait_counts_.end());
  }
  to_compressed_rows(edges_, dag_.wait_count.size(), dag_.successors_begin, dag_.successors);
  to_compressed_rows(entries_, dag_.members, dag_.entry_begin, dag_.entry);
  return std::move(dag_);
}

}  // namespace manyworlds::core::collective
