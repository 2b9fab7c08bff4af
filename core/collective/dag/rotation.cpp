#include "core/collective/dag/rotation.hpp"

#include <algorithm>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

/// The transfers of each connection, in order, and the position of each transfer there.
struct TransferPositions {
  std::vector<std::vector<std::uint32_t>> by_pair;
  std::vector<std::uint32_t> position;  // by transfer
  explicit TransferPositions(const Dag& dag) : by_pair(dag.pairs.size()) {
    for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
      auto& pair_transfers = by_pair[dag.transfers[i].pair];
      position.push_back(static_cast<std::uint32_t>(pair_transfers.size()));
      pair_transfers.push_back(i);
    }
  }
};

/// Connections by their endpoints. If two members have several connections (one per channel), each has an index among
/// them.
class ConnectionIndex {
 public:
  explicit ConnectionIndex(const Dag& dag) : dag_(dag) {
    for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
      auto& all = by_endpoints_[dag.pairs[pair]];
      channel_index_.push_back(static_cast<std::uint32_t>(all.size()));
      all.push_back(pair);
    }
  }
  /// Returns the connection onto which a rotation of the members by `shift` maps `pair`; kNone if there is none.
  std::uint32_t rotated(std::uint32_t pair, std::uint32_t shift) const {
    const auto& [source, destination] = dag_.pairs[pair];
    const auto all = by_endpoints_.find({(source + shift) % dag_.members, (destination + shift) % dag_.members});
    return all == by_endpoints_.end() || channel_index_[pair] >= all->second.size() ? kNone
                                                                                    : all->second[channel_index_[pair]];
  }
  static constexpr std::uint32_t kNone = UINT32_MAX;

 private:
  const Dag& dag_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> by_endpoints_;
  std::vector<std::uint32_t> channel_index_;  // by pair
};

/// Compressed rows: row i is [begin[i], begin[i + 1]) of `to`.
struct CompressedRows {
  const std::vector<std::uint32_t>&begin, &to;
  std::vector<std::uint32_t> sorted(std::uint32_t row) const {
    std::vector<std::uint32_t> result(to.begin() + begin[row], to.begin() + begin[row + 1]);
    std::sort(result.begin(), result.end());
    return result;
  }
};

/// Returns whether the DAG is invariant under a rotation of its members by `shift`.
bool is_invariant(const Dag& dag, const ConnectionIndex& connections, const TransferPositions& positions,
                  const std::vector<std::uint32_t>& paths, std::uint32_t shift) {
  std::vector<std::uint32_t> pair_to;
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    pair_to.push_back(connections.rotated(pair, shift));
    if (pair_to[pair] == ConnectionIndex::kNone || paths[pair] != paths[pair_to[pair]] ||
        positions.by_pair[pair].size() != positions.by_pair[pair_to[pair]].size())
      return false;
  }
  const auto to = [&](std::uint32_t transfer) {
    return positions.by_pair[pair_to[dag.transfers[transfer].pair]][positions.position[transfer]];
  };
  const auto same_rows = [&](CompressedRows rows, std::uint32_t row, std::uint32_t other) {
    std::vector<std::uint32_t> rotated(rows.to.begin() + rows.begin[row], rows.to.begin() + rows.begin[row + 1]);
    for (std::uint32_t& transfer : rotated) transfer = to(transfer);
    std::sort(rotated.begin(), rotated.end());
    return rotated == rows.sorted(other);
  };
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
    const Transfer &one = dag.transfers[i], &other = dag.transfers[to(i)];
    if (one.bytes != other.bytes || one.delay_ps != other.delay_ps || dag.wait_count[i] != dag.wait_count[to(i)] ||
        !same_rows({dag.successors_begin, dag.successors}, i, to(i)))
      return false;
  }
  for (std::uint32_t member = 0; member < dag.members; ++member)
    if (!same_rows({dag.entry_begin, dag.entry}, member, (member + shift) % dag.members)) return false;
  return true;
}

}  // namespace

