// The packet engine against the plainest one: the same picoseconds, marks, pauses and packets.
#include <catch2/catch.hpp>

#include <ctime>

#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/static_window.hpp"
#include "network_problems.hpp"
#include "reference_engine.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::test;

namespace {

template <class P>
void compare(const Problem& problem, const typename P::Parameters& parameters, bool marks, Counters& seen) {
  std::vector<ReferenceFlow> flows;
  for (const auto& arrival : problem.arrivals)
    flows.push_back({problem.routes[arrival.route], arrival.bytes, arrival.at,
                     static_cast<std::uint64_t>(problem.ranks[arrival.id.collective]) << 32 | arrival.id.transfer});
  ReferenceEngine<P> reference(problem.transport, parameters, marks, problem.links, flows);
  const std::vector<Time> ends = reference.run();
  auto plain = make_plain_flows(problem.transport);
  Counters counters;
  const auto done = play(problem, *plain, counters);
  REQUIRE(done.size() == flows.size());
  for (const Completion& completion : done)
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (problem.arrivals[i].id == completion.id) REQUIRE(completion.at == ends[i]);
  REQUIRE(counters.link_hops == reference.link_hops);
  REQUIRE(counters.ecn_marks == reference.marked);
  REQUIRE(counters.pauses == reference.pauses);
  seen += counters;
}

}  // namespace

TEST_CASE("the packet engine gives the reference engine's picoseconds on 1,500 drawn problems") {
  Counters seen;
  for (std::uint64_t seed = 1; seed <= 1'500; ++seed) {
    const Problem problem = draw(seed);
    INFO("seed " << seed);
    if (problem.transport.kind == "dcqcn")
      compare<Dcqcn>(problem, {}, true, seen);
    else
      compare<StaticWindow>(problem, {problem.transport.window_bytes}, false, seen);
  }
  CHECK(seen.ecn_marks > 1'000);  // the draws do reach marking and pausing
  CHECK(seen.pauses > 1'000);
}
