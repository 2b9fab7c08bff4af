#include "core/step/symmetry/link_colours.hpp"

#include <algorithm>

namespace manyworlds::core::step {

LinkColours::LinkColours(RankLayout& layout, const std::vector<KindCollectives>& by_kind, DagCache& dags,
                         LinkOrder order)
    : layout_(layout), dags_(dags), order_(order), colours_(layout.graph().links.size()) {
  for (const KindCollectives& collectives : by_kind) {
    std::vector<Connected>& connected = by_kind_.emplace_back();
    for (const auto& dag : collectives.dags) {
      const std::uint32_t number = layout.connectivity_number(*dag);
      if (std::none_of(connected.begin(), connected.end(),
                       [&](const Connected& known) { return known.connectivity == number; }))
        connected.push_back({dag, number});
    }
    std::sort(connected.begin(), connected.end(),
              [](const Connected& a, const Connected& b) { return a.connectivity < b.connectivity; });
  }
  struct Use {
    std::uint32_t link;
    GroupId group;
    Passage passage;
    auto operator<=>(const Use&) const = default;
  };
  std::vector<Use> uses;
  for (const GroupId group : layout.groups().ids())
    for (const Connected& one : by_kind_[layout.groups()[group].kind]) {
      const std::vector<network::Route>& paths = routes(group, one);
      for (std::uint32_t pair = 0; pair < paths.size(); ++pair)
        for (std::uint32_t hop = 0; hop < paths[pair].size(); ++hop)
          uses.push_back({paths[pair][hop], group, {one.connectivity, pair, order_ == LinkOrder::none ? 0 : hop}});
    }
  std::sort(uses.begin(), uses.end());
  std::map<Passages, std::uint32_t> numbers;
  std::map<std::array<std::int64_t, 3>, std::uint32_t> specs;
  for (auto first = uses.begin(), last = first; first != uses.end(); first = last) {
    Passages passages;
    for (; last != uses.end() && last->link == first->link && last->group == first->group; ++last)
      passages.push_back(last->passage);
    const auto [known, is_new] = numbers.try_emplace(passages, static_cast<std::uint32_t>(full_passages_.size()));
    if (is_new) full_passages_.push_back(std::move(passages));
    crossings_.push_back({first->group, known->second});
    if (ranges_.empty() || ranges_.back().first != first->link) ranges_.emplace_back(first->link, 0);
    ranges_.back().second = static_cast<std::uint32_t>(crossings_.size());
    const network::LinkSpec spec = network::spec_of(layout.graph(), first->link);
    const std::int64_t kind = spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up;
    colours_[first->link] =
        specs.try_emplace({spec.bits_per_second, spec.latency_ps, kind}, static_cast<std::uint32_t>(specs.size()))
            .first->second;
  }
  if (order_ == LinkOrder::none) return;
  range_of_.resize(layout.graph().links.size());
  last_pair_.resize(layout.graph().links.size());
  for (std::uint32_t i = 0; i < ranges_.size(); ++i) range_of_[ranges_[i].first] = i;
}

std::uint32_t LinkColours::place_of(GroupId group, std::uint32_t link) const {
  const std::uint32_t range = range_of_[link];
  const auto first = crossings_.begin() + (range == 0 ? 0 : ranges_[range - 1].second);
  const auto found = std::lower_bound(first, crossings_.begin() + ranges_[range].second, group,
                                      [](const Crossing& crossing, GroupId other) { return crossing.group < other; });
  return static_cast<std::uint32_t>(found - first);
}

bool LinkColours::keeps_order(const std::vector<network::Route>& paths, const collective::QuotientDag& quotient) {
  ++turn_;
  for (std::size_t pair = 0; pair < paths.size(); ++pair)
    for (const std::uint32_t link : paths[pair]) {
      auto& [turn, next] = last_pair_[link];
      if (turn == turn_ && quotient.representative[pair] < next) return false;
      turn = turn_, next = quotient.representative[pair] + 1;
    }
  return true;
}

bool LinkColours::may_rotate(GroupId group, std::uint32_t rotation) {
  const auto alike = [&](std::uint32_t a, std::uint32_t b) {
    return colours_[a] == colours_[b] && (order_ == LinkOrder::none || place_of(group, a) == place_of(group, b));
  };
  for (const Connected& one : by_kind_[layout_.groups()[group].kind]) {
    const collective::QuotientDag& quotient = dags_.quotient_dag(one.dag, rotation);
    const std::vector<network::Route>& paths = routes(group, one);
    for (std::size_t pair = 0; pair < paths.size(); ++pair)
      if (!std::equal(paths[pair].begin(), paths[pair].end(),
                      paths[quotient.pairs[quotient.representative[pair]]].begin(), alike))
        return false;
    if (order_ == LinkOrder::of_crossings && !keeps_order(paths, quotient)) return false;
  }
  return true;
}

void LinkColours::append_paths(GroupId group, std::uint32_t rotation, std::vector<std::uint32_t>& signature) {
  const auto members = static_cast<std::uint32_t>(layout_.groups()[group].ranks.size());
  for (const Connected& one : by_kind_[layout_.groups()[group].kind]) {
    const std::vector<network::Route>& paths = routes(group, one);
    const std::vector<std::uint32_t>* kept =
        rotation < members ? &dags_.quotient_dag(one.dag, rotation).pairs : nullptr;
    const std::size_t count = kept != nullptr ? kept->size() : paths.size();
    for (std::size_t i = 0; i < count; ++i)
      for (const std::uint32_t link : paths[kept != nullptr ? (*kept)[i] : i]) {
        signature.push_back(colours_[link]);
        if (order_ == LinkOrder::of_crossings) signature.push_back(place_of(group, link));
      }
  }
}

std::uint32_t LinkColours::merged(const Crossing& crossing, std::uint32_t rotation) {
  const Group& group = layout_.groups()[crossing.group];
  const auto [known, is_new] = merged_of_.try_emplace({group.kind, rotation, crossing.passages}, 0);
  if (!is_new) return known->second;
  Passages passages = full_passages_[crossing.passages];
  if (rotation < group.ranks.size()) {
    for (Passage& passage : passages)
      for (const Connected& one : by_kind_[group.kind])
        if (one.connectivity == passage.connectivity)
          passage.pair = dags_.quotient_dag(one.dag, rotation).representative[passage.pair];
    std::sort(passages.begin(), passages.end());
  }
  const auto [number, is_new_list] =
      merged_numbers_.try_emplace(passages, static_cast<std::uint32_t>(merged_passages_.size()));
  if (is_new_list) merged_passages_.push_back(std::move(passages));
  return known->second = number->second;
}

std::uint32_t LinkColours::refine(const IdVector<GroupId, std::uint32_t>& group_class,
                                  const IdVector<GroupId, std::uint32_t>& rotation) {
  std::map<std::vector<std::uint64_t>, std::uint32_t> numbers;
  std::vector<std::uint64_t> signature;
  std::uint32_t next = 0;
  for (const auto& [link, end] : ranges_) {
    signature.clear();
    for (; next < end; ++next) {
      const Crossing& crossing = crossings_[next];
      signature.push_back(std::uint64_t{group_class[crossing.group]} << 32 |
                          merged(crossing, rotation[crossing.group]));
    }
    if (order_ == LinkOrder::none) std::sort(signature.begin(), signature.end());
    signature.push_back(colours_[link]);
    colours_[link] = numbers.try_emplace(signature, static_cast<std::uint32_t>(numbers.size())).first->second;
  }
  return static_cast<std::uint32_t>(numbers.size());
}

std::vector<std::uint32_t> LinkColours::representatives() const {
  std::vector<std::uint32_t> result(colours_.size(), UINT32_MAX), first;
  for (const auto& [link, end] : ranges_) {
    if (colours_[link] == first.size()) first.push_back(link);
    result[link] = first[colours_[link]];
  }
  return result;
}

std::map<std::pair<GroupId, std::uint32_t>, std::vector<LinkUse>> LinkColours::uses(const RankSymmetry& symmetry) {
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<LinkUse>> result;
  std::uint32_t next = 0, known_colours = 0;
  for (const auto& [link, end] : ranges_) {
    std::map<std::pair<GroupId, std::uint32_t>, std::uint32_t> counts;  // by class and merged passages
    if (colours_[link] == known_colours) {                              // the first of its colour
      ++known_colours;
      for (std::uint32_t i = next; i < end; ++i)
        ++counts[{symmetry.canonical[crossings_[i].group],
                  merged(crossings_[i], symmetry.rotation[crossings_[i].group])}];
    }
    next = end;
    for (const auto& [crossed, count] : counts) {
      std::map<std::uint32_t, std::vector<std::uint32_t>> by_connectivity;
      for (const Passage& passage : merged_passages_[crossed.second])
        by_connectivity[passage.connectivity].push_back(passage.pair);
      for (auto& [connectivity, pairs] : by_connectivity)
        result[{crossed.first, connectivity}].push_back({link, std::move(pairs), count});
    }
  }
  return result;
}

}  // namespace manyworlds::core::step
