#include "experiments/profiler_traces/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "experiments/profiler_traces/clocks.hpp"

namespace manyworlds::experiments::profiler {
namespace {

using core::collective::Kind;
using core::workload::DimensionKind;
using core::workload::StepPart;

/// Ranks that communicate: a group, or a sender and a receiver.
struct GroupKey {
  std::string name;
  std::vector<std::uint32_t> ranks;  // of the job
  bool is_pair = false;
  auto operator<=>(const GroupKey&) const = default;
};

struct Instance {
  std::uint32_t trace = 0, op = 0;
  std::int64_t sequence = -1;
  NamedCollective what;
};

struct Group {
  std::string description;
  std::vector<std::vector<Instance>> members;  // by place in the group
};

/// Whether two ranks' calls may be of one collective.
bool agree(const Instance& a, const Instance& b) {
  if (a.what.kind != b.what.kind) return false;
  return a.what.kind == Kind::all_to_all || a.what.bytes == b.what.bytes;
}

bool has_sequence(const std::vector<Instance>& member) {
  for (std::size_t i = 0; i < member.size(); ++i)
    if (member[i].sequence < 0 || (i > 0 && member[i].sequence <= member[i - 1].sequence)) return false;
  return true;
}

/// Returns the places, by member, of the collectives that all members have.
std::vector<std::vector<std::size_t>> matches_by_sequence(const Group& group) {
  std::map<std::int64_t, std::vector<std::size_t>> places;
  for (const std::vector<Instance>& member : group.members)
    for (std::size_t i = 0; i < member.size(); ++i) places[member[i].sequence].push_back(i);
  std::vector<std::vector<std::size_t>> all;
  for (auto& [sequence, place] : places) {
    bool is_one = place.size() == group.members.size();
    for (std::size_t member = 0; is_one && member < place.size(); ++member)
      is_one = group.members[member][place[member]].sequence == sequence &&
               agree(group.members[0][place[0]], group.members[member][place[member]]);
    if (is_one) all.push_back(std::move(place));
  }
  return all;
}

/// The same without sequence numbers: the traces begin together, or else they end together.
std::vector<std::vector<std::size_t>> matches_by_order(const Group& group) {
  std::size_t least = SIZE_MAX;
  for (const std::vector<Instance>& member : group.members) least = std::min(least, member.size());
  for (const bool from_end : {false, true}) {
    const auto place = [&](std::size_t member, std::size_t i) {
      return from_end ? group.members[member].size() - least + i : i;
    };
    bool all_agree = true;
    for (std::size_t member = 1; all_agree && member < group.members.size(); ++member)
      for (std::size_t i = 0; all_agree && i < least; ++i)
        all_agree = agree(group.members[0][place(0, i)], group.members[member][place(member, i)]);
    if (!all_agree) continue;
    std::vector<std::vector<std::size_t>> all(least);
    for (std::size_t i = 0; i < least; ++i)
      for (std::size_t member = 0; member < group.members.size(); ++member) all[i].push_back(place(member, i));
    return all;
  }
  return {};
}

/// Whether ranks have one distance, as if a grid of all ranks were cut along one of its dimensions.
bool are_in_grid(const std::vector<std::uint32_t>& ranks, std::int64_t world) {
  const auto size = static_cast<std::int64_t>(ranks.size());
  const std::int64_t step = static_cast<std::int64_t>(ranks[1]) - static_cast<std::int64_t>(ranks[0]);
  if (step < 1 || world % (size * step) != 0 || ranks[0] % (size * step) >= step) return false;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (static_cast<std::int64_t>(ranks[i]) - static_cast<std::int64_t>(ranks[i - 1]) != step) return false;
  return true;
}

/// Returns the groups of such a grid that are cut like the one of `ranks`.
std::vector<std::vector<std::uint32_t>> groups_like(const std::vector<std::uint32_t>& ranks, std::uint32_t world) {
  const auto size = static_cast<std::uint32_t>(ranks.size());
  const std::uint32_t step = ranks[1] - ranks[0];
  std::vector<std::vector<std::uint32_t>> all;
  for (std::uint32_t block = 0; block < world; block += size * step)
    for (std::uint32_t first = block; first < block + step; ++first) {
      std::vector<std::uint32_t>& group = all.emplace_back();
      for (std::uint32_t i = 0; i < size; ++i) group.push_back(first + i * step);
    }
  return all;
}

class Matcher {
 public:
  Matcher(const std::vector<RankTrace>& traces, bool alike) : traces_(traces), alike_(alike) {
    result_.ops.resize(traces.size());
    for (std::uint32_t trace = 0; trace < traces.size(); ++trace)
      trace_of_rank_.emplace(static_cast<std::uint32_t>(traces[trace].rank.value_or(trace)), trace);
  }

