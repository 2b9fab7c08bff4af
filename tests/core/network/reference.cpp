// The packet engine against the plainest one: the same picoseconds, marks, pauses and packets.
#include <catch2/catch.hpp>

#include <ctime>

#include "core/network/transports/dcqcn.hpp"
#include "core/network/transports/dctcp.hpp"
#include "core/network/transports/hpcc.hpp"
#include "core/network/transports/nscc.hpp"
#include "core/network/transports/static_window.hpp"
#include "core/network/transports/swift.hpp"
#include "core/network/transports/timely.hpp"
#include "tests/core/network/network_problems.hpp"
#include "tests/core/network/reference_engine.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

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

void compare(const Problem& problem, Counters& seen) {
  const std::string& kind = problem.transport.kind;
  if (kind == "static_window") return compare<StaticWindow>(problem, {problem.transport.window_bytes}, false, seen);
  if (kind == "dcqcn") return compare<Dcqcn>(problem, {}, true, seen);
  if (kind == "dctcp") return compare<Dctcp>(problem, {}, true, seen);
  if (kind == "hpcc") return compare<Hpcc>(problem, {}, false, seen);
  if (kind == "nscc") return compare<Nscc>(problem, {}, true, seen);
  if (kind == "swift") return compare<Swift>(problem, {}, false, seen);
  if (kind == "timely") return compare<Timely>(problem, {}, false, seen);
  FAIL("no reference run of " << kind);
}

}  // namespace

TEST_CASE("what a port forwards and what begins there take turns by rank where they meet at one instant") {
  for (const std::uint32_t first : {0u, 1u}) {
    Problem problem;
    problem.links = {spec(kRate, 10 * kPacket, true, true), spec(kRate, kMicrosecond, true, true)};
    problem.routes = {{0, 1},
                      {1}};  // the first comes to the second link at the instants at which the other's packets leave
    problem.arrivals = {{0, {first, 0}, 0, 40 * 4096}, {0, {1 - first, 1}, 1, 40 * 4096}};
    problem.ranks = {0, 1};
    Counters seen;
    compare(problem, seen);
    CHECK(seen.link_hops == 120);
  }
}

TEST_CASE("the packet engine gives the reference engine's picoseconds on 3,000 drawn problems of all transports") {
  Counters seen;
  const std::vector<std::string> kinds = transport_kinds();
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    const Problem problem = draw(seed, kinds);
    INFO("seed " << seed << " " << problem.transport.kind);
    compare(problem, seen);
  }
  CHECK(seen.ecn_marks > 1'000);  // the draws do reach marking and pausing
  CHECK(seen.pauses > 1'000);
}
