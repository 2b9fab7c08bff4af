// The network alone: closed forms, and both ways to simulate it give the same picoseconds.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "farm/net/net_collective.hpp"
#include "farm/net/network_report.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;
using experiments::import::Flow;

namespace {

/// Eight nodes of one GPU on one switch: 100 Gb/s links, 1 us each; packets of 4096 + 64 bytes take 332,800 ps.
core::step::Configuration one_switch(experiments::GraphCache& graphs) {
  const auto sweep =
      small_sweep("", {"cluster.nodes=8", "cluster.gpus_per_node=1", "cluster.nic_gbps=100", "cluster.nic_latency_us=1",
                       "topology=one_switch", "strategy.tp=1", "transport={static_window: {window_bytes: 1GiB}}"});
  return configure(sweep.experiments.front(), graphs);
}

constexpr core::Time kPacket = 332'800;  // ps

}  // namespace

TEST_CASE("a lone flow takes its packets on the first link, one on the second, and both latencies") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  const core::Time start = 5 * core::kMicrosecond;
  for (const bool plain : {false, true}) {
    const NetworkRun run = run_flows(configuration, {{0, 1, 100 * 4096, start}}, plain);
    CHECK(run.ends == std::vector<core::Time>{start + 101 * kPacket + 2 * core::kMicrosecond});
    CHECK(run.counters.link_hops == 200);
    CHECK(completion_times_of(run).max == 101 * kPacket + 2 * core::kMicrosecond);
  }
}

TEST_CASE("flows into one GPU cannot beat its link, whatever order they are written in") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  std::vector<Flow> flows;
  for (std::uint32_t source = 7; source >= 1; --source) flows.push_back({source, 0, 50 * 4096, 0});
  const NetworkRun divided = run_flows(configuration, flows, false), plain = run_flows(configuration, flows, true);
  CHECK(divided.ends == plain.ends);
  CHECK(divided.counters.link_hops == plain.counters.link_hops);
  // 7 x 50 packets through one link, after the first has crossed the other one.
  CHECK(plain.end() == 351 * kPacket + 2 * core::kMicrosecond);
}

TEST_CASE("later flows that share no link with others are cached, not simulated again") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < 10; ++i) flows.push_back({i % 8, (i + 1) % 8, 64 * 4096, i * core::kMillisecond});
  const NetworkRun run = run_flows(configuration, flows, false);
  CHECK(run.counters.link_hops == 10 * 128);
  CHECK(run.computed.simulated == 128);
  for (std::size_t i = 0; i < flows.size(); ++i) CHECK(run.ends[i] - run.starts[i] == run.ends[0]);
}

TEST_CASE("a ring all-gather over all GPUs takes its rounds") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  core::collective::Shape shape;
  shape.kind = core::collective::Kind::all_gather;
  shape.members = 8;
  shape.bytes = 8 * 10 * 4096;  // ten packets a round
  const NetworkRun divided = run_collective(configuration, shape, false),
                   plain = run_collective(configuration, shape, true);
  CHECK(divided.ends == plain.ends);
  CHECK(plain.end() == 7 * (11 * kPacket + 2 * core::kMicrosecond));
}

TEST_CASE("net runs the algorithm that is named, or the document's, and says what it picked") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  const auto text = [&](const std::string& kind, const std::string& algorithm, std::int64_t bytes) {
    return collective_of(configuration, kind, algorithm, bytes).text();
  };
  CHECK(text("all_reduce", "", 64) == "all_reduce ring n=8 64 B");
  CHECK(text("all_reduce", "auto", 64) == "all_reduce recursive_doubling n=8 64 B");
  CHECK(text("all_gather", "", 64) == "all_gather ring n=8 64 B");
  CHECK(text("all_to_all", "", 64) == "all_to_all pairwise n=8 64 B");
  CHECK(text("broadcast", "binomial_tree", 64) == "broadcast binomial_tree n=8 64 B");
  configuration.collectives.all_reduce = core::collective::Algorithm::halving_doubling;
  CHECK(text("all_gather", "", 64) == "all_gather halving_doubling n=8 64 B");
  CHECK_THROWS_WITH(text("all_reduce", "rign", 64), Catch::Contains("--algorithm rign") && Catch::Contains("'ring'"));
  CHECK_THROWS_WITH(text("all_reduce", "chain", 64), Catch::Contains("--algorithm chain"));
  CHECK_THROWS_WITH(text("allreduce", "", 64), Catch::Contains("'all_reduce'"));
  CHECK_THROWS_WITH(text("all_reduce", "two_level", 64), Catch::Contains("several nodes"));
}

