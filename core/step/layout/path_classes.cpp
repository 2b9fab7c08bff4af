// The classes of a communicator's paths, and the rotations of its members that leave them as they are.
#include <algorithm>
#include <map>

#include "core/collective/dag/rotation.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {
namespace {

/// Which connections between the same two members share a link. That matters to the messages whose parts they send.
class BesideEachOther {
 public:
  BesideEachOther(const collective::Dag& dag, const std::vector<network::Route>& routes) : dag_(dag), routes_(routes) {
    if (dag.message.empty()) return;
    for (std::uint32_t pair = 0; pair < dag.pairs.size(); ++pair) by_ends_[dag.pairs[pair]].push_back(pair);
  }
  /// Appends which of those between the ends of `pair` cross `link`, if messages have parts.
  void append(std::uint32_t pair, std::uint32_t link, std::vector<std::int64_t>& to) const {
    if (by_ends_.empty()) return;
    const std::vector<std::uint32_t>& all = by_ends_.at(dag_.pairs[pair]);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (std::find(routes_[all[i]].begin(), routes_[all[i]].end(), link) != routes_[all[i]].end())
        to.push_back(static_cast<std::int64_t>(i));
    to.push_back(-1);
  }

 private:
  const collective::Dag& dag_;
  const std::vector<network::Route>& routes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> by_ends_;
};

}  // namespace

const PathClasses& RankLayout::path_classes(GroupId group, const collective::Dag& dag) {
  const std::uint32_t pairs = connectivity_number(dag);
  const auto [slot, is_new] = route_tables_[pairs].path_classes.try_emplace({group, !dag.message.empty()});
  PathClasses& result = slot->second;
  if (!is_new) return result;
  const Connections& connections = *connections_of(group, pairs);
  const std::vector<network::Route>& routes = connections.routes;
  const BesideEachOther beside(dag, routes);
  for (std::uint32_t pair = 0; pair < routes.size(); ++pair) {
    std::vector<std::int64_t> link_parameters;
    for (const std::uint32_t link : routes[pair]) {
      link_parameters.push_back(graph().links[link].bits_per_second);
      link_parameters.push_back(graph().links[link].latency_ps);
      beside.append(pair, link, link_parameters);
    }
    if (!connections.rates.empty()) {
      link_parameters.push_back(-2);
      link_parameters.insert(link_parameters.end(), connections.rates[pair].begin(), connections.rates[pair].end());
    }
    const auto number = static_cast<std::uint32_t>(path_numbers_.size());
    result.class_of_pair.push_back(path_numbers_.try_emplace(std::move(link_parameters), number).first->second);
  }
  const auto number = static_cast<std::uint32_t>(path_vector_numbers_.size());
  result.number = path_vector_numbers_.try_emplace(result.class_of_pair, number).first->second;
  return result;
}

std::uint32_t RankLayout::rotation_period(const std::shared_ptr<const collective::Dag>& dag,
                                          const PathClasses& path_classes) {
  const auto [slot, is_new] = rotation_periods_.try_emplace({dag, path_classes.number}, 0);
  if (is_new) slot->second = collective::rotation_period(*dag, path_classes.class_of_pair);
  return slot->second;
}

}  // namespace manyworlds::core::step
