#include "topologies/parts/groups.hpp"

#include "core/base/error.hpp"
#include "topologies/parts/room.hpp"

namespace manyworlds::topologies {

using core::network::LinkKind;

void join_groups(core::network::Graph& graph, const Site& site, std::string_view topology,
                 const std::vector<Tier>& groups, const GlobalCables& cables) {
  const auto count = static_cast<std::int64_t>(groups.size());
  if (count == 1) return;
  const std::int64_t ports = static_cast<std::int64_t>(groups.front().size()) * cables.each;
  const std::int64_t others = count - 1, parallel = ports / others;
  if (parallel == 0)
    throw core::InputError(
        fmt::format("{}: a group has {} global ports, but {} other groups to reach; larger groups, or {}.global_links "
                    "of {}, would do",
                    topology, ports, others, topology,
                    (others + static_cast<std::int64_t>(groups.front().size()) - 1) /
                        static_cast<std::int64_t>(groups.front().size())));
  require_room(graph, 0, count * others / 2 * parallel, "global");
  const core::Time latency = cables.latency_ps > 0 ? cables.latency_ps : site.nic_latency_ps;
  const auto router = [&](std::int64_t group, std::int64_t other, std::int64_t cable) {
    const std::int64_t port = cable * others + (other < group ? other : other - 1);
    return groups[static_cast<std::size_t>(group)][static_cast<std::size_t>(port / cables.each)];
  };
  for (std::int64_t a = 0; a < count; ++a)
    for (std::int64_t b = a + 1; b < count; ++b)
      for (std::int64_t cable = 0; cable < parallel; ++cable)
        graph.add_cable({router(a, b, cable), router(b, a, cable), LinkKind::network, site.nic_bits_per_second, latency,
                         0, cables.length});
}

}  // namespace manyworlds::topologies