  MatchedCollectives match() {
    for (std::uint32_t trace = 0; trace < traces_.size(); ++trace)
      for (std::uint32_t op = 0; op < traces_[trace].ops.size(); ++op)
        if (traces_[trace].ops[op].is_collective) add(trace, op);
    ClockComparison clocks(traces_.size());
    for (const auto& [key, group] : groups_) match(key, group, clocks);
    result_.clocks = clocks.clocks();
    return std::move(result_);
  }

 private:
  void add(std::uint32_t number, std::uint32_t op) {
    const RankTrace& trace = traces_[number];
    ++result_.kernels;
    const std::uint32_t communication = trace.ops[op].communication;
    const CommunicationArguments* arguments = communication == kNone ? nullptr : &trace.communications[communication];
    const auto what = arguments == nullptr ? std::nullopt : named_collective(*arguments, trace.names);
    GroupKey key;
    if (what) key = key_of(*arguments, *what, trace, number);
    if (key.ranks.empty()) {
      ++result_.unnamed;
      return;
    }
    if (key.ranks.size() < 2) return;  // it has nothing to send
    if (alike_) return add_alike(key, {number, op, arguments->sequence, *what}, *arguments);
    std::size_t place = key.ranks.size();
    for (std::size_t i = 0; i < key.ranks.size(); ++i) {
      const auto known = trace_of_rank_.find(key.ranks[i]);
      if (known == trace_of_rank_.end()) {
        ++result_.missing;
        return;
      }
      if (known->second == number) place = i;
    }
    if (place == key.ranks.size()) {
      ++result_.unnamed;
      return;
    }
    add(key, place, key.ranks.size(), {number, op, arguments->sequence, *what}, *arguments);
  }

  void add(const GroupKey& key, std::size_t place, std::size_t members, Instance one,
           const CommunicationArguments& arguments) {
    Group& group = groups_[key];
    group.members.resize(members);
    if (arguments.description != kNone) group.description = traces_[one.trace].names[arguments.description];
    group.members[place].push_back(std::move(one));
  }

  /// One rank stands for all: its groups have one member in the traces, and its sends are received by itself.
  void add_alike(GroupKey key, Instance one, const CommunicationArguments& arguments) {
    const std::int64_t world = *traces_[0].world;
    if (std::any_of(key.ranks.begin(), key.ranks.end(), [&](std::uint32_t rank) { return rank >= world; })) {
      ++result_.unnamed;
    } else if (key.is_pair) {
      const std::int64_t step = (static_cast<std::int64_t>(key.ranks[1]) + world - key.ranks[0]) % world;
      key.ranks = {0, static_cast<std::uint32_t>(step)};
      add(key, one.what.receives ? 1 : 0, 2, std::move(one), arguments);
    } else if (!are_in_grid(key.ranks, world)) {
      ++result_.missing;
    } else {
      add(key, 0, 1, std::move(one), arguments);
    }
  }

  static GroupKey key_of(const CommunicationArguments& arguments, const NamedCollective& what, const RankTrace& trace,
                         std::uint32_t number) {
    GroupKey key;
    if (arguments.group != kNone) key.name = trace.names[arguments.group];
    if (what.kind != Kind::send) {
      key.ranks = group_ranks(arguments, trace);
      return key;
    }
    const auto self = static_cast<std::uint32_t>(trace.rank.value_or(number)),
               peer = static_cast<std::uint32_t>(what.peer);
    if (what.peer > UINT32_MAX || peer == self) return key;
    key.is_pair = true;
    key.ranks = what.receives ? std::vector{peer, self} : std::vector{self, peer};
    return key;
  }

  void match(const GroupKey& key, const Group& group, ClockComparison& clocks) {
    const bool by_sequence = std::all_of(group.members.begin(), group.members.end(), has_sequence);
    std::int64_t found = 0;
    for (const std::vector<Instance>& member : group.members) found += std::ssize(member);
    const auto all = by_sequence ? matches_by_sequence(group) : matches_by_order(group);
    result_.unmatched += found - std::ssize(all) * std::ssize(group.members);
    if (all.empty()) return;
    const std::uint32_t dimension = dimension_of(key, group);
    for (const std::vector<std::size_t>& places : all) add_instance(key, group, places, dimension, clocks);
  }

  void add_instance(const GroupKey& key, const Group& group, const std::vector<std::size_t>& places,
                    std::uint32_t dimension, ClockComparison& clocks) {
    const auto instance = static_cast<std::uint32_t>(result_.shortest.size());
    NamedCollective what = group.members[0][places[0]].what;
    make_common(group, places, key.ranks.size(), what);
    std::int64_t shortest = INT64_MAX;
    std::vector<ClockComparison::End> ends;
    for (std::size_t member = 0; member < places.size(); ++member) {
      const Instance& one = group.members[member][places[member]];
      const DeviceOp& op = traces_[one.trace].ops[one.op];
      what.receives = one.what.receives;
      result_.ops[one.trace].emplace(one.op, MatchedOp{dimension, instance, what});
      shortest = std::min(shortest, op.duration);
      result_.matched_ns += static_cast<double>(op.duration);
      ends.push_back({one.trace, traces_[one.trace].base + op.end()});
    }
    result_.shortest.push_back(shortest);
    result_.shortest_ns += static_cast<double>(shortest) * static_cast<double>(places.size());
    if (!key.is_pair && what.kind != Kind::broadcast && what.kind != Kind::reduce) clocks.add(ends);
  }

