#include "topologies/parts/groups.hpp"

#include "core/base/error.hpp"
#include "topologies/parts/limits.hpp"

namespace manyworlds::topologies {

using core::network::LinkKind;

void join_groups(core::network::Graph& graph, const FabricSpec& spec, std::string_view topology,
                 const std::vector<Tier>& groups, const GlobalCables& cables) {
  const auto count = static_cast<std::int64_t>(groups.size());
  if (count == 1) return;
  const std::int64_t ports = static_cast<std::int64_t>(groups.front().size()) * cables.per_router;
  const std::int64_t other_groups = count - 1, cables_per_pair = ports / other_groups;
  if (cables_per_pair == 0)
    throw core::InputError(
        fmt::format("{}: a group has {} global ports, but {} other groups to reach; use larger groups, or set "
                    "{}.global_links to {}",
                    topology, ports, other_groups, topology,
                    (other_groups + static_cast<std::int64_t>(groups.front().size()) - 1) /
                        static_cast<std::int64_t>(groups.front().size())));
  check_limits(graph, 0, count * other_groups / 2 * cables_per_pair, "global");
  const core::Time latency = cables.latency_ps > 0 ? cables.latency_ps : spec.nic_latency_ps;
  const auto router = [&](std::int64_t group, std::int64_t other, std::int64_t cable) {
    const std::int64_t port = cable * other_groups + (other < group ? other : other - 1);
    return groups[static_cast<std::size_t>(group)][static_cast<std::size_t>(port / cables.per_router)];
  };
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = a + 1; b < count; ++b)
      for (std::int64_t cable = 0; cable < cables_per_pair; ++cable)
        graph.add_cable({router(a, b, cable), router(b, a, cable), LinkKind::network, spec.nic_bits_per_second, latency,
                         0, cables.length});
}

}  // namespace manyworlds::topologies
