// Construction of switch tiers, and calculation of the uplinks between them.
#include "topologies/parts/tiers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "topologies/parts/limits.hpp"

namespace manyworlds::topologies {

using core::InputError;
using core::network::Graph;

namespace {

constexpr double kIntegerTolerance = 1e-9;  // tolerance for ratios that are typed with rounding, such as 1.3333333333

/// Returns "2 or 4": the ratios nearest to `oversubscription` that divide the hosts of a leaf into an integer number of
/// uplinks.
std::string nearest_ratios(std::int64_t hosts, double oversubscription) {
  std::int64_t below = 1, above = hosts;
  for (std::int64_t ratio = 1; ratio <= hosts; ++ratio) {
    if (hosts % ratio != 0) continue;
    if (static_cast<double>(ratio) <= oversubscription) below = ratio;
    if (static_cast<double>(ratio) >= oversubscription && ratio < above) above = ratio;
  }
  return below == above ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

/// Returns ", or leaf_hosts: 24": the largest number of hosts not above the leaf's that the ratio divides, a multiple
/// of eight if possible. Empty if the ratio is not an integer.
std::string alternative_hosts(std::string_view hosts_key, std::int64_t hosts, double oversubscription) {
  const auto ratio = static_cast<std::int64_t>(std::llround(oversubscription));
  if (std::abs(oversubscription - static_cast<double>(ratio)) > kIntegerTolerance * oversubscription) return "";
  const std::int64_t multiple_of_eight = std::lcm(ratio, std::int64_t{8}),
                     step = multiple_of_eight <= hosts ? multiple_of_eight : ratio;
  return fmt::format(", or {}: {}", hosts_key, std::max(hosts / step, std::int64_t{1}) * step);
}

}  // namespace

Tier add_tier(Graph& graph, std::int64_t count, std::string_view prefix) {
  check_limits(graph, count, 0, prefix);
  Tier tier;
  for (std::int64_t i = 0; i < count; ++i)
    tier.push_back(graph.add_vertex(core::network::VertexKind::network_switch, fmt::format("{}{}", prefix, i)));
  return tier;
}

Tier subtier(const Tier& tier, std::int64_t index, std::int64_t size) {
  const auto first = index * size;
  const auto last = std::min(first + size, static_cast<std::int64_t>(tier.size()));
  return {tier.begin() + first, tier.begin() + last};
}

void add_network_cable(Graph& graph, const FabricSpec& spec, std::uint32_t lower, std::uint32_t upper) {
  graph.add_cable(lower, upper, core::network::LinkKind::network, spec.nic_bits_per_second, spec.nic_latency_ps);
}

void connect_tiers(Graph& graph, const FabricSpec& spec, const Tier& lower, const Tier& upper, std::int64_t cables) {
  check_limits(graph, 0, static_cast<std::int64_t>(lower.size() * upper.size()) * cables, "leaf and spine");
  for (const std::uint32_t low : lower)
    for (const std::uint32_t up : upper)
      for (std::int64_t i = 0; i < cables; ++i) add_network_cable(graph, spec, low, up);
}

Uplinks uplinks_of(std::string_view topology, std::string_view hosts_key, std::int64_t hosts, double oversubscription,
                   std::int64_t spines) {
  if (!(oversubscription >= 1))
    throw InputError(fmt::format("{}.oversubscription is {}; it must be 1 or more", topology, oversubscription));
  if (hosts < 1) throw InputError(fmt::format("{}.{} is {}; it must be 1 or more", topology, hosts_key, hosts));
  const double exact = static_cast<double>(hosts) / oversubscription;
  const double uplinks = std::floor(exact + 0.5);
  if (uplinks < 1 || std::abs(exact - uplinks) > kIntegerTolerance * exact)
    throw InputError(
        fmt::format("{}.oversubscription {} does not leave the {} host ports of a leaf ({}) a whole number of uplinks; "
                    "{} is valid{}",
                    topology, oversubscription, hosts, hosts_key, nearest_ratios(hosts, oversubscription),
                    alternative_hosts(hosts_key, hosts, oversubscription)));
  Uplinks result{static_cast<std::int64_t>(uplinks), spines};
  if (spines == 0) result.spines = result.uplinks;
  if (result.spines < 0 || result.uplinks % result.spines != 0)
    throw InputError(fmt::format("{}.spines {} does not divide the {} uplinks of a leaf evenly; {} is valid", topology,
                                 spines, result.uplinks, result.uplinks));
  return result;
}

}  // namespace manyworlds::topologies
