// Collectives on whole fabrics, members placed so that a wanted number of transfers collide: for tests of what is
// skipped, and for the benchmark of what that spares.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "topologies/fabrics/registry.hpp"

namespace manyworlds::tests {

using core::network::Graph;
using core::network::Route;

/// A fabric of the registry with default options but for those given.
inline std::shared_ptr<const Graph> fabric(const std::string& name, core::OptionSet changed, std::int64_t gpus,
                                           std::int64_t per_node) {
  topologies::FabricSpec spec;
  spec.nodes = gpus / per_node;
  spec.gpus_per_node = per_node;
  spec.scale_up_bits_per_second = 3'600'000'000'000;
  spec.scale_up_latency_ps = 300'000;
  spec.nic_bits_per_second = 400'000'000'000;
  spec.nic_latency_ps = core::kMicrosecond;
  for (const topologies::Topology& topology : topologies::registry()) {
    if (topology.name != name) continue;
    core::OptionSet values;
    for (const core::OptionInfo& info : topology.options) values[info.name] = info.default_value;
    for (const auto& [key, value] : changed) values.at(key) = value;
    return std::make_shared<Graph>(topology.build(values, spec));
  }
  std::abort();
}

/// Transfers of the ring that share a link with another one of it.
inline std::size_t colliding(core::network::Router& router, const std::vector<std::uint32_t>& gpus) {
  std::map<std::uint32_t, std::vector<std::size_t>> users;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (const std::uint32_t link : router.route(gpus[i], gpus[(i + 1) % gpus.size()], i)) users[link].push_back(i);
  std::vector<bool> shares(gpus.size());
  for (const auto& [link, who] : users)
    if (who.size() > 1)
      for (const std::size_t i : who) shares[i] = true;
  return static_cast<std::size_t>(std::count(shares.begin(), shares.end(), true));
}

inline constexpr std::size_t kShuffled = SIZE_MAX, kInOrder = SIZE_MAX - 1;

/// GPUs in order, with pairs of them exchanged until `wanted` transfers of their ring collide; or in any order.
inline std::vector<std::uint32_t> placed(core::network::Router& router, std::int64_t gpus, std::size_t wanted) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(gpus));
  for (std::uint64_t seed = 1; seed < 1'000; ++seed) {
    std::mt19937_64 random(seed);
    std::iota(order.begin(), order.end(), 0u);
    if (wanted == kShuffled) {
      std::shuffle(order.begin(), order.end(), random);
      return order;
    }
    if (wanted == kInOrder) return order;
    for (std::size_t swaps = 0; swaps < order.size(); ++swaps) {
      const std::size_t now = colliding(router, order);
      if (now == wanted) return order;
      if (now > wanted) break;
      std::swap(order[random() % order.size()], order[random() % order.size()]);
    }
  }
  throw std::runtime_error("no order found in which " + std::to_string(wanted) + " transfers collide");
}

struct Seen {
  std::vector<core::network::Exit> exits;
  core::network::Counters counters;
  std::int64_t simulated = 0;  // link-hops
  std::uint64_t transfers = 0;
};

/// Carries out collectives at once among `gpus`, each entered by all; `plain`: every packet of it.
inline Seen carry_out(const std::shared_ptr<const Graph>& graph, core::network::Router& router,
                      const std::vector<std::uint32_t>& gpus, const std::vector<core::collective::Shape>& shapes,
                      const core::network::Transport& transport, bool plain) {
  core::network::ComponentCache cache(transport);
  auto flows = plain ? core::network::make_flows(transport) : core::network::make_flows(cache);
  for (std::uint32_t link = 0; link < graph->links.size(); ++link)
    flows->add_link(core::network::spec_of(*graph, link));
  core::network::Traffic traffic(std::move(flows));
  Seen seen;
  std::vector<std::uint32_t> numbers;
  std::size_t members = 0;
  for (const core::collective::Shape& shape : shapes) {
    const auto dag = std::make_shared<const core::collective::Dag>(core::collective::build(shape));
    std::vector<Route> routes;
    for (std::size_t pair = 0; pair < dag->pairs.size(); ++pair)
      routes.push_back(core::step::route_of(router, {dag->pairs, dag->switches}, gpus, pair, pair));
    numbers.push_back(traffic.add(dag, routes));
    seen.transfers += dag->transfers.size();
    members += shape.members;
  }
  traffic.set_tie_order(numbers);
  for (const std::uint32_t number : numbers)
    for (std::uint32_t member = 0; member < gpus.size(); ++member) traffic.enter(number, member);
  while (seen.exits.size() < members || !traffic.drained()) traffic.advance(core::kNever, seen.exits);
  seen.counters = traffic.counters();
  seen.simulated = plain ? seen.counters.link_hops : cache.link_hops().simulated;
  return seen;
}

}  // namespace manyworlds::tests
