#include "core/collective/dag/dag_builder.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr std::uint32_t kJoint = 1u << 31;  // joints are numbered behind the transfers when all are known
constexpr std::uint64_t kFree = UINT64_MAX;

}  // namespace

DagBuilder::DagBuilder(const Shape& shape, Trace* trace) : shape_(shape), trace_(trace), costs_(costs_of(shape)) {
  MANYWORLDS_CHECK(shape.members < 1u << 24 && shape.per_node > 0, "{} members, {} per node", shape.members,
                   shape.per_node);
  MANYWORLDS_CHECK(shape.split.even() || shape.split.bytes.size() == shape.members, "{} shares for {} members",
                   shape.split.bytes.size(), shape.members);
  before_.assign(1, 0);
  for (const std::int64_t each : shape.split.bytes) before_.push_back(before_.back() + each);
  MANYWORLDS_CHECK(shape.split.even() || before_.back() == shape.bytes, "shares of {} B make {} B", shape.bytes,
                   before_.back());
  dag_.launch_ps = costs_.launch_ps;
  dag_.members = shape.members;
  dag_.uses.assign(shape.members, 0);
  keys_.assign(64, kFree);
  slots_.assign(64, 0);
}

void DagBuilder::cut(std::uint32_t blocks, std::uint32_t rows) {
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
  if (shape_.split.by_source) return {rows_ * before_[row] + column * bytes, bytes};
  return {row * shape_.bytes + before_[column], bytes};
}

std::int64_t DagBuilder::bytes_of(const Part& part) const {
  if (part.bytes >= 0) return part.bytes;
  if (part.shares == 1 && part.stride == 1 && rows_ == 1)
    return chunk_begin(shape_.bytes, blocks_, part.first + part.count) - chunk_begin(shape_.bytes, blocks_, part.first);
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < part.count; ++i)
    sum += chunk_bytes(block((part.first + i * part.stride) % (rows_ * blocks_)).bytes, part.shares, part.share);
  return sum;
}

void DagBuilder::record(std::uint32_t transfer, const Part& part, Effect effect) {
  for (std::uint32_t i = 0; i < part.count; ++i) {
    const Block whole = block(part.first + i * part.stride);
    const std::int64_t begin = whole.begin + chunk_begin(whole.bytes, part.shares, part.share);
    trace_->ranges.push_back({transfer, begin, begin + chunk_bytes(whole.bytes, part.shares, part.share)});
  }
  trace_->effects.push_back(effect);
}

void DagBuilder::grow() {
  std::vector<std::uint64_t> keys(2 * keys_.size(), kFree);
  std::vector<std::uint32_t> slots(keys.size(), 0);
  keys.swap(keys_);
  slots.swap(slots_);
  for (std::size_t old = 0; old < keys.size(); ++old) {
    if (keys[old] == kFree) continue;
    std::size_t at = keys[old] * 0x9E3779B97F4A7C15ull >> 32 & (keys_.size() - 1);
    while (keys_[at] != kFree) at = (at + 1) & (keys_.size() - 1);
    keys_[at] = keys[old];
    slots_[at] = slots[old];
  }
}

std::uint32_t DagBuilder::pair_of(std::uint32_t source, std::uint32_t destination) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(channel_) << 48 | static_cast<std::uint64_t>(source) << 24 | destination;
  std::size_t at = key * 0x9E3779B97F4A7C15ull >> 32 & (keys_.size() - 1);
  for (; keys_[at] != kFree; at = (at + 1) & (keys_.size() - 1))
    if (keys_[at] == key) return slots_[at];
  keys_[at] = key;
  const auto pair = static_cast<std::uint32_t>(dag_.pairs.size());
  slots_[at] = pair;
  dag_.pairs.emplace_back(source, destination);
  connections_.emplace_back();
  if (2 * dag_.pairs.size() > keys_.size()) grow();
  return pair;
}

std::uint32_t DagBuilder::add_switch(std::uint32_t a, std::uint32_t b) {
  dag_.switches.emplace_back(a, b);
  return dag_.members + static_cast<std::uint32_t>(dag_.switches.size()) - 1;
}

