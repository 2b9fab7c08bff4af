#include "core/step/fluid/transport_efficiency.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::core::step {

std::int64_t TransportEfficiency::ppm(const SharedHop& shared, std::int64_t transfers) {
  const auto [ppm, is_new] = known_.of(shared, transfers);
  if (is_new) ppm = measure(shared, transfers);
  return ppm;
}

std::int64_t TransportEfficiency::measure(const SharedHop& shared, std::int64_t transfers) {
  const Int128 sum = packets_.fabric() ? packet_by_packet(shared, transfers) : on_components(shared, transfers);
  const Time alone = network::uncontended_ps(packets_.transport(), shared.path, shared.bytes);
  // All of them, each as long as its share would take.
  const Int128 fair = Int128{alone} * transfers * transfers / shared.ways;
  return static_cast<std::int64_t>(std::min<Int128>(1'000'000, fair * 1'000'000 / sum));
}

Int128 TransportEfficiency::sum_of_ends(network::Flows& flows, std::int64_t transfers) {
  Int128 sum = 0;
  std::vector<network::FlowId> finished;
  for (std::int64_t open = transfers; open > 0; open -= static_cast<std::int64_t>(finished.size())) {
    finished.clear();
    flows.advance(kNever, finished);
    MANYWORLDS_CHECK(!finished.empty(), "{} of {} transfers over one link wait for ever", open, transfers);
    sum += Int128{flows.now()} * static_cast<std::int64_t>(finished.size());
  }
  return sum;
}

/// Every transfer has links of its own but for the shared one.
Int128 TransportEfficiency::on_components(const SharedHop& shared, std::int64_t transfers) {
  const std::unique_ptr<network::Flows> flows = network::make_flows(packets_);
  const std::uint32_t common = flows->add_link(shared.path[shared.hop]);
  flows->set_tie_order({0});
  for (std::int64_t i = 0; i < transfers; ++i) {
    network::Route route;
    for (std::size_t hop = 0; hop < shared.path.size(); ++hop)
      route.push_back(hop == shared.hop ? common : flows->add_link(shared.path[hop]));
    flows->start({0, static_cast<std::uint32_t>(i)}, flows->add_route(route), shared.bytes);
  }
  return sum_of_ends(*flows, transfers);
}

/// The same on a fabric made for it, on which packets choose among the shared links.
Int128 TransportEfficiency::packet_by_packet(const SharedHop& shared, std::int64_t transfers) {
  using network::VertexKind;
  const std::size_t hops = shared.path.size();
  const bool one_source = shared.hop == 0, one_destination = shared.hop + 1 == hops;
  const auto count = static_cast<std::uint32_t>(transfers);
  auto graph = std::make_shared<network::Graph>();
  std::vector<std::uint32_t> at, destinations;
  for (std::uint32_t i = 0; i < count; ++i)
    at.push_back(one_source && i > 0 ? at.front() : graph->add_vertex(VertexKind::gpu, "source"));
  for (std::uint32_t i = 0; i < count; ++i)
    destinations.push_back(one_destination && i > 0 ? destinations.front()
                                                    : graph->add_vertex(VertexKind::gpu, "destination"));
  std::vector<network::Route> routes(count);
  const auto join = [&](std::uint32_t from, std::uint32_t to, const network::LinkSpec& link) {
    const auto kind = link.scale_up ? network::LinkKind::scale_up : network::LinkKind::network;
    return graph->add_cable(from, to, kind, link.bits_per_second, link.latency_ps);
  };
  const std::uint32_t before = one_source ? at.front() : graph->add_vertex(VertexKind::network_switch, "before");
  const std::uint32_t after =
      one_destination ? destinations.front() : graph->add_vertex(VertexKind::network_switch, "after");
  std::uint32_t shared_link = 0;
  for (std::int64_t way = shared.ways; way-- > 0;) shared_link = join(before, after, shared.path[shared.hop]);
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::size_t hop = 0; hop < hops; ++hop) {
      if (hop == shared.hop) {
        routes[i].push_back(shared_link);
        at[i] = after;
        continue;
      }
      const std::uint32_t to = hop + 1 == shared.hop ? before
                               : hop + 1 == hops     ? destinations[i]
                                                     : graph->add_vertex(VertexKind::network_switch, "between");
      routes[i].push_back(join(at[i], to, shared.path[hop]));
      at[i] = to;
    }
  const std::unique_ptr<network::Flows> flows = network::make_per_packet_flows(packets_.transport(), graph);
  for (std::uint32_t link = 0; link < graph->links.size(); ++link) flows->add_link(network::spec_of(*graph, link));
  flows->set_tie_order({0});
  for (std::uint32_t i = 0; i < count; ++i) flows->start({0, i}, flows->add_route(routes[i]), shared.bytes);
  return sum_of_ends(*flows, transfers);
}

}  // namespace manyworlds::core::step
