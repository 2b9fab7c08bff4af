#include "experiments/records/rank_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/error.hpp"
#include "experiments/tree/json_tree.hpp"

namespace manyworlds::experiments::captured {
namespace {

using core::InputError;
using import::Node;
using Ranks = std::vector<std::uint32_t>;

std::uint32_t number_in(const Node& node, std::uint32_t below, const char* what) {
  std::uint32_t number = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, failure] = std::from_chars(node.text.data(), end, number);
  if (node.kind != Node::Kind::scalar || failure != std::errc() || stop != end || number >= below)
    node.fail(fmt::format("{} must be a number below {}, not {}", what, below, describe(node)));
  return number;
}

}  // namespace

GroupsOfCommunicators parse_groups(std::string_view text, const std::string& name, std::uint32_t world) {
  GroupsOfCommunicators groups;
  if (text.empty()) return groups;
  const Node root = import::parse_json_tree(text, name);
  if (root.kind != Node::Kind::mapping)
    root.fail("a file of groups must be an object, from the number of a communicator to its lists of ranks");
  for (const import::Entry& entry : root.entries) {
    Node key = entry.value;
    key.kind = Node::Kind::scalar, key.text = entry.key;
    std::vector<Ranks>& of = groups[number_in(key, 1u << 24, "the number of a communicator")];
    if (entry.value.kind != Node::Kind::sequence) entry.value.fail("a communicator must have a list of groups");
    std::vector<bool> has_group(world);
    for (const Node& group : entry.value.items) {
      if (group.kind != Node::Kind::sequence || group.items.empty()) group.fail("a group must be a list of ranks");
      Ranks& ranks = of.emplace_back();
      for (const Node& item : group.items) {
        ranks.push_back(number_in(item, world, "a rank"));
        if (has_group[ranks.back()])
          item.fail(fmt::format("rank {} stands twice among the groups of communicator {}", ranks.back(), entry.key));
        has_group[ranks.back()] = true;
      }
    }
  }
  return groups;
}

std::uint32_t RankGroups::number_of(std::size_t communicator, const Ranks& ranks) {
  const auto [known, is_new] = numbers_.try_emplace({communicator, ranks}, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) groups_.push_back(ranks);
  return known->second;
}

RankGroups::RankGroups(const std::vector<RankRecord>& records, const std::vector<JoinedCommunicator>& joined,
                       const std::vector<std::size_t>& record_of_rank, const std::vector<std::vector<bool>>& used,
                       std::string_view groups, const std::string& name) {
  const auto world = static_cast<std::uint32_t>(record_of_rank.size());
  const bool are_all_there = records.size() == world;
  std::map<std::pair<std::size_t, std::size_t>, const JoinedCommunicator*> by_record;  // and its number there
  for (const JoinedCommunicator& one : joined)
    for (std::size_t member = 0; member < one.records.size(); ++member)
      if (one.records[member] != kNone)
        by_record[{static_cast<std::size_t>(one.records[member]), static_cast<std::size_t>(one.numbers[member])}] =
            &one;
  const auto given = parse_groups(groups, name, world);
  std::size_t most = 0;
  for (const std::vector<bool>& of : used) most = std::max(most, of.size());
  for (std::size_t number = 0; number < most; ++number)
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const std::size_t record = record_of_rank[rank];
      if (number >= used[record].size() || !used[record][number]) continue;
      const OpenedCommunicator& opened = records[record].communicators[number];
      const auto fail = [&](const std::string& what) {
        throw InputError(what, records[record].file, static_cast<int>(opened.line));
      };
      Ranks ranks;
      if (are_all_there) {
        for (const std::int32_t member : by_record.at({record, number})->records)
          ranks.push_back(static_cast<std::uint32_t>(records[static_cast<std::size_t>(member)].rank));
      } else if (static_cast<std::uint32_t>(opened.size) == world) {
        ranks.resize(world);
        std::iota(ranks.begin(), ranks.end(), 0u);
      } else {
        const auto of = given.find(number);
        if (of == given.end())
          fail(fmt::format(
              "communicator {} ('{}') has {} of {} ranks, and not all ranks have records: name its groups by "
              "--groups FILE, with {{\"{}\": [[...], ...]}}",
              number, opened.key, opened.size, world, number));
        const auto group = std::find_if(of->second.begin(), of->second.end(), [&](const Ranks& one) {
          return std::find(one.begin(), one.end(), rank) != one.end();
        });
        if (group == of->second.end())
          throw InputError(fmt::format("communicator {} has no group with rank {}", number, rank), name);
        ranks = *group;
        if (ranks.size() != static_cast<std::size_t>(opened.size))
          throw InputError(fmt::format("the group of rank {} in communicator {} has {} ranks, and {} in {}:{}", rank,
                                       number, ranks.size(), opened.size, records[record].file, opened.line),
                           name);
      }
      const bool is_recorded = static_cast<std::uint32_t>(records[record].rank) == rank;
      if (is_recorded && ranks[static_cast<std::size_t>(opened.in_rank)] != rank)
        fail(fmt::format(
            "rank {} has number {} in communicator {}, in whose group that is rank {}{}", rank, opened.in_rank, number,
            ranks[static_cast<std::size_t>(opened.in_rank)],
            are_all_there ? "" : "; where ranks have no records, groups are in the order of their numbers"));
      group_of_[{rank, static_cast<std::uint32_t>(number)}] = number_of(number, ranks);
    }
}

std::uint32_t RankGroups::peer_of(std::uint32_t rank, std::size_t communicator, std::int32_t in_rank,
                                  std::int32_t peer) const {
  const Ranks& ranks = groups_[group_of(rank, communicator)];
  const auto own = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto size = static_cast<std::ptrdiff_t>(ranks.size());
  return ranks[static_cast<std::size_t>(((peer - in_rank + own) % size + size) % size)];
}

}  // namespace manyworlds::experiments::captured
