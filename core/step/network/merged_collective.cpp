#include "core/step/network/merged_collective.hpp"

#include <unordered_map>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/flows/traffic.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::step {
namespace {

using network::Route;

constexpr std::uint32_t kNone = UINT32_MAX;

/// The links that a collective uses under their own numbers: from 0, by first occurrence.
struct UsedLinks {
  std::vector<std::uint32_t> links;  // of the graph
  std::vector<Route> routes;         // by pair, over `links`

  explicit UsedLinks(const std::vector<Route>& graph_routes) : routes(graph_routes) {
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    for (Route& route : routes)
      for (std::uint32_t& link : route) {
        const auto [number, is_new] = numbers.try_emplace(link, static_cast<std::uint32_t>(links.size()));
        if (is_new) links.push_back(link);
        link = number->second;
      }
  }
};

/// Returns the link onto which a rotation by `width` maps each link; nothing if it maps no links onto links.
std::optional<std::vector<std::uint32_t>> rotated_links(const UsedLinks& used, const network::Graph& graph,
                                                        std::uint32_t members, std::uint32_t width) {
  std::vector<std::uint32_t> to(used.links.size(), kNone), from(used.links.size(), kNone);
  for (std::uint32_t pair = 0; pair < used.routes.size(); ++pair) {
    const Route& route = used.routes[pair];
    const Route& rotated = used.routes[pair / members * members + (pair % members + width) % members];
    if (route.size() != rotated.size()) return std::nullopt;
    for (std::size_t hop = 0; hop < route.size(); ++hop) {
      const std::uint32_t link = route[hop], other = rotated[hop];
      if (to[link] == other) continue;
      if (to[link] != kNone || from[other] != kNone) return std::nullopt;
      if (!(network::spec_of(graph, used.links[link]) == network::spec_of(graph, used.links[other])))
        return std::nullopt;
      to[link] = other, from[other] = link;
    }
  }
  return to;
}

/// Returns whether the connections along every link stay distinct and in order when members are merged.
bool keeps_orders(const UsedLinks& used, std::uint32_t members, std::uint32_t width) {
  std::vector<std::uint32_t> next(used.links.size(), 0);  // by link: the least merged pair that may follow
  for (std::uint32_t pair = 0; pair < used.routes.size(); ++pair) {
    const std::uint32_t merged = pair / members * width + pair % members % width;
    for (const std::uint32_t link : used.routes[pair]) {
      if (merged < next[link]) return false;
      next[link] = merged + 1;
    }
  }
  return true;
}

MergedCollective merge(const collective::Shape& shape, const UsedLinks& used, const std::vector<std::uint32_t>& rotated,
                       std::uint32_t width) {
  MergedCollective result{collective::generator_of(shape, width), {}, {}};
  std::vector<std::uint32_t> number(used.links.size(), kNone);
  for (std::uint32_t pair = 0; pair < used.routes.size(); ++pair) {
    if (pair % shape.members >= width) continue;
    Route& route = result.routes.emplace_back();
    for (const std::uint32_t link : used.routes[pair]) {
      if (number[link] == kNone) {
        for (std::uint32_t other = link; number[other] == kNone; other = rotated[other])
          number[other] = static_cast<std::uint32_t>(result.links.size());
        result.links.push_back(used.links[link]);
      }
      route.push_back(number[link]);
    }
  }
  return result;
}

}  // namespace

std::optional<MergedCollective> merge_members(const collective::Shape& shape, const std::vector<Route>& routes,
                                              const network::Graph& graph, const network::Transport& transport) {
  // Skipping by rate is not exact, and depends on what is simulated together.
  if (transport.rate_tolerance_ppm > 0 || network::needs_per_packet(transport)) return std::nullopt;
  const auto generator = collective::generator_of(shape, shape.members);
  if (!generator || generator->least_width() == shape.members) return std::nullopt;
  MANYWORLDS_CHECK(routes.size() == generator->pairs(), "{} routes for {}", routes.size(), shape.text());
  const UsedLinks used(routes);
  const std::uint32_t least = generator->least_width();
  for (std::uint32_t width = least; width <= shape.members / 2; width += least) {
    if (shape.members % width != 0 || !keeps_orders(used, shape.members, width)) continue;
    if (const auto rotated = rotated_links(used, graph, shape.members, width))
      return merge(shape, used, *rotated, width);
  }
  return std::nullopt;
}

std::optional<IsolatedResult> simulate_merged(const MergedCollective& merged, const network::Graph& graph,
                                              network::ComponentCache& cache) {
  network::Traffic traffic(network::make_flows(cache));
  for (const std::uint32_t link : merged.links) traffic.add_link(network::spec_of(graph, link));
  const std::uint32_t number = traffic.add(merged.generator, merged.routes);
  traffic.set_tie_order({0});
  for (std::uint32_t member = 0; member < merged.width(); ++member) traffic.enter(number, member);
  std::vector<network::Exit> exits;
  while (exits.size() < merged.width() || !traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(kNever, exits);
    if (exits.size() == before && !traffic.drained()) return std::nullopt;
  }
  IsolatedResult result;
  result.exits.resize(merged.generator->all_members());
  for (const network::Exit& exit : exits)
    for (std::uint32_t member = exit.member; member < result.exits.size(); member += merged.width())
      result.exits[member] = exit.at;
  result.drained = traffic.last_activity();
  result.counters = traffic.counters() * merged.copies();
  return result;
}

}  // namespace manyworlds::core::step
