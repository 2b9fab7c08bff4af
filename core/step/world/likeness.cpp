#include "core/step/world/likeness.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

namespace manyworlds::core::step {
namespace {

/// Numbers pairs of numbers by first occurrence.
class Pairing {
 public:
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    return numbers_.try_emplace(static_cast<std::uint64_t>(a) << 32 | b, next).first->second;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

/// A group as far as nothing is known of its members: what it runs, over which paths, and the rotations that leave
/// that as it is.
struct Bare {
  std::vector<std::uint32_t> form;
  std::uint32_t turn = 1;
};

Bare bare(Layout& layout, std::uint32_t group, const Collectives& runs) {
  const Group& of = layout.groups()[group];
  const auto members = static_cast<std::uint32_t>(of.ranks.size());
  Bare made{{of.kind}, runs.turn ? 1 : members};
  for (const auto& dag : runs.dags) {
    const Paths& paths = layout.paths(group, *dag);
    made.form.push_back(paths.number);
    if (made.turn < members) made.turn = std::lcm(made.turn, layout.least_turn(dag, paths));
  }
  return made;
}

/// The least multiple of `turn` at which the colours of the members repeat.
std::uint32_t turn_of(const std::vector<std::uint32_t>& ranks, const std::vector<std::uint32_t>& colours,
                      std::uint32_t turn) {
  const auto repeats = [&](std::uint32_t by) {
    for (std::size_t i = by; i < ranks.size(); ++i)
      if (colours[ranks[i]] != colours[ranks[i - by]]) return false;
    return true;
  };
  std::uint32_t least = turn;
  while (ranks.size() % least != 0 || !repeats(least)) least += turn;
  return least;
}

}  // namespace

Likeness each_alone(const Layout& layout) {
  Likeness made;
  made.player_of.resize(layout.ranks());
  std::iota(made.player_of.begin(), made.player_of.end(), 0);
  made.first = made.player_of;
  made.count.assign(layout.ranks(), 1);
  made.like.resize(layout.groups().size());
  std::iota(made.like.begin(), made.like.end(), 0);
  for (const Group& group : layout.groups()) made.turn.push_back(static_cast<std::uint32_t>(group.ranks.size()));
  return made;
}

Likeness likeness_of(Layout& layout, const std::vector<Collectives>& of_kind) {
  const std::vector<Group>& groups = layout.groups();
  std::vector<std::uint32_t> bare_turn, form;
  std::map<std::vector<std::uint32_t>, std::uint32_t> forms;
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    Bare one = bare(layout, group, of_kind[groups[group].kind]);
    bare_turn.push_back(one.turn);
    form.push_back(forms.try_emplace(std::move(one.form), static_cast<std::uint32_t>(forms.size())).first->second);
  }
  Likeness made;
  std::vector<std::uint32_t>& colours = made.player_of;
  for (std::uint32_t rank = 0; rank < layout.ranks(); ++rank) colours.push_back(layout.class_of(rank));
  std::vector<std::uint32_t> alike(groups.size());  // by group: a number that those have who go alike
  for (std::uint32_t known = 0;;) {
    made.turn.clear();
    std::map<std::vector<std::uint32_t>, std::uint32_t> told_apart;
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      const std::vector<std::uint32_t>& ranks = groups[group].ranks;
      made.turn.push_back(turn_of(ranks, colours, bare_turn[group]));
      std::vector<std::uint32_t> signature{form[group]};
      for (std::uint32_t i = 0; i < made.turn.back(); ++i) signature.push_back(colours[ranks[i]]);
      alike[group] =
          told_apart.try_emplace(std::move(signature), static_cast<std::uint32_t>(told_apart.size())).first->second;
    }
    std::uint32_t colour_count = 0;
    for (std::size_t role = 0; role < workload::kRoles; ++role) {
      Pairing seat, next;
      for (std::uint32_t rank = 0; rank < layout.ranks(); ++rank) {
        const auto as = static_cast<workload::Role>(role);
        const std::uint32_t group = layout.group_of(rank, as);
        if (group == Layout::kNoGroup)
          colours[rank] = next(colours[rank], UINT32_MAX);
        else
          colours[rank] = next(colours[rank], seat(alike[group], layout.member_of(rank, as) % made.turn[group]));
      }
      colour_count = next.size();
    }
    if (colour_count == known) break;
    known = colour_count;
  }
  for (std::uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    if (colours[rank] == made.first.size()) made.first.push_back(rank), made.count.push_back(0);
    ++made.count[colours[rank]];
  }
  std::vector<std::uint32_t> leader;
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    if (alike[group] == leader.size()) leader.push_back(group);
    made.like.push_back(leader[alike[group]]);
  }
  return made;
}

}  // namespace manyworlds::core::step
