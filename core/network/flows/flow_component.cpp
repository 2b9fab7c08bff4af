#include "core/network/flows/flow_component.hpp"

namespace manyworlds::core::network {

void append_spec(StateWords& words, const LinkSpec& spec) {
  words.insert(words.end(),
               {static_cast<std::uint64_t>(spec.bits_per_second), static_cast<std::uint64_t>(spec.latency_ps),
                static_cast<std::uint64_t>(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up)});
}

std::uint32_t FlowRoutes::add_link(const LinkSpec& spec) {
  specs_.push_back(spec);
  return static_cast<std::uint32_t>(specs_.size() - 1);
}

std::uint32_t FlowRoutes::add(const Route& route) {
  StateWords shape;
  for (const std::uint32_t link : route) append_spec(shape, specs_[link]);
  const auto [found, is_new] = shapes_.try_emplace(std::move(shape), static_cast<std::uint32_t>(fresh_.size()));
  if (is_new) fresh_.emplace_back();
  routes_.push_back({route, found->second});
  return static_cast<std::uint32_t>(routes_.size() - 1);
}

void FlowRoutes::append(const FlowRoutes& other) {
  const auto first = static_cast<std::uint32_t>(specs_.size());
  specs_.insert(specs_.end(), other.specs_.begin(), other.specs_.end());
  for (Route links; const RoutedShape& route : other.routes_) {
    links = route.links;
    for (std::uint32_t& link : links) link += first;
    add(links);
  }
}

std::shared_ptr<const State> FlowRoutes::fresh(std::uint32_t route, std::int64_t bytes, ComponentCache& cache) {
  auto& known = fresh_[routes_[route].shape];
  for (const auto& [size, state] : known)
    if (size == bytes) return state;
  std::vector<LinkSpec> path;
  for (const std::uint32_t link : links_of(route)) path.push_back(specs_[link]);
  return known.emplace_back(bytes, cache.fresh(path, bytes)).second;
}

}  // namespace manyworlds::core::network