bool DagBuilder::is_between(std::uint32_t source, std::uint32_t destination) const {
  if (std::max(source, destination) < dag_.members) return node_of(source) != node_of(destination);
  const auto& [a, b] = dag_.switches[std::max(source, destination) - dag_.members];
  return node_of(a) != node_of(b);
}

bool DagBuilder::takes_part(std::uint32_t member, std::uint32_t node) const {
  if ((node & kJoint) != 0) return joint_members_[node ^ kJoint] == member;
  const auto& [from, to] = dag_.pairs[dag_.transfers[node].pair];
  return from == member || to == member;
}

/// Puts `node` behind those in `after_` and behind the entries of `members`.
void DagBuilder::order(std::uint32_t node, std::span<const std::uint32_t> members) {
  std::sort(after_.begin(), after_.end());
  after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
  if (!after_.empty() && after_.back() == kNoNode) after_.pop_back();
  std::size_t waits = after_.size();
  // A member that takes part in a node before this one has entered; the others must be waited for.
  for (const std::uint32_t member : members)
    if (std::none_of(after_.begin(), after_.end(), [&](std::uint32_t before) { return takes_part(member, before); }))
      entries_.emplace_back(member, node), ++waits;
  for (const std::uint32_t before : after_) edges_.emplace_back(before, node);
  MANYWORLDS_CHECK(waits <= std::numeric_limits<std::uint16_t>::max(), "a node waits for {}", waits);
  ((node & kJoint) != 0 ? joint_waits_ : dag_.waits).push_back(static_cast<std::uint16_t>(waits));
}

std::uint32_t DagBuilder::add(std::uint32_t source, std::uint32_t destination, const Part& part, Effect effect,
                              std::span<const std::uint32_t> after) {
  MANYWORLDS_CHECK(source != destination, "member {} sends to itself", source);
  const auto number = static_cast<std::uint32_t>(dag_.transfers.size());
  const std::uint32_t pair = pair_of(source, destination);
  const bool between = is_between(source, destination);
  // What a switch sends on, it sends at once.
  const std::uint32_t delay = source >= dag_.members ? 0 : between ? costs_.between_ps : costs_.inside_ps;
  dag_.transfers.push_back({pair, delay, costs_.wire_bytes(bytes_of(part))});
  if (trace_ != nullptr) record(number, part, effect);
  Connection& connection = connections_[pair];
  after_.assign(after.begin(), after.end());
  after_.push_back(shape_.chunk_bytes > 0 ? connection.before_last : connection.last);
  connection.before_last = connection.last;
  connection.last = number;
  std::uint32_t members[2];
  std::size_t count = 0;
  for (const std::uint32_t member : {source, destination})
    if (member < dag_.members) ++dag_.uses[member], members[count++] = member;
  order(number, {members, count});
  return number;
}

std::uint32_t DagBuilder::join(std::uint32_t member, std::span<const std::uint32_t> after) {
  const auto node = static_cast<std::uint32_t>(joint_members_.size()) | kJoint;
  joint_members_.push_back(member);
  after_.assign(after.begin(), after.end());
  order(node, {});
  return node;
}

namespace {

// Edges (from, to) as rows: of `from` i, [begin[i], begin[i + 1]) of `to`, in the order they were added.
void by_row(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges, std::size_t rows,
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
  if (!joint_members_.empty()) {
    const auto number = [&](std::uint32_t& node) {
      if ((node & kJoint) != 0) node = transfers + (node ^ kJoint);
    };
    for (auto& [before, after] : edges_) number(before), number(after);
    dag_.waits.insert(dag_.waits.end(), joint_waits_.begin(), joint_waits_.end());
  }
  by_row(edges_, dag_.waits.size(), dag_.successors_begin, dag_.successors);
  by_row(entries_, dag_.members, dag_.entry_begin, dag_.entry);
  return std::move(dag_);
}

}  // namespace manyworlds::core::collective
