// Broken cables: routes go round what is down, what is slow takes in proportion longer, and nothing else is accepted.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "core/network/fabric/router.hpp"
#include "core/network/flows/flows.hpp"
#include "experiments/faults/failed_cables.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::network::Graph;
using core::network::Link;
using core::network::Router;
using core::network::Routing;

namespace {

Graph built(const std::string& name, const core::OptionSet& options = {}, std::int64_t nodes = 4) {
  const topologies::FabricSpec spec{
      nodes, 4, core::compute::ScaleUp::nvswitch, 2'400'000'000'000, 500'000, 200'000'000'000, 1'000'000};
  for (const auto& topology : topologies::registry())
    if (topology.name == name) return topology.build(options, spec);
  throw core::InternalError("no topology " + name);
}

Graph broken(const Faults& faults, const std::string& name = "rail_optimized", const core::OptionSet& options = {}) {
  Graph graph = built(name, options);
  apply_faults(faults, graph);
  return graph;
}

std::string refusal(const Faults& faults, const std::string& name = "rail_optimized") {
  try {
    broken(faults, name);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

/// Names of "from-to" of every link that the routes of all pairs use.
std::set<std::string> links_used(const Graph& graph, Routing routing) {
  Router router(std::make_shared<const Graph>(graph), routing, 5);
  std::set<std::string> used;
  for (std::uint32_t from = 0; from < graph.gpus; ++from)
    for (std::uint32_t to = 0; to < graph.gpus; ++to)
      if (from != to)
        for (const std::uint32_t link : router.route(from, to, from * 100 + to))
          used.insert(graph.names[graph.links[link].from] + "-" + graph.names[graph.links[link].to]);
  return used;
}

/// When a transfer from GPU to GPU that has the fabric to itself is over.
core::Time duration(const Graph& graph, std::uint32_t from, std::uint32_t to, std::int64_t bytes) {
  core::network::Transport transport;
  const auto flows = core::network::make_plain_flows(transport);
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) flows->add_link(spec_of(graph, link));
  flows->set_tie_order({0});
  Router router(std::make_shared<const Graph>(graph), transport.routing, 0);
  flows->start({0, 0}, flows->add_route(router.route(from, to, 0)), bytes);
  std::vector<core::network::FlowId> finished;
  flows->advance(core::kNever, finished);
  return flows->now();
}

}  // namespace

TEST_CASE("routes leave out the cables that are down, and use them all when none is") {
  for (const Routing routing : {Routing::destination_mod_k, Routing::ecmp_hash}) {
    CHECK(links_used(broken({}), routing).count("rail1-spine2") == 1);
    const auto used = links_used(broken({"rail1-spine2, spine0 , gpu6-nvswitch1", "", ""}), routing);
    CHECK(used.count("rail1-spine2") == 0);
    CHECK(used.count("spine2-rail1") == 0);
    CHECK(used.count("rail1-spine1") == 1);
    CHECK(used.count("gpu6-nvswitch1") == 0);
    CHECK(used.count("gpu6-rail2") == 1);
    for (const std::string& link : used) CHECK(link.find("spine0") == std::string::npos);
  }
}

TEST_CASE("one of several parallel cables is named by its number, all of them by none") {
  const auto cables = [](const Graph& graph, const std::string& a, const std::string& b) {
    return std::count_if(graph.links.begin(), graph.links.end(),
                         [&](const Link& link) { return graph.names[link.from] == a && graph.names[link.to] == b; });
  };
  const auto options = core::OptionSet{{"spines", std::int64_t{2}}};  // four uplinks a rail: two cables to each spine
  CHECK(cables(broken({}, "rail_optimized", options), "rail0", "spine1") == 2);
  CHECK(cables(broken({"rail0-spine1#1", "", ""}, "rail_optimized", options), "rail0", "spine1") == 1);
  CHECK(cables(broken({"spine1-rail0", "", ""}, "rail_optimized", options), "rail0", "spine1") == 0);
  CHECK(broken({"rail0-spine1#0, rail0-spine1#1", "", ""}, "rail_optimized", options).links ==
        broken({"rail0-spine1", "", ""}, "rail_optimized", options).links);
}

TEST_CASE("a slow cable takes longer in proportion: the closed form of a path with one slower link") {
  const std::int64_t packets = 100;
  const core::network::Transport transport;
  const std::int64_t size = transport.payload_bytes + transport.header_bytes;
  const auto closed = [&](std::int64_t first, std::int64_t second) {  // b/s of the two links of a path along a rail
    const core::Time a = core::serialization_ps(size, first), b = core::serialization_ps(size, second);
    return a + b + 2 * 1'000'000 + (packets - 1) * std::max(a, b);
  };
  const std::int64_t bytes = packets * transport.payload_bytes, full = 200'000'000'000;
  CHECK(duration(broken({}), 0, 4, bytes) == closed(full, full));
  CHECK(duration(broken({"", "gpu4-rail0=0.5", ""}), 0, 4, bytes) == closed(full, full / 2));
  CHECK(duration(broken({"", "rail0-gpu0=0.125", ""}), 0, 4, bytes) == closed(full / 8, full));
  CHECK(duration(broken({"", "gpu9-rail1=0.125", ""}), 0, 4, bytes) == closed(full, full));
}

TEST_CASE("faults that name nothing, name twice, or cut somebody off are refused with what would be right") {
  using Catch::Contains;
  CHECK(refusal({"rail0-spine1", "rail0-spine2=0.5", ""}) == "(no error)");
  CHECK_THAT(refusal({"rail0-spin1", "", ""}), Contains("'faults.down'") && Contains("did you mean 'spine1'"));
  CHECK_THAT(refusal({"leaf0-spine1", "", ""}), Contains("no 'leaf0'"));
  CHECK_THAT(refusal({"rail0-rail1", "", ""}), Contains("no cable joins rail0 and rail1"));
  CHECK_THAT(refusal({"rail0-spine1#1", "", ""}), Contains("from 0 to 0"));
  CHECK_THAT(refusal({"rail0-spine1#x", "", ""}), Contains("from 0 to 0"));
  CHECK_THAT(refusal({"rail0#1", "", ""}), Contains("cables of no pair"));
  CHECK_THAT(refusal({"rail0-spine1,", "", ""}), Contains("between two commas"));
  CHECK_THAT(refusal({"rail0-spine1, spine1", "", ""}), Contains("'spine1' names rail0-spine1 a second time"));
  CHECK_THAT(refusal({"spine1", "rail0-spine1=0.5", ""}), Contains("a second time"));
  CHECK_THAT(refusal({"", "rail0-spine1", ""}), Contains("'faults.slow'") && Contains("=0.5"));
  for (const char* share : {"0", "1", "-1", "2", "nan", "half", "0.5x"})
    CHECK_THAT(refusal({"", std::string("rail0-spine1=") + share, ""}), Contains("above 0 and below 1"));
  CHECK_THAT(refusal({"gpu5-rail1", "", ""}), Contains("no path from GPU 0 to GPU 5"));
  CHECK_THAT(refusal({"gpu5", "", ""}), Contains("no path from GPU 0 to GPU 5"));
  CHECK_THAT(refusal({"spine0, spine1, spine2, spine3", "", ""}), Contains("no path"));
}

TEST_CASE("a GPU that loses one port of two stays, and two that share no plane any more are cut off") {
  CHECK(refusal({"gpu3-plane0_tor3", "", ""}, "hpn") == "(no error)");
  CHECK_THAT(refusal({"gpu3-plane0_tor3, gpu9-plane1_tor1", "", ""}, "hpn"), Catch::Contains("from GPU 3 to GPU 9"));
}

TEST_CASE("where GPUs relay, losing a NIC cuts a GPU off, and losing a rail's other senders does not") {
  CHECK_THAT(refusal({"gpu5-rail1", "", ""}, "rail_only"), Catch::Contains("to GPU 5"));
  // Without its scale-up cable a GPU keeps its rail, but no other one.
  CHECK_THAT(refusal({"gpu5-nvswitch1", "", ""}, "rail_only"), Catch::Contains("from GPU"));
}

TEST_CASE("faults are settings like others: axes over them, columns of them, and a serialized sweep that keeps them") {
  const Sweep sweep =
      read(with(kSingle, "  transport: dcqcn\n", "  transport: dcqcn\n  faults: {slow: rail0-spine1=0.5}\n") +
           "axes:\n  faults.down: ['', 'rail0-spine0', 'gpu0-rail0', 'rail7-spine0']\n");
  REQUIRE(sweep.experiments.size() == 2);
  REQUIRE(sweep.excluded.size() == 2);
  CHECK(sweep.excluded[0].rule == "faults_fit");
  CHECK_THAT(sweep.excluded[0].reason, Catch::Contains("no path from GPU 0"));
  CHECK_THAT(sweep.excluded[1].reason, Catch::Contains("no 'rail7'"));
  CHECK(sweep.columns.front().name == "faults.down");
  const Sweep back = deserialize(serialize(sweep));
  GraphCache graphs;
  const auto whole = configure(back.experiments[0], graphs).graph, less = configure(back.experiments[1], graphs).graph;
  CHECK(whole->links.size() == less->links.size() + 2);
  CHECK_THAT(error_of(kSingle + "  faults: {down: gpu0-rail0}\n"),
             Catch::StartsWith("s.yaml:7: 'faults' violates rule faults_fit"));
}

namespace {

std::string failure_refusal(const std::string& fails) {
  Faults faults;
  faults.fails = fails;
  faults.reconverge_us = 1;
  try {
    failures_of(faults, built("rail_optimized"));
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("cables that fail are named with the time since the begin of the step, in us, ms or s") {
  Faults faults;
  faults.fails = "rail0-spine1@2ms, rail1-spine0@ 1.5us , spine2@0.25s";
  faults.reconverge_us = 50'000, faults.retransmit_us = 4.096;
  const Graph graph = built("rail_optimized");
  const core::step::LinkFailures failures = failures_of(faults, graph);
  CHECK(failures.reconvergence_ps == 50'000'000'000);
  CHECK(failures.retransmit_ps == 4'096'000);
  std::map<core::Time, std::set<std::string>> by_time;
  for (const auto& [link, at] : failures.cables) {
    CHECK(link % 2 == 0);
    by_time[at].insert(graph.names[graph.links[link].from] + "-" + graph.names[graph.links[link].to]);
  }
  CHECK(by_time.at(2'000'000'000) == std::set<std::string>{"rail0-spine1"});
  CHECK(by_time.at(1'500'000) == std::set<std::string>{"rail1-spine0"});
  CHECK(by_time.at(250'000'000'000) ==
        std::set<std::string>{"rail0-spine2", "rail1-spine2", "rail2-spine2", "rail3-spine2"});
  CHECK(failures_of({}, graph) == core::step::LinkFailures());
}

TEST_CASE("an answer names cables that failed as they are set, by time, and says which failed too late to matter") {
  Faults faults;
  faults.fails = "spine2@5ms, rail0-spine1@1.5us, rail1-spine0@3s";
  faults.reconverge_us = 1'000;
  const Graph graph = built("rail_optimized");
  const auto cables = failed_cables(failures_of(faults, graph), graph);
  REQUIRE(cables.size() == 6);
  CHECK(cables[0].name == "rail0-spine1");
  CHECK(cables[0].avoided_at - cables[0].at == 1'000'000'000);
  CHECK(failed_cables_text(cables, 2'000'000'000'000, "the step", 7, 8) ==
        "rail0-spine1 at 1.5 us, avoided from 1.0015 ms; rail0-spine2, rail1-spine2, rail2-spine2, rail3-spine2 at 5 "
        "ms, avoided from 6 ms; rail1-spine0 at 3 s, after the end of the step: without effect; 7 packets lost, 8 sent "
        "again");
  CHECK(failed_cables_text(cables, 5'000'000'001, "the step", -1, -1) ==
        "rail0-spine1 at 1.5 us, avoided from 1.0015 ms; rail0-spine2, rail1-spine2, rail2-spine2, rail3-spine2 at 5 "
        "ms, not avoided by its end; rail1-spine0 at 3 s, after the end of the step: without effect");
  CHECK(failed_cables_text({cables[5]}, 1'000, "the collective", 0, 0) ==
        "rail1-spine0 at 3 s, after the end of the collective: without effect");
  CHECK(failed_cables_json(cables, 2'000'000'000'000).at(5).at("before_the_end") == false);
  // What is named can be set again, of parallel cables each by its number.
  Graph parallel = graph;
  const Link twice = graph.links[failures_of(faults, graph).cables.back().link];
  parallel.add_cable(twice);
  faults.fails = graph.names[twice.from] + "-" + graph.names[twice.to] + "@1ms";
  const auto both = failed_cables(failures_of(faults, parallel), parallel);
  REQUIRE(both.size() == 2);
  CHECK(both[0].name == "rail1-spine0#0");
  CHECK(both[1].name == "rail1-spine0#1");
}

TEST_CASE("cables that fail are refused without a time, twice, under no name, and if they leave GPUs apart") {
  for (const char* text : {"rail0-spine1", "rail0-spine1@", "rail0-spine1@2", "rail0-spine1@-1ms", "rail0-spine1@2 m",
                           "rail0-spine1@soon", "rail0-spine1@1e300s"})
    CHECK_THAT(failure_refusal(text), Catch::Contains("must end in the time since the begin of the step"));
  CHECK_THAT(failure_refusal("rail0-spine9@2ms"), Catch::Contains("this fabric has no 'spine9'"));
  CHECK_THAT(failure_refusal("rail0-spine1@2ms, rail0-spine1@3ms"), Catch::Contains("a second time"));
  CHECK_THAT(failure_refusal("rail0-spine1@2ms,"), Catch::Contains("nothing between two commas"));
  CHECK_THAT(failure_refusal("gpu0@2ms"), Catch::Contains("leave no path"));
}
