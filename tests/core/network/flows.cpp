// Closed forms of the packet engine, plain and divided.
#include <catch2/catch.hpp>

#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/traffic.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

// n hosts on one switch: up links [0, n), down links [n, 2n); route i -> j is {i, n + j}.
std::uint32_t one_switch_route(Flows& flows, std::uint32_t hosts, std::uint32_t from, std::uint32_t to) {
  return flows.add_route({from, hosts + to});
}
void one_switch(Flows& flows, std::uint32_t hosts) {
  for (std::uint32_t i = 0; i < hosts; ++i) flows.add_link(spec(kRate, kMicrosecond, true, false));
  for (std::uint32_t i = 0; i < hosts; ++i) flows.add_link(spec(kRate, kMicrosecond, false, true));
}

}  // namespace

TEST_CASE("an uncontended flow over h store-and-forward links meets its closed form") {
  Transport transport;
  transport.window_bytes = 1 << 26;
  for (const char* kind : {"static_window", "dcqcn"})
    for (const std::uint32_t hops : {1u, 2u, 4u, 6u})
      for (const std::int64_t packets : {1, 2, 300}) {
        transport.kind = kind;
        auto flows = make_plain_flows(transport);
        Route route;
        Time expected = (packets - 1) * 4 * kPacket;  // the bottleneck is a quarter of the rate
        for (std::uint32_t hop = 0; hop < hops; ++hop) {
          const std::int64_t rate = hop == hops / 2 ? kRate / 4 : kRate;
          route.push_back(flows->add_link(spec(rate, 700'000, hop == 0, hop + 1 == hops)));
          expected += 700'000 + serialization_ps(4160, rate);
        }
        flows->set_tie_order({0});
        flows->start({0, 0}, flows->add_route(route), packets * 4096);
        std::vector<FlowId> finished;
        flows->advance(kNever, finished);
        CHECK(finished.size() == 1);
        CHECK(flows->now() == expected);
        CHECK(flows->counters().link_hops == packets * hops);
      }
}

TEST_CASE("a flow with a short last packet obeys the store-and-forward recursion") {
  Transport transport;
  transport.window_bytes = 1 << 26;
  for (const std::int64_t bytes : {0, 1, 4095, 4097, 100'001}) {
    auto flows = make_plain_flows(transport);
    const std::vector<std::int64_t> rates{kRate, kRate / 3, kRate / 2};
    Route route;
    for (const std::int64_t rate : rates)
      route.push_back(flows->add_link(spec(rate, 500'000, route.empty(), route.size() == 2)));
    const std::int64_t packets = std::max<std::int64_t>(1, (bytes + 4095) / 4096);
    std::vector<Time> gone(rates.size(), 0);  // when each link is free again
    Time arrives = 0;
    for (std::int64_t i = 0; i < packets; ++i) {
      const std::int64_t size = (i + 1 < packets ? 4096 : bytes - (packets - 1) * 4096) + 64;
      arrives = 0;
      for (std::size_t hop = 0; hop < rates.size(); ++hop) {
        gone[hop] = std::max(gone[hop], arrives) + serialization_ps(size, rates[hop]);
        arrives = gone[hop] + 500'000;
      }
    }
    flows->set_tie_order({0});
    flows->start({0, 0}, flows->add_route(route), bytes);
    std::vector<FlowId> finished;
    flows->advance(kNever, finished);
    CHECK(flows->now() == arrives);
  }
}

TEST_CASE("an n-to-1 incast ends at its floor: the shared link never idles once it is reached") {
  for (const std::uint32_t senders : {2u, 8u, 32u})
    for (const char* kind : {"static_window", "dcqcn"}) {
      Transport transport;
      transport.kind = kind;
      transport.ecn_kmin_bytes = 1 << 28, transport.ecn_kmax_bytes = 1 << 29;  // no marks: PFC alone holds senders back
      auto flows = make_plain_flows(transport);
      one_switch(*flows, senders + 1);
      flows->set_tie_order({0});
      for (std::uint32_t i = 0; i < senders; ++i)
        flows->start({0, i}, one_switch_route(*flows, senders + 1, i, senders), 100 * 4096);
      std::vector<FlowId> finished;
      while (finished.size() < senders) flows->advance(kNever, finished);
      CHECK(flows->now() == kPacket + kMicrosecond + senders * 100 * kPacket + kMicrosecond);
    }
}

TEST_CASE("a ring all-reduce on one switch meets its closed form, plain and divided") {
  const Transport transport;
  for (const std::uint32_t n : {2u, 3u, 8u, 16u}) {
    const std::int64_t chunk = 25 * 4096;
    const auto dag = std::make_shared<collective::Dag>(
        collective::build({collective::Kind::all_reduce, collective::Algorithm::ring, n, chunk * n, 1}));
    ComponentCache cache(transport);
    for (const bool decomposed : {false, true}) {
      Traffic traffic(decomposed ? make_decomposed_flows(transport, cache) : make_plain_flows(transport));
      for (std::uint32_t i = 0; i < 2 * n; ++i) traffic.add_link(spec(kRate, kMicrosecond, i < n, i >= n));
      std::vector<Route> routes;
      for (const auto& [from, to] : dag->pairs) routes.push_back({from, n + to});
      const std::uint32_t id = traffic.add(dag, routes);
      traffic.set_tie_order({0});
      for (std::uint32_t i = 0; i < n; ++i) traffic.enter(id, i);
      std::vector<Exit> exits;
      while (exits.size() < n) traffic.advance(kNever, exits);
      const Time step = 25 * kPacket + kPacket + 2 * kMicrosecond;
      for (const Exit& exit : exits) CHECK(exit.at == 2 * (n - 1) * step);
      CHECK(traffic.drained());
      CHECK(traffic.counters().link_hops == 2 * (n - 1) * n * 25 * 2);
    }
    CHECK(cache.link_hops().simulated == 25 * 2);  // one transfer, however large the ring
  }
}

TEST_CASE("two flows on one NIC take the sum of their bytes over its rate, and share it packet by packet") {
  const Transport transport;
  auto flows = make_plain_flows(transport);
  one_switch(*flows, 3);
  flows->set_tie_order({0});
  flows->start({0, 0}, one_switch_route(*flows, 3, 0, 1), 200 * 4096);
  flows->start({0, 1}, one_switch_route(*flows, 3, 0, 2), 200 * 4096);
  std::vector<FlowId> finished;
  flows->advance(kNever, finished);
  CHECK(flows->now() == 399 * kPacket + kMicrosecond + kPacket + kMicrosecond);
  flows->advance(kNever, finished);
  CHECK(flows->now() == 400 * kPacket + kMicrosecond + kPacket + kMicrosecond);
  CHECK(finished == std::vector<FlowId>{{0, 0}, {0, 1}});
}