  /// Makes one call of those of all members, if they differ: an even all-to-all of the mean.
  void make_common(const Group& group, const std::vector<std::size_t>& places, std::size_t members,
                   NamedCollective& what) {
    for (std::size_t member = 0; member < places.size(); ++member)
      if (group.members[member][places[member]].what.root != what.root) what.root = -1;
    if (what.root >= static_cast<std::int64_t>(members)) what.root = -1;
    if (what.kind != Kind::all_to_all) return;
    bool differ = !what.counts.empty() && what.counts.size() != members;
    double bytes = 0;
    for (std::size_t member = 0; member < places.size(); ++member) {
      const NamedCollective& one = group.members[member][places[member]].what;
      differ |= one.bytes != what.bytes || one.counts != what.counts;
      bytes += static_cast<double>(one.bytes);
    }
    if (!differ) return;
    what.bytes = static_cast<std::int64_t>(bytes / static_cast<double>(places.size()));
    what.counts.clear();
    ++result_.averaged;
  }

  /// Returns the dimension of a group: groups of one description and size share one as long as no rank is in two of
  /// them.
  std::uint32_t dimension_of(const GroupKey& key, const Group& group) {
    const std::int64_t step =
        key.is_pair ? static_cast<std::int64_t>(key.ranks[1]) - static_cast<std::int64_t>(key.ranks[0]) : 0;
    std::string name = group.description.empty() ? key.name : group.description;
    if (name.empty()) name = "group";
    if (key.is_pair) name += fmt::format(" {:+}", step);
    const std::vector<std::vector<std::uint32_t>> groups = given_groups(key);
    for (int more = 1;; ++more) {
      const std::string unique = more == 1 ? name : fmt::format("{} ({})", name, more);
      const auto [known, is_new] = dimensions_.try_emplace({unique, key.is_pair, key.ranks.size()});
      auto& [number, used] = known->second;
      if (is_new) {
        number = static_cast<std::uint32_t>(result_.dimensions.size());
        const StepPart part = key.is_pair ? StepPart::exposed_pp : exposed_part(group.description);
        result_.dimensions.push_back(
            {unique_name(unique), key.is_pair ? DimensionKind::pairs : DimensionKind::groups, part});
      }
      std::set<std::pair<std::size_t, std::uint32_t>> roles;
      bool is_free = true;
      for (const std::vector<std::uint32_t>& group_ranks : groups)
        for (std::size_t i = 0; i < group_ranks.size(); ++i) {
          roles.emplace(key.is_pair ? i : 0, group_ranks[i]);
          is_free &= !used.contains({key.is_pair ? i : 0, group_ranks[i]});
        }
      if (!is_free) continue;
      used.merge(roles);
      for (const std::vector<std::uint32_t>& group_ranks : groups) result_.groups.push_back({number, group_ranks});
      return number;
    }
  }

  std::vector<std::vector<std::uint32_t>> given_groups(const GroupKey& key) const {
    std::vector<std::vector<std::uint32_t>> groups(1);
    if (!alike_) {
      for (const std::uint32_t rank : key.ranks) groups[0].push_back(trace_of_rank_.at(rank));
      return groups;
    }
    const auto world = static_cast<std::uint32_t>(*traces_[0].world);
    if (!key.is_pair) return groups_like(key.ranks, world);
    groups.clear();
    for (std::uint32_t rank = 0; rank < world; ++rank) groups.push_back({rank, (rank + key.ranks[1]) % world});
    return groups;
  }

  std::string unique_name(const std::string& name) {
    for (int more = 0;; ++more) {
      std::string one = more == 0 ? name : fmt::format("{} [{}]", name, more);
      if (dimension_names_.insert(one).second) return one;
    }
  }

  struct UsedDimension {
    std::uint32_t number = 0;
    std::set<std::pair<std::size_t, std::uint32_t>> used;  // roles of ranks
  };

  const std::vector<RankTrace>& traces_;
  const bool alike_;
  std::map<std::uint32_t, std::uint32_t> trace_of_rank_;
  std::map<GroupKey, Group> groups_;
  std::map<std::tuple<std::string, bool, std::size_t>, UsedDimension> dimensions_;
  std::set<std::string> dimension_names_;
  MatchedCollectives result_;
};

}  // namespace

MatchedCollectives match_collectives(const std::vector<RankTrace>& traces, bool alike) {
  return Matcher(traces, alike).match();
}

}  // namespace manyworlds::experiments::profiler
