// PFC deadlocks: both ways to run pinned flows say which links wait for which, in the names of
// whoever asked, and what shares no link with them goes on.
#include <catch2/catch.hpp>

#include "core/network/flows/component_cache.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::tests;
using manyworlds::core::InputError;
using namespace manyworlds::core::network;

namespace {

/// Three switches in a ring, each with one GPU; the ring has a quarter of the NICs' rate.
struct Ring {
  Graph graph;
  std::vector<std::uint32_t> up, round, down;

  Ring() {
    for (int i = 0; i < 3; ++i) graph.add_vertex(VertexKind::gpu, "gpu" + std::to_string(i));
    for (int i = 0; i < 3; ++i) graph.add_vertex(VertexKind::network_switch, "switch" + std::to_string(i));
    for (std::uint32_t i = 0; i < 3; ++i)
      up.push_back(graph.add_cable(i, 3 + i, LinkKind::network, kRate, kMicrosecond)), down.push_back(up[i] + 1);
    for (std::uint32_t i = 0; i < 3; ++i)
      round.push_back(graph.add_cable(3 + i, 3 + (i + 1) % 3, LinkKind::network, kRate / 4, kMicrosecond));
  }
  /// From a GPU to the one two switches on.
  Route two_on(std::uint32_t gpu) const { return {up[gpu], round[gpu], round[(gpu + 1) % 3], down[(gpu + 2) % 3]}; }
};

Transport pausing() {
  Transport transport;
  transport.window_bytes = std::int64_t{1} << 40;
  transport.pfc_xoff_bytes = 20'000;
  transport.pfc_xon_bytes = 10'000;
  return transport;
}

std::string explained(const Graph& graph, const PauseDependencies& waits) {
  try {
    throw_pfc_deadlock(graph, waits);
  } catch (const InputError& error) {
    return error.what();
  }
}

void check_deadlock(const Ring& ring, Flows& flows) {
  for (std::uint32_t link = 0; link < ring.graph.links.size(); ++link) flows.add_link(spec_of(ring.graph, link));
  flows.set_tie_order({0});
  for (std::uint32_t gpu = 0; gpu < 3; ++gpu) flows.start({0, gpu}, flows.add_route(ring.two_on(gpu)), 40'000'000);
  const std::uint32_t backwards = flows.add_route({ring.round[0] + 1});  // shares no link with them
  flows.start({0, 3}, backwards, 4'000'000);
  std::vector<FlowId> finished;
  flows.advance(kNever, finished);
  CHECK(finished == std::vector<FlowId>{{0, 3}});
  finished.clear();
  flows.advance(kNever, finished);
  CHECK(finished.empty());
  CHECK_FALSE(flows.drained());
  const PauseDependencies waits = flows.deadlock();
  CHECK(waits.size() >= 3);
  CHECK_THAT(explained(ring.graph, waits),
             Catch::Contains("each other: switch0->switch1, switch1->switch2, switch2->switch0;"));
  // Time goes on, and others with it, but not these.
  const Time later = flows.now() + 1'000 * kMicrosecond;
  flows.advance(later, finished);
  CHECK((finished.empty() && flows.now() == later));
  flows.start({0, 4}, backwards, 4'000'000);
  flows.advance(kNever, finished);
  CHECK(finished == std::vector<FlowId>{{0, 4}});
}

}  // namespace

TEST_CASE("flows that pause each other for ever are a deadlock, and the ports that wait for each other are named") {
  const Ring ring;
  check_deadlock(ring, *make_plain_flows(pausing()));
  ComponentCache cache(pausing());
  check_deadlock(ring, *make_decomposed_flows(pausing(), cache));
}

TEST_CASE("flows that would pause each other for ever go on where one of them comes too late for that") {
  // The third flow starts when the other two are done: no cycle. Alone, the first two form none either.
  const Ring ring;
  const Transport transport = pausing();
  ComponentCache cache(transport);
  std::vector<Time> ends;
  for (const auto& flows : {make_plain_flows(transport), make_decomposed_flows(transport, cache)}) {
    for (std::uint32_t link = 0; link < ring.graph.links.size(); ++link) flows->add_link(spec_of(ring.graph, link));
    flows->set_tie_order({0});
    std::vector<FlowId> finished;
    for (std::uint32_t gpu = 0; gpu < 2; ++gpu) flows->start({0, gpu}, flows->add_route(ring.two_on(gpu)), 40'000'000);
    while (finished.size() < 2) flows->advance(kNever, finished);
    flows->start({0, 2}, flows->add_route(ring.two_on(2)), 40'000'000);
    flows->advance(kNever, finished);
    CHECK(finished.size() == 3);
    CHECK(flows->deadlock().empty());
    ends.push_back(flows->now());
  }
  CHECK(ends[0] == ends[1]);
}
