#include "core/collective/dag/rotation.hpp"

#include <algorithm>
#include <map>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

/// Transfers by their connection, and the place of each there.
struct Places {
  std::vector<std::vector<std::uint32_t>> on_pair;
  std::vector<std::uint32_t> of;  // by transfer
  explicit Places(const Dag& dag) : on_pair(dag.pairs.size()) {
    for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
      auto& on = on_pair[dag.transfers[i].pair];
      of.push_back(static_cast<std::uint32_t>(on.size()));
      on.push_back(i);
    }
  }
};

/// Connections by their ends. Of several between two members (one for each channel) each has its place.
class Ends {
 public:
  explicit Ends(const Dag& dag) : dag_(dag) {
    for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
      auto& all = between_[dag.pairs[pair]];
      place_.push_back(static_cast<std::uint32_t>(all.size()));
      all.push_back(pair);
    }
  }
  /// What a connection is when members have moved `by` places on; kNone if there is none.
  std::uint32_t moved(std::uint32_t pair, std::uint32_t by) const {
    const auto& [source, destination] = dag_.pairs[pair];
    const auto all = between_.find({(source + by) % dag_.members, (destination + by) % dag_.members});
    return all == between_.end() || place_[pair] >= all->second.size() ? kNone : all->second[place_[pair]];
  }
  static constexpr std::uint32_t kNone = UINT32_MAX;

 private:
  const Dag& dag_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> between_;
  std::vector<std::uint32_t> place_;  // by pair
};

/// Rows [begin[i], begin[i + 1]) of `to`.
struct Rows {
  const std::vector<std::uint32_t>&begin, &to;
  std::vector<std::uint32_t> sorted(std::uint32_t row) const {
    std::vector<std::uint32_t> made(to.begin() + begin[row], to.begin() + begin[row + 1]);
    std::sort(made.begin(), made.end());
    return made;
  }
};

bool stays(const Dag& dag, const Ends& ends, const Places& places, const std::vector<std::uint32_t>& paths,
           std::uint32_t by) {
  std::vector<std::uint32_t> pair_to;
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    pair_to.push_back(ends.moved(pair, by));
    if (pair_to[pair] == Ends::kNone || paths[pair] != paths[pair_to[pair]] ||
        places.on_pair[pair].size() != places.on_pair[pair_to[pair]].size())
      return false;
  }
  const auto to = [&](std::uint32_t transfer) {
    return places.on_pair[pair_to[dag.transfers[transfer].pair]][places.of[transfer]];
  };
  const auto same_rows = [&](Rows rows, std::uint32_t row, std::uint32_t other) {
    std::vector<std::uint32_t> moved(rows.to.begin() + rows.begin[row], rows.to.begin() + rows.begin[row + 1]);
    for (std::uint32_t& transfer : moved) transfer = to(transfer);
    std::sort(moved.begin(), moved.end());
    return moved == rows.sorted(other);
  };
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
    const Transfer &one = dag.transfers[i], &other = dag.transfers[to(i)];
    if (one.bytes != other.bytes || one.delay_ps != other.delay_ps || dag.waits[i] != dag.waits[to(i)] ||
        !same_rows({dag.successors_begin, dag.successors}, i, to(i)))
      return false;
  }
  for (std::uint32_t member = 0; member < dag.members; ++member)
    if (!same_rows({dag.entry_begin, dag.entry}, member, (member + by) % dag.members)) return false;
  return true;
}

}  // namespace

std::uint32_t least_turn(const Dag& dag, const std::vector<std::uint32_t>& paths) {
  if (dag.switches.empty() && dag.waits.size() == dag.transfers.size()) {
    const Ends ends(dag);
    const Places places(dag);
    for (std::uint32_t turn = 1; turn < dag.members; ++turn)
      if (dag.members % turn == 0 && stays(dag, ends, places, paths, turn)) return turn;
  }
  return dag.members;
}

Turned turned(const Dag& dag, std::uint32_t turn) {
  MANYWORLDS_CHECK(turn > 0 && dag.members % turn == 0, "{} members turned by {}", dag.members, turn);
  Turned made;
  Dag& one = made.dag;
  one.members = turn;
  one.launch_ps = dag.launch_ps;
  one.uses.assign(dag.uses.begin(), dag.uses.begin() + turn);
  const Places places(dag);
  // Of what a rotation moves onto each other, that whose source is a member that stays.
  std::vector<std::uint32_t> number(dag.pairs.size());
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    if (dag.pairs[pair].first >= turn) continue;
    number[pair] = static_cast<std::uint32_t>(made.pairs.size());
    made.pairs.push_back(pair);
    one.pairs.emplace_back(dag.pairs[pair].first, dag.pairs[pair].second % turn);
  }
  const Ends ends(dag);
  for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) {
    const std::uint32_t there = ends.moved(pair, dag.members - dag.pairs[pair].first / turn * turn);
    MANYWORLDS_CHECK(there != Ends::kNone, "a turn by {} is none that leaves the DAG as it is", turn);
    made.stand_in.push_back(number[there]);
  }
  std::vector<std::uint32_t> name(dag.transfers.size());
  const auto stand_in = [&](std::uint32_t transfer) {
    return name[places.on_pair[made.pairs[made.stand_in[dag.transfers[transfer].pair]]][places.of[transfer]]];
  };
  const auto remains = [&](std::uint32_t transfer) { return dag.pairs[dag.transfers[transfer].pair].first < turn; };
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i) {
    if (!remains(i)) continue;
    name[i] = static_cast<std::uint32_t>(one.transfers.size());
    one.transfers.push_back({number[dag.transfers[i].pair], dag.transfers[i].delay_ps, dag.transfers[i].bytes});
    one.waits.push_back(dag.waits[i]);
  }
  // What remains waits for as much as before, of which some is now other members' and stands for theirs.
  std::vector<std::vector<std::uint32_t>> successors(one.transfers.size()), entry(turn);
  for (std::uint32_t i = 0; i < dag.transfers.size(); ++i)
    for (std::uint32_t at = dag.successors_begin[i]; at < dag.successors_begin[i + 1]; ++at)
      if (remains(dag.successors[at])) successors[stand_in(i)].push_back(name[dag.successors[at]]);
  for (std::uint32_t member = 0; member < dag.members; ++member)
    for (std::uint32_t at = dag.entry_begin[member]; at < dag.entry_begin[member + 1]; ++at)
      if (remains(dag.entry[at])) entry[member % turn].push_back(name[dag.entry[at]]);
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
  return made;
}

}  // namespace manyworlds::core::collective