TEST_CASE("halving and doubling over all GPUs takes its closed form") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  const auto shape = collective_of(configuration, "all_reduce", "halving_doubling", 8 * 10 * 4096);
  const NetworkRun divided = run_collective(configuration, shape, false),
                   plain = run_collective(configuration, shape, true);
  CHECK(divided.ends == plain.ends);
  // Steps of 40, 20 and 10 packets, twice, each through two links.
  CHECK(plain.end() == 2 * (70 + 3) * kPacket + 6 * 2 * core::kMicrosecond);
}

TEST_CASE("a collective whose cables fail sends again what they lost, and the report names them") {
  const auto run_with = [](const std::string& fails, std::string& text) {
    experiments::GraphCache graphs;
    const auto sweep = small_sweep("", {"cluster.nodes=8", "cluster.gpus_per_node=1", "cluster.nic_gbps=100",
                                        "cluster.nic_latency_us=1", "topology={fat_tree: {leaf_hosts: 4, spines: 4}}",
                                        "strategy.tp=1", "transport={static_window: {window_bytes: 1GiB}}",
                                        "composition=coupled", "faults={fails: '" + fails + "', reconverge_us: 100}"});
    const auto configuration = configure(sweep.experiments.front(), graphs);
    const auto shape = collective_of(configuration, "all_to_all", "", 8 * 10 * 4096);
    const NetworkRun run = run_collective(configuration, shape, false);
    text =
        NetworkReport{run, *configuration.graph, &shape, configuration.transport.fidelity, "no", configuration.failures}
            .text();
    return run;
  };
  std::string told;
  const NetworkRun intact = run_with("", told);
  CHECK_THAT(told, !Catch::Contains("failed"));
  const NetworkRun after = run_with("leaf0-spine0@1s", told);
  CHECK(after.ends == intact.ends);
  CHECK(after.counters.lost == 0);
  CHECK_THAT(told, Catch::Contains("failed: leaf0-spine0 at 1 s, after the end of the collective: without effect\n"));
  const NetworkRun failed = run_with("leaf0-spine0@5us", told);
  CHECK(failed.counters.lost > 0);
  CHECK(failed.counters.retransmissions == failed.counters.lost);
  CHECK(failed.end() > 105 * core::kMicrosecond);
  CHECK_THAT(told, Catch::Contains(fmt::format(
                       "failed: leaf0-spine0 at 5 us, avoided from 105 us; {0} packets lost, {0} sent again\n",
                       failed.counters.lost)));
}

TEST_CASE("percentiles are nearest ranks") {
  NetworkRun run;
  for (core::Time i = 1; i <= 200; ++i) run.starts.push_back(7), run.ends.push_back(7 + i);
  const CompletionTimes completion = completion_times_of(run);
  CHECK(completion.min == 1);
  CHECK(completion.p50 == 100);
  CHECK(completion.p99 == 198);
  CHECK(completion.max == 200);
  CHECK(completion.mean == 100.5);
}

TEST_CASE("a flow of more packets than can be numbered is bad input") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  configuration.transport.payload_bytes = 64;
  CHECK_THROWS_WITH(run_flows(configuration, {{0, 1, std::int64_t{1} << 40, 0}}, false),
                    Catch::Contains("payload_bytes"));
}