std::uint32_t rotation_period(const Dag& dag, const std::vector<std::uint32_t>& paths) {
  if (dag.switches.empty() && dag.wait_count.size() == dag.transfers.size()) {
    const ConnectionIndex connections(dag);
    const TransferPositions positions(dag);
    for (std::uint32_t rotation = 1; rotation < dag.members; ++rotation)
      if (dag.members % rotation == 0 && is_invariant(dag, connections, positions, paths, rotation)) return rotation;
  }
  return dag.members;
}

QuotientDag quotient_dag(const Dag& dag, std::uint32_t rotation) {
  MANYWORLDS_CHECK(rotation > 0 && dag.members % rotation == 0, "{} members turned by {}", dag.members, rotation);
  QuotientDag result;
  Dag& one = result.dag;
  one.members = rotation;
  one.launch_ps = dag.launch_ps;
  one.transfer_count.assign(dag.transfer_count.begin(), dag.transfer_count.begin() + rotation);
  const TransferPositions positions(dag);
  // Of all connections that rotations map onto each other, the quotient keeps the one whose source is a kept member.
  std::vector<std::uint32_t> number(dag.pairs.size());
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    if (dag.pairs[pair].first >= rotation) continue;
    number[pair] = static_cast<std::uint32_t>(result.pairs.size());
    result.pairs.push_back(pair);
    one.pairs.emplace_back(dag.pairs[pair].first, dag.pairs[pair].second % rotation);
  }
  const ConnectionIndex connections(dag);
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    const std::uint32_t image = connections.rotated(pair, dag.members - dag.pairs[pair].first / rotation * rotation);
    MANYWORLDS_CHECK(image != ConnectionIndex::kNone, "a turn by {} is none that leaves the DAG as it is", rotation);
    result.representative.push_back(number[image]);
  }
  std::vector<std::uint32_t> new_number(dag.transfers.size());
  const auto representative = [&](std::uint32_t transfer) {
    return new_number[positions.by_pair[result.pairs[result.representative[dag.transfers[transfer].pair]]]
                                       [positions.position[transfer]]];
  };
  const auto is_kept = [&](std::uint32_t transfer) { return dag.pairs[dag.transfers[transfer].pair].first < rotation; };
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
    if (!is_kept(i)) continue;
    new_number[i] = static_cast<std::uint32_t>(one.transfers.size());
    if (!dag.message.empty()) one.message.push_back(new_number[dag.message[i]]);  // all parts have one source
    one.transfers.push_back({number[dag.transfers[i].pair], dag.transfers[i].delay_ps, dag.transfers[i].bytes});
    one.wait_count.push_back(dag.wait_count[i]);
  }
  // Every kept node waits for as many nodes and entries as before. Predecessors that belong to other members are
  // replaced by their representatives.
  std::vector<std::vector<std::uint32_t>> successors(one.transfers.size()), entry(rotation);
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i)
    for (std::uint32_t at = dag.successors_begin[i]; at < dag.successors_begin[i + 1]; ++at)
      if (is_kept(dag.successors[at])) successors[representative(i)].push_back(new_number[dag.successors[at]]);
  for (std::uint32_t member = 0; member < dag.members; ++member)
    for (std::uint32_t at = dag.entry_begin[member]; at < dag.entry_begin[member + 1]; ++at)
      if (is_kept(dag.entry[at])) entry[member % rotation].push_back(new_number[dag.entry[at]]);
  const auto write = [](const std::vector<std::vector<std::uint32_t>>& rows, std::vector<std::uint32_t>& begin,
                        std::vector<std::uint32_t>& to) {
    begin.assign(1, 0);
    for (const auto& row : rows) {
      to.insert(to.end(), row.begin(), row.end());
      begin.push_back(static_cast<std::uint32_t>(to.size()));
    }
  };
  write(successors, one.successors_begin, one.successors);
  write(entry, one.entry_begin, one.entry);
  return result;
}

}  // namespace manyworlds::core::collective
