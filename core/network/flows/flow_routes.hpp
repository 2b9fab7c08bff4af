// The links and routes of decomposed flows, and the states in which flows begin on them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/flows/component_cache.hpp"

namespace manyworlds::core::network {

/// Appends what distinguishes a link in the key of a component.
void append_spec(StateWords& words, const LinkSpec& spec);

class FlowRoutes {
 public:
  std::uint32_t add_link(const LinkSpec& spec);
  /// Adds a route over links of add_link(). Routes whose links have equal specs share their initial states.
  std::uint32_t add(const Route& route);
  /// Adds the links and routes of `other`, numbered on from those known so far.
  void append(const FlowRoutes& other);

  const std::vector<LinkSpec>& specs() const { return specs_; }
  std::uint32_t routes() const { return static_cast<std::uint32_t>(routes_.size()); }
  const Route& links_of(std::uint32_t route) const { return routes_[route].links; }
  /// Returns the state of a single flow of `bytes` bytes that has just started.
  std::shared_ptr<const State> fresh(std::uint32_t route, std::int64_t bytes, ComponentCache& cache);

 private:
  struct RoutedShape {
    Route links;
    std::uint32_t shape;
  };
  std::vector<LinkSpec> specs_;
  std::vector<RoutedShape> routes_;
  std::map<StateWords, std::uint32_t> shapes_;
  std::vector<std::vector<std::pair<std::int64_t, std::shared_ptr<const State>>>> fresh_;  // by shape: (bytes, state)
};

}  // namespace manyworlds::core::network
