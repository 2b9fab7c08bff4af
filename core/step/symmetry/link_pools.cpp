#include "core/step/symmetry/link_pools.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::step {
namespace {

std::vector<std::uint32_t> links_of(const network::SpreadHop& hop) {
  std::vector<std::uint32_t> links;
  for (const network::LinkShare& one : hop) links.push_back(one.link);
  return links;
}

std::int64_t share_of(const network::SpreadHop& hop) {
  return std::accumulate(hop.begin(), hop.end(), std::int64_t{0},
                         [](std::int64_t sum, const network::LinkShare& one) { return sum + one.share; });
}

}  // namespace

LinkPools::LinkPools(std::shared_ptr<const network::PathSpreads> paths, bool is_adaptive)
    : paths_(std::move(paths)), is_adaptive_(is_adaptive), is_end_(graph().links.size(), false) {}

void LinkPools::add(const std::vector<network::Spread>& spreads) {
  has_middle_.resize(paths_->middles(), false);
  for (const network::Spread& spread : spreads) {
    has_middle_[spread.middle] = true;
    for (const network::SpreadHop* hop : {&spread.first, &spread.last}) {
      for (const network::LinkShare& one : *hop) is_end_[one.link] = true;
      if (is_adaptive_) add_set(*hop);
    }
  }
}

void LinkPools::close() {
  is_adaptive_ ? close_adaptive() : close_sprayed();
  of_middle_.resize(has_middle_.size());
  for (std::uint32_t middle = 0; middle < of_middle_.size(); ++middle) {
    if (!has_middle_[middle]) continue;
    std::map<std::uint32_t, std::int64_t> uses;
    if (is_adaptive_)
      for (const network::SpreadHop& hop : paths_->middle(middle)) add_use(uses, hop);
    else  // a pool is loaded as each of its links is
      for (const network::SpreadHop& hop : paths_->middle(middle))
        for (const network::LinkShare& one : hop)
          if (const std::uint32_t pool = pool_of_link_[one.link]; link_of(pool) == one.link) uses[pool] += one.share;
    for (const auto& [pool, share] : uses) of_middle_[middle].push_back({pool, share});
  }
}

/// Refines classes of links until every middle has equal shares on all links of a class, and these at the same hop.
/// What a pair uses first or last stays by itself.
void LinkPools::close_sprayed() {
  const std::size_t links = graph().links.size();
  std::vector<std::uint32_t> class_of(links);
  std::map<std::int64_t, std::uint32_t> by_rate;
  std::uint32_t classes = 0;
  for (std::size_t link = 0; link < links; ++link) {
    if (is_end_[link]) {
      class_of[link] = classes++;
      continue;
    }
    const auto [known, is_new] = by_rate.try_emplace(graph().links[link].bits_per_second, classes);
    classes += is_new;
    class_of[link] = known->second;
  }
  std::vector<bool> is_used(links, false);
  for (std::uint32_t middle = 0; middle < has_middle_.size(); ++middle) {
    if (!has_middle_[middle]) continue;
    struct Place {
      std::int64_t share = 0;
      std::size_t hop = 0;  // the last, if ways of different lengths cross a link
    };
    std::map<std::uint32_t, Place> place_of_link;
    const std::vector<network::SpreadHop>& hops = paths_->middle(middle);
    for (std::size_t hop = 0; hop < hops.size(); ++hop)
      for (const network::LinkShare& one : hops[hop])
        place_of_link[one.link] = {place_of_link[one.link].share + one.share, hop};
    std::map<std::tuple<std::uint32_t, std::int64_t, std::size_t>, std::uint32_t> refined;
    for (const auto& [link, place] : place_of_link) {
      is_used[link] = true;
      if (is_end_[link]) continue;
      const auto [known, is_new] = refined.try_emplace({class_of[link], place.share, place.hop}, classes);
      classes += is_new;
      class_of[link] = known->second;
    }
  }
  std::map<std::uint32_t, Links> members;
  for (std::uint32_t link = 0; link < links; ++link)
    if (is_used[link]) members[class_of[link]].push_back(link);
  pool_of_link_.resize(links);
  std::iota(pool_of_link_.begin(), pool_of_link_.end(), 0u);
  for (auto& [number, alike] : members) {
    if (alike.size() == 1) continue;
    for (const std::uint32_t link : alike) pool_of_link_[link] = size();
    pools_.push_back({std::move(alike)});
  }
}

void LinkPools::add_set(const network::SpreadHop& hop) {
  if (!hop.empty()) sets_.try_emplace(links_of(hop));
}

/// Numbers the sets of links that are used, and the union of every two that overlap, and finds which contain which.
void LinkPools::close_adaptive() {
  for (std::uint32_t middle = 0; middle < has_middle_.size(); ++middle)
    if (has_middle_[middle])
      for (const network::SpreadHop& hop : paths_->middle(middle)) add_set(hop);
  const auto by_link = [&] {
    std::vector<std::vector<const Links*>> result(graph().links.size());
    for (const auto& [set, pools] : sets_)
      for (const std::uint32_t link : set) result[link].push_back(&set);
    return result;
  };
  const auto sets_on = by_link();
  std::vector<Links> unions;
  for (const auto& sets : sets_on)
    for (std::size_t i = 0; i < sets.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        Links both;
        std::set_union(sets[i]->begin(), sets[i]->end(), sets[j]->begin(), sets[j]->end(), std::back_inserter(both));
        unions.push_back(std::move(both));
      }
  for (Links& both : unions) sets_.try_emplace(std::move(both));
  std::map<const Links*, std::uint32_t> numbers;
  for (const auto& [set, pools] : sets_) {
    numbers[&set] = set.size() == 1 ? set.front() : size();
    if (set.size() > 1) pools_.push_back({set});
  }
  const auto all_on = by_link();
  for (auto& [set, pools] : sets_)
    for (const Links* other : all_on[set.front()])
      if (std::includes(other->begin(), other->end(), set.begin(), set.end())) pools.push_back(numbers.at(other));
}

void LinkPools::add_use(std::map<std::uint32_t, std::int64_t>& uses, const network::SpreadHop& hop) const {
  if (hop.empty()) return;
  if (is_adaptive_)
    for (const std::uint32_t pool : sets_.at(links_of(hop))) uses[pool] += share_of(hop);
  else
    for (const network::LinkShare& one : hop) uses[one.link] += one.share;
}

std::vector<LinkPools::Use> LinkPools::uses_of(const network::Spread& spread) const {
  std::map<std::uint32_t, std::int64_t> uses;
  for (const network::SpreadHop* hop : {&spread.first, &spread.last}) add_use(uses, *hop);
  for (const Use& use : of_middle_[spread.middle]) uses[use.pool] += use.share;
  std::vector<Use> result;
  for (const auto& [pool, share] : uses) result.push_back({pool, share});
  return result;
}

std::int64_t LinkPools::rate(std::uint32_t pool) const {
  if (!is_adaptive_ || is_link(pool)) return graph().links[link_of(pool)].bits_per_second;
  std::int64_t sum = 0;
  for (const std::uint32_t link : pools_[index(pool)].links) sum += graph().links[link].bits_per_second;
  return sum;
}

}  // namespace manyworlds::core::step