TEST_CASE("links carry every byte of the flows over them, and the link of an incast is the busiest") {
  experiments::GraphCache graphs;
  const auto configuration = one_switch(graphs);
  std::vector<Flow> flows;
  for (std::uint32_t source = 1; source <= 3; ++source) flows.push_back({source, 0, 10 * 4096 + 1, 0});
  const NetworkRun run = run_flows(configuration, flows, false);
  const auto names = link_names(*configuration.graph);
  // Ten packets of 4096 + 64 bytes and one of 1 + 64, 5.2 ns of a 100 Gb/s link.
  const core::Time each = 10 * kPacket + 5'200;
  std::int64_t hops = 0;
  for (std::size_t link = 0; link < run.loads.size(); ++link) {
    hops += run.loads[link].packets;
    const bool up = names[link].starts_with("gpu"), down = names[link].ends_with("->gpu0");
    const std::int64_t through = down ? 3 : up && names[link] < "gpu4" && names[link] > "gpu1" ? 1 : 0;
    INFO(names[link]);
    CHECK(run.loads[link].packets == through * 11);
    CHECK(run.loads[link].bytes == through * (10 * 4160 + 65));
    CHECK(run.loads[link].busy_ps == through * each);
  }
  CHECK(hops == run.counters.link_hops);
  const NetworkReport report{run, *configuration.graph};
  CHECK_THAT(report.links_csv(), Catch::StartsWith("link,packets,bytes,busy_ps,busy_share\n"));
  CHECK_THAT(report.links_csv(), Catch::Contains(fmt::format("->gpu0,33,{},{},", 3 * 41'665, 3 * each)));
  CHECK_THAT(report.text(),
             Catch::Contains(fmt::format("{:.1f} %  switch0->gpu0\n",
                                         100. * 3 * static_cast<double>(each) / static_cast<double>(run.elapsed()))));
}

TEST_CASE("links that packets choose on the way carry every data packet, acknowledgement and pull") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  std::vector<Flow> flows;
  for (std::uint32_t source = 1; source <= 3; ++source) flows.push_back({source, 0, 10 * 4096 + 1, 0});
  const auto names = link_names(*configuration.graph);
  const auto load_of = [&](const NetworkRun& run, const std::string& name) {
    return run.loads[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  };
  const auto check = [&](const NetworkRun& run) {
    std::int64_t hops = 0;
    for (const auto& load : run.loads) {
      hops += load.packets;
      CHECK(load.busy_ps == load.bytes * 80);  // a byte takes 80 ps at 100 Gb/s
      CHECK(load.busy_ps <= run.carried_ps);
    }
    CHECK(hops == run.counters.link_hops);
    for (std::size_t i = 0; i < flows.size(); ++i) CHECK(run.acknowledged[i] > run.ends[i]);
    CHECK_THAT(flows_csv(run, flows), Catch::StartsWith("src,dst,bytes,start_ps,end_ps,acknowledged_ps\n"));
    CHECK_THAT(NetworkReport({run, *configuration.graph}).json(), Catch::Contains("\"acknowledged_ps\""));
    CHECK(load_of(run, "switch0->gpu0").bytes == 3 * (10 * 4160 + 65));
  };
  configuration.transport.acks = core::network::Acks::in_band;
  const NetworkRun packets = run_flows(configuration, flows, false);
  check(packets);
  CHECK(load_of(packets, "gpu0->switch0").bytes == 33 * 64);  // one for each
  configuration.transport = {};
  configuration.transport.kind = "eqds";
  const NetworkRun pulled = run_flows(configuration, flows, false);
  check(pulled);
  CHECK(load_of(pulled, "gpu0->switch0").bytes % 64 == 0);
  CHECK(load_of(pulled, "gpu0->switch0").bytes >= 3 * 3 * 64);  // the first packet, and every fourth
}

TEST_CASE("a lone sender has its last acknowledgement one way back after the last packet arrived") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  configuration.transport.acks = core::network::Acks::in_band;
  const core::Time latency = 1'000'000, ack = 64 * 80;
  for (const std::int64_t packets : {1, 2, 40}) {
    const NetworkRun run = run_flows(configuration, {{1, 0, packets * 4096, 500}}, false);
    CHECK(run.ends == std::vector<core::Time>{500 + (packets + 1) * kPacket + 2 * latency});
    CHECK(run.acknowledged == std::vector<core::Time>{run.ends[0] + 2 * (ack + latency)});
    CHECK(run.carried_ps == run.acknowledged[0] - 500);
  }
}

TEST_CASE("parallel cables have names of their own") {
  core::network::Graph graph;
  const auto gpu = graph.add_vertex(core::network::VertexKind::gpu, "gpu0");
  const auto leaf = graph.add_vertex(core::network::VertexKind::network_switch, "leaf0");
  for (int i = 0; i < 2; ++i) graph.add_cable(gpu, leaf, core::network::LinkKind::network, 1, 1);
  CHECK(link_names(graph) == std::vector<std::string>{"gpu0->leaf0", "leaf0->gpu0", "gpu0->leaf0#2", "leaf0->gpu0#2"});
}

TEST_CASE("under analytic fidelity flows take their closed form, and nothing is simulated") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  for (const bool plain : {false, true}) {
    const NetworkRun run = run_flows(configuration, {{1, 0, 50 * 4096, 0}, {2, 0, 50 * 4096, 7}}, plain);
    CHECK(run.ends == std::vector<core::Time>{51 * kPacket + 2'000'000, 51 * kPacket + 2'000'007});
    CHECK(run.computed.simulated == 0);
  }
}

TEST_CASE("what alpha and beta on one path cannot bound is bad input to the network alone") {
  experiments::GraphCache graphs;
  auto configuration = one_switch(graphs);
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  const auto refused = [&](auto change) {
    auto other = configuration;
    change(other.transport);
    CHECK_THROWS_WITH(run_flows(other, {{1, 0, 4096, 0}}, false), Catch::Contains("fidelity: packet"));
    other.transport.fidelity = core::network::Fidelity::packet;
    CHECK(run_flows(other, {{1, 0, 4096, 0}}, false).ends.size() == 1);
  };
  refused([](auto& transport) { transport.kind = "eqds"; });
  refused([](auto& transport) { transport.routing = core::network::Routing::spray; });
  refused([](auto& transport) { transport.acks = core::network::Acks::in_band; });
  refused([](auto& transport) { transport.fabric = core::network::Fabric::lossy; });
}

TEST_CASE("GPUs that share a NIC share its rate, and several NICs for each add up") {
  const auto end_of = [](int nics, int gbps, const std::vector<Flow>& flows) {
    std::vector<std::string> all{"cluster.nodes=2",
                                 "cluster.gpus_per_node=4",
                                 "cluster.nic_latency_us=1",
                                 "topology=one_switch",
                                 "strategy.tp=1",
                                 "cluster.gpu.host_gb_per_s=12.5",
                                 "transport={static_window: {window_bytes: 1GiB}}"};
    all.push_back(fmt::format("cluster.nics_per_node={}", nics));
    all.push_back(fmt::format("cluster.nic_gbps={}", gbps));
    experiments::GraphCache graphs;
    const auto configuration = configure(small_sweep("", all).experiments.front(), graphs);
    const NetworkRun divided = run_flows(configuration, flows, false);
    CHECK(divided.ends == run_flows(configuration, flows, true).ends);
    return divided.end();
  };
  const std::vector<Flow> one{{0, 4, 100 * 4096, 0}}, both{{0, 4, 100 * 4096, 0}, {1, 5, 100 * 4096, 0}};
  constexpr core::Time kLatencies = 2 * core::kMicrosecond;
  CHECK(end_of(0, 100, both) == 101 * kPacket + kLatencies);
  // Two more links, of the host, each with a packet of its own time and a nanosecond.
  CHECK(end_of(2, 100, one) == 103 * kPacket + kLatencies + 2 * core::kNanosecond);
  CHECK(end_of(2, 100, both) == 203 * kPacket + kLatencies + 2 * core::kNanosecond);
  CHECK(end_of(4, 100, both) == 101 * kPacket + kLatencies);
  CHECK(end_of(8, 50, both) == 101 * kPacket + kLatencies);
}
