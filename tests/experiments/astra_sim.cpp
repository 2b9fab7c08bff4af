// ASTRA-sim's files: what its workload does on its analytical network, and what is wrong in them.
#include <algorithm>

#include "experiments/astra_sim/as_cluster.hpp"
#include "experiments/chakra/read_traces.hpp"
#include "tests/experiments/astra_sim_files.hpp"
#include "tests/experiments/astra_sim_oracle.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::tests::astra_sim_files;
using astra_sim_oracle::Oracle;
using astra_sim_oracle::Setup;

namespace {

const std::string kConnected2 = network_text("FullyConnected", 2);

/// The nanoseconds of an all-reduce of 1 MiB by two neighbours: in a chunk of 256 KiB, two messages of 128 KiB after a
/// latency each, an endpoint's delay before and behind them, and a reduction at 1600 GB/s.
constexpr std::int64_t kAllReduce2 = 4 * (10 + 2 * (500 + 2441 + 10) + 3 * 81);

TraceNode mebibyte(std::uint64_t id, std::vector<std::uint64_t> after = {}, const std::string& group = "") {
  return collective_node(id, CommType::all_reduce, 1 << 20, std::move(after), group);
}

}  // namespace

TEST_CASE("a rank computes and communicates one operation of each at a time, the smallest id first") {
  const Configuration configuration = files(kSystem, kConnected2);
  const std::vector<TraceNode> alone{node(1, NodeType::comp, 10), mebibyte(2, {1}), node(3, NodeType::comp, 5, {2})};
  CHECK(step_ps({alone, alone}, configuration) == 1000 * (10'000 + kAllReduce2 + 5000));
  const step::StepResult step = tests::step_of(imported({alone, alone}, configuration).programs);
  CHECK(step.breakdown[workload::StepPart::kernels] == Approx(15e-6));
  CHECK(step.breakdown[workload::StepPart::exposed_other] == Approx(1e-9 * kAllReduce2));
  // Kernel 4 is ready at once, and runs behind 1; 5 beside the second collective, which waits for the first.
  const std::vector<TraceNode> beside{node(1, NodeType::comp, 10), mebibyte(2), mebibyte(3),
                                      node(4, NodeType::comp, 12), node(5, NodeType::comp, 7, {2})};
  CHECK(step_ps({beside, beside}, configuration) == 1000 * 2 * kAllReduce2);
  const std::vector<TraceNode> behind{mebibyte(1), node(2, NodeType::comp, 100), node(3, NodeType::comp, 7, {1})};
  CHECK(step_ps({behind, behind}, configuration) == 1000 * 107'000);
  // A single trace stands for all ranks of the network; the answer is told too.
  const programs::Imported one = imported({alone}, configuration);
  CHECK(one.programs.ranks.program_of_rank.size() == 2);
  CHECK(std::find(one.account.begin(), one.account.end(),
                  fmt::format("ASTRA-sim's time: {} ns, of the longest rank", 15'000 + kAllReduce2)) !=
        one.account.end());
}

TEST_CASE("ASTRA-sim's own regression test has the result that is kept beside it") {
  // tests/rt_template: an all-reduce of 1 MiB by 8 ranks on a ring, with memory of 50 GB/s; "Wall time: 117780".
  const Configuration configuration = files(with(R"("local-mem-bw": 50)"), network_text("Ring", 8));
  CHECK(step_ps(Ranks(8, {mebibyte(1)}), configuration) == 117'780'000);
  CHECK(step_ps(Ranks(8, {mebibyte(1)}), configuration, Congestion::aware) == 117'780'000);
}

TEST_CASE("ranks that come to a collective at different times leave it as in a plain simulation") {
  const auto rank = [](std::uint64_t us) {
    return std::vector<TraceNode>{node(1, NodeType::comp, us), mebibyte(2, {1}), node(3, NodeType::comp, 5, {2})};
  };
  Setup setup;
  setup.dimensions = {{"FullyConnected", 2, 50, 500}};
  setup.kind = "all_reduce";
  setup.algorithms = {"ring"};
  setup.bytes = 1 << 20;
  setup.splits = 4;
  setup.memory_gb_per_s = 1600;
  setup.entries = {10'000, 25'000};
  const std::vector<std::int64_t> ends = Oracle(setup).run();
  CHECK(ends[0] != ends[1]);
  CHECK(step_ps({rank(10), rank(25)}, files(kSystem, kConnected2)) ==
        1000 * (*std::max_element(ends.begin(), ends.end()) + 5000));
  // Over several dimensions, and with congestion, it begins when the last has come, and that is told.
  const programs::Imported late = imported({rank(10), rank(25)}, files(kSystem, kConnected2), Congestion::aware);
  CHECK(tests::step_of(late.programs).step_ps == 1000 * (25'000 + kAllReduce2 + 5000));
  CHECK(std::any_of(late.account.begin(), late.account.end(), [](const std::string& line) {
    return line.starts_with("1 collectives whose ranks come at different times begin when the last has come");
  }));
}

TEST_CASE("the all-reduce of an HGX of 16 scatters in nodes, reduces between them and gathers") {
  // inputs/network/hgx_h100_16gpu.yml and its system file: four chunks of 1 MiB, two at a time in each dimension.
  const Configuration configuration = files(
      R"({"scheduling-policy": "LIFO", "endpoint-delay": 1, "active-chunks-per-dimension": 2,
          "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring", "ring"],
          "collective-optimization": "localBWAware", "local-mem-bw": 3350, "boost-mode": 0, "track-local-mem": 1,
          "local-mem-trace-filename": "mem_trace/local_memory_trace"})",
      "topology: [ Switch, Ring ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 400, 50 ]\nlatency: [ 936.25, 1000 ]\n");
  // 128 KiB to each of eight at 429.4967296 bytes/ns, then 64 KiB between two at 53.6870912.
  const std::int64_t in_node = 1872 + 305, between = 1000 + 1220;  // 1872.5 + 305.18 and 1000 + 1220.70, rounded down
  const std::int64_t scatter = 1 + 7 * (in_node + 1 + 3 * 39), reduce = 1 + 2 * (between + 1) + 3 * 19,
                     gather = 1 + 7 * (in_node + 1);
  // Chunks 0 and 1 scatter, then 2 and 3; the nodes' dimension is free for the first two's gathers when these end, and
  // has them behind it by then.
  const std::int64_t first_back = scatter + reduce, nodes_free = 2 * scatter;
  REQUIRE(first_back < nodes_free);
  const std::int64_t expected = std::max(nodes_free + gather, nodes_free + reduce) + gather;
  const std::vector<TraceNode> rank{collective_node(1, CommType::all_reduce, 4 << 20)};
  CHECK(step_ps(Ranks(16, rank), configuration) == 1000 * expected);
}

TEST_CASE("groups are told as ASTRA-sim's file has them, and their endpoints take 10 ns") {
  const Configuration configuration = files(with(R"("endpoint-delay": 100)"), network_text("Ring", 4));
  const std::string groups = R"({"1": [0, 1], "2": [2, 3]})";
  const std::vector<TraceNode> low{mebibyte(1, {}, "1")}, high{mebibyte(1, {}, "2")};
  CHECK(step_ps({low, low, high, high}, configuration, Congestion::unaware, groups) == 1000 * kAllReduce2);
}

TEST_CASE("collectives of some dimensions are phases of these, or of groups where they are simulated") {
  TraceNode some = mebibyte(1), none = mebibyte(1), named = mebibyte(1, {}, "1");
  const auto involve = [](TraceNode& node, const std::string& dimensions) {
    Attribute list = Attribute::of("involved_dim", Attribute::kBoolList, 0);
    list.bytes = std::string("\x0a") + static_cast<char>(dimensions.size()) + dimensions;
    node.attributes.push_back(list);
  };
  involve(some, std::string("\0\1", 2));
  involve(named, std::string("\0\1", 2));
  involve(none, std::string("\0\0", 2));
  // An all-reduce over the second dimension, which is what one of its ranks alone would do.
  const Configuration configuration =
      files(with(R"("all-reduce-implementation": ["ring", "ring"])"),
            "topology: [FullyConnected, FullyConnected]\nnpus_count: [3, 2]\nbandwidth: [9, 50]\nlatency: [77, 500]\n");
  CHECK(step_ps(Ranks(6, {some}), configuration) == 1000 * kAllReduce2);
  const programs::Imported simulated = imported(Ranks(6, {some}), configuration, std::nullopt);
  REQUIRE(simulated.programs.ranks.program_of_rank.size() == 6);
  CHECK(simulated.programs.ranks.dimensions.size() == 1);
  CHECK(error(Ranks(6, {none}), configuration) ==
        "t.0.et: node 1 ('node') involves no dimension, of which ASTRA-sim waits for the end for ever");
  // A group that is named is asked for no dimensions, as in ASTRA-sim.
  CHECK_NOTHROW(imported(Ranks(6, {named}), configuration, Congestion::unaware, R"({"1": [0, 1, 2, 3, 4, 5]})"));
}

TEST_CASE("control dependencies are waited for as in ASTRA-sim, where its times are asked for") {
  std::vector<TraceNode> rank{node(1, NodeType::comp, 10), mebibyte(2)};
  rank[1].ctrl_deps = {1};
  const Configuration configuration = files(kSystem, kConnected2);
  CHECK(step_ps({rank, rank}, configuration) == 1000 * (10'000 + kAllReduce2));
  rank[1].ctrl_deps = {3};
  CHECK(error({rank, rank}, configuration) ==
        "t.0.et: node 2 ('node') waits for node 3, which the trace does not have");
}

TEST_CASE("transfers take the way between their ranks, and receives wait for no resource") {
  const Configuration configuration = files(kSystem, network_text("Ring", 5));
  const std::vector<TraceNode> idle{node(1, NodeType::comp, 1)};
  const auto ns = [](int hops) { return hops * 500 + 76; };  // 4096 bytes at 53.687 bytes/ns take 76.29 ns
  // Two sends one after the other: to the neighbour, and the shorter way around to the third.
  const Ranks ranks{{transfer(1, false, 1, 4096), transfer(2, false, 3, 4096)},
                    {node(1, NodeType::comp, 1), transfer(2, true, 0, 4096, {1}), node(3, NodeType::comp, 2, {2})},
                    idle,
                    {transfer(1, true, 0, 4096), node(2, NodeType::comp, 4, {1})},
                    idle};
  CHECK(step_ps(ranks, configuration) == 1000 * (ns(1) + ns(2) + 4000));
  const Ranks late{{transfer(1, false, 1, 4096)}, ranks[1], idle, idle, idle};
  CHECK(step_ps(late, configuration) == 1000 * 3000);  // it has come when it is asked for
  CHECK(error(ranks, configuration, Congestion::aware).find("t.0.et: node 1 ('node') is a transfer of two ranks") == 0);
}

TEST_CASE("compute nodes take the roofline's nanoseconds, rounded down") {
  const Configuration configuration =
      files(with(R"("roofline-enabled": 1, "peak-perf": 100, "local-mem-bw": 1000)"), kConnected2);
  const auto kernel = [](std::uint64_t id, std::int64_t operations, std::int64_t bytes) {
    return node(id, NodeType::comp, 9, id > 1 ? std::vector{id - 1} : std::vector<std::uint64_t>(),
                {whole("num_ops", operations), whole("tensor_size", bytes)});
  };
  // 2e6 operations at 100 TFLOP/s; 2,000,001 bytes at 1000 GB/s; none without a tensor.
  const std::vector<TraceNode> rank{kernel(1, 2'000'000, 1000), kernel(2, 1000, 2'000'001), kernel(3, 1000, 0)};
  CHECK(step_ps({rank, rank}, configuration) == 1000 * (20 + 2000));
  CHECK(error({{kernel(1, 0, 1000)}}, configuration) ==
        "t.0.et: node 1 ('node') has a tensor_size and no num_ops, of which the roofline has no time");
  // Where the network is simulated, the roofline is that of the traces' reader.
  CHECK(step_ps({rank, rank}, configuration, std::nullopt) == 20'000 + 2'000'001 + 9'000'000);
}

TEST_CASE("loads and stores take the remote memory's time, one after the other where they share it") {
  Configuration configuration = files(kSystem, kConnected2);
  const std::vector<TraceNode> rank{node(1, NodeType::mem_load, 0, {}, {whole("tensor_size", 5009)}),
                                    node(2, NodeType::mem_store, 0, {}, {whole("tensor_size", 5009)})};
  const auto of = [&](const std::string& type) {
    configuration.memory = parse_memory_file(
        fmt::format(R"({{"memory-type": "{}", "remote-mem-latency": 100, "remote-mem-bw": 10, "num-nodes": 1,
                         "num-npus-per-node": 2}})",
                    type),
        "memory.json", 2);
    return step_ps({rank, rank}, configuration);
  };
  CHECK(of("PER_NPU_MEMORY_EXPANSION") == 1000 * 2 * 600);
  CHECK(of("PER_NODE_MEMORY_EXPANSION") == 1000 * 4 * 600);
  CHECK(of("MEMORY_POOL") == 1000 * 4 * 600);
  CHECK(
      error({rank, rank}, files(kSystem, kConnected2)).find("t.0.et: node 1 ('node') loads or stores remote memory") ==
      0);
}

TEST_CASE("collectives stay operations of the simulated network unless ASTRA-sim's times are asked for") {
  const std::vector<TraceNode> rank{mebibyte(1)};
  const programs::Imported plain = chakra::import_traces(files_of(Ranks{rank, rank}), "", "t");
  const programs::Imported simulated = imported({rank, rank}, files(kSystem, kConnected2), std::nullopt);
  CHECK(simulated.programs.programs == plain.programs.programs);
  CHECK(tests::step_of(simulated.programs).step_ps == alone("all_reduce", 1 << 20, "[0,1]", 2));
  const auto tells = [&](const std::string& begin) {
    return std::any_of(simulated.account.begin(), simulated.account.end(),
                       [&](const std::string& line) { return line.starts_with(begin); });
  };
  CHECK(tells("collectives are simulated, and not as system.json says: all-reduce-implementation, "));
  CHECK(tells("keys of system.json that change no time: scheduling-policy orders collectives"));
  CHECK(tells("the network in a spec, with a GPU of yours: cluster: {nodes: 1, gpus_per_node: 2, "));
}

TEST_CASE("a network is told as a cluster of ours, with its rates in powers of ten") {
  const auto told = [](const std::string& text) { return as_cluster(parse_network_file(text, "n")); };
  const std::string begin = "the network in a spec, with a GPU of yours: cluster: ";
  CHECK(told(network_text("Switch", 8)) ==
        begin +
            "{nodes: 8, gpus_per_node: 1, gpu: GPU, nic_gbps: 429.4967296, nic_latency_us: 0.5}, "
            "topology: one_switch");
  CHECK(told(network_text("FullyConnected", 4)) ==
        begin +
            "{nodes: 1, gpus_per_node: 4, gpu: {like: GPU, scale_up: full_mesh, scale_up_domain: 4, "
            "scale_up_gb_per_s: 161.0612736, scale_up_latency_us: 0.5}, nic_gbps: 1}, topology: one_switch");
  CHECK(told("topology: [Switch, Switch]\nnpus_count: [8, 2]\nbandwidth: [400, 50]\nlatency: [936.25, 0]\n") ==
        begin +
            "{nodes: 2, gpus_per_node: 8, gpu: {like: GPU, scale_up: nvswitch, scale_up_domain: 8, "
            "scale_up_gb_per_s: 429.4967296, scale_up_latency_us: 0.93625}, nic_gbps: 429.4967296, "
            "nic_latency_us: 1e-06}, topology: rail_only");
  CHECK(told(network_text("Ring", 8)).find("the network has no equal in a spec") == 0);
}

TEST_CASE("what is wrong in ASTRA-sim's files is said with the key and what would be right") {
  const auto system = [](const std::string& text) { return error_of([&] { parse_system_file(text, "s.json"); }); };
  CHECK(system("# of ASTRA-sim\ntopology: [Ring]\n") ==
        "s.json: must be ASTRA-sim's system file, an object of JSON; its network file is for --astra-network");
  CHECK(system("{\"L\": ").find("s.json:1:7: bad JSON: ") == 0);
  CHECK(system("[]") == "s.json: must be an object of keys and values");
  CHECK(system(with(R"("endpoint-dely": 1)")) ==
        "s.json: endpoint-dely: is no key of ASTRA-sim's system file; did you mean 'endpoint-delay'?");
  CHECK(system(with(R"("intra-dimension-scheduling": "FIFO")"))
            .find("s.json: intra-dimension-scheduling: is no key of ASTRA-sim's system file") == 0);
  CHECK(system(with(R"("endpoint-delay": 1.5)")) ==
        "s.json: endpoint-delay: must be an integer from 0 to 1000000000, not 1.5");
  CHECK(system(with(R"("preferred-dataset-splits": 0)")) ==
        "s.json: preferred-dataset-splits: must be an integer from 1 to 1048576, not 0");
  CHECK(system(with(R"("all-reduce-implementation": "ring")")) ==
        "s.json: all-reduce-implementation: must be a list of names, one per dimension of the network, not \"ring\"");
  CHECK(system(with(R"("all-reduce-implementation": ["rings"])"))
            .find("s.json: all-reduce-implementation: must be a list of ring, direct, ") == 0);
  CHECK(system(with(R"("collective-optimization": "fast")")) ==
        "s.json: collective-optimization: must be baseline or localBWAware, not \"fast\"");
  CHECK(system(with(R"("scheduling-policy": "RR")")) ==
        "s.json: scheduling-policy: must be LIFO, FIFO or EXPLICIT, not \"RR\"");
  CHECK(system(R"({"roofline-enabled": 1, "local-mem-bw": 5})") ==
        "s.json: peak-perf: must be TFLOP/s, as roofline-enabled is 1, not nothing");
  CHECK(system(with(R"("roofline-enabled": true)")) ==
        "s.json: roofline-enabled: must be 0 or 1, as ASTRA-sim takes both true and false for 1, not true");
  CHECK(system(with(R"("replay-only": false)")) ==
        "s.json: replay-only: must be 0 or 1, as ASTRA-sim takes both true and false for 1, not false");
  CHECK_NOTHROW(parse_system_file(with(R"("trace-enabled": false, "track-local-mem": true)"), "s.json"));

  const auto network = [](const std::string& text) { return error_of([&] { parse_network_file(text, "n.yml"); }); };
  CHECK(network("topology: [Ring]\n") == "n.yml:1: npus_count: must be there: a list with a value per dimension");
  CHECK(network("topology: [Torus2D]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n") ==
        "n.yml:1: topology: must be Ring, FullyConnected or Switch, not 'Torus2D'");
  CHECK(network("topology: [Ring]\nnpus_count: [4, 2]\nbandwidth: [1]\nlatency: [1]\n") ==
        "n.yml:2: npus_count: must have 1 values, as topology has, not 2");
  CHECK(network("topology: [Ring]\nnpus_count: [1]\nbandwidth: [1]\nlatency: [1]\n") ==
        "n.yml:2: npus_count: must be an integer from 2 on, not '1'");
  CHECK(network("topology: [Ring]\nnpus_count: [4]\nbandwidth: [tbd]\nlatency: [1]\n") ==
        "n.yml:3: bandwidth: must be GB/s of a link, from 1e-6 to 1e9, not 'tbd'");
  CHECK(network("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [-1]\n") ==
        "n.yml:4: latency: must be nanoseconds of a link, from 0 to 1e12, not '-1'");
  CHECK(network("topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\nlatencies: [1]\n") ==
        "n.yml:5: latencies: is no key of the analytical backend; did you mean 'latency'?");

  const auto memory = [](const std::string& text) { return error_of([&] { parse_memory_file(text, "m.json", 4); }); };
  CHECK(memory("{}").find("m.json: memory-type: must be NO_MEMORY_EXPANSION, ") == 0);
  CHECK(memory(R"({"memory-type": "MEMORY_POOL"})") ==
        "m.json: remote-mem-bw: must be GB/s as an integer above 0, not nothing");
  CHECK(memory(R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "remote-mem-bw": 1, "num-nodes": 1,
                   "num-npus-per-node": 3})") ==
        "m.json: num-nodes: must be such that nodes times ranks per node are the ranks of the network, not 1");
}

TEST_CASE("what ASTRA-sim would do and is not modelled is refused by name, and what waits for ever") {
  const std::vector<TraceNode> rank{mebibyte(1)};
  const auto refused = [&](const std::string& members, const std::string& network = kConnected2,
                           Communication how = Congestion::unaware) {
    const Configuration configuration = files(with(members), network);
    return error(Ranks(configuration.network.ranks(), rank), configuration, how);
  };
  CHECK(error({rank, rank, rank}, files(kSystem, kConnected2)) ==
        "network.yml: npus_count: must be 3 ranks in all, as the workload has, not 2");
  CHECK(error({rank, rank, rank}, files(kSystem, kConnected2), std::nullopt) ==
        "network.yml: npus_count: must be 3 ranks in all, as the workload has, not 2");
  CHECK(refused(R"("model-shared-bus": 1)") == "system.json: model-shared-bus: the bus is not modelled");
  CHECK(refused(R"("replay-only": 1)").find("system.json: replay-only: ") == 0);
  CHECK(
      refused(R"("all-reduce-implementation": ["doubleBinaryTree"])", network_text("Switch", 6)) ==
      "system.json: all-reduce-implementation: doubleBinaryTree is of powers of two, not of 6 ranks: ASTRA-sim itself "
      "stops");
  CHECK(refused(R"("all-reduce-implementation": ["doubleBinaryTree"])", kConnected2, Congestion::aware) ==
        "system.json: doubleBinaryTree is not modelled with congestion (--collectives as-astra)");
  const std::string square = "topology: [Switch, Switch]\nnpus_count: [2, 2]\nbandwidth: [1, 1]\nlatency: [1, 1]\n";
  CHECK(refused(R"("all-reduce-implementation": ["doubleBinaryTree", "direct"])", square)
            .find("system.json: a direct all-reduce in one dimension and doubleBinaryTree in another are not") == 0);
  CHECK(refused(R"("all-reduce-implementation": ["direct2"])", network_text("Switch", 4)) ==
        "system.json: all-reduce-implementation: direct2 with a window below the 3 messages of a rank is not modelled");
  CHECK(refused(R"("all-reduce-implementation": ["halvingDoubling"])", network_text("Switch", 6)) ==
        "system.json: all-reduce-implementation: halvingDoubling is modelled for powers of two, not for 6 ranks");
  CHECK(refused(R"("all-reduce-implementation": ["ring", "ring"])") ==
        "system.json: all-reduce-implementation: must have 1 names, one per dimension of network.yml, not 2");
  CHECK(refused(R"("all-reduce-implementation": ["direct"])", network_text("Ring", 4))
            .find("network.yml: topology: must be FullyConnected or Switch") == 0);
  CHECK(refused(R"("all-reduce-implementation": ["halvingDoubling"])", network_text("Ring", 4), Congestion::aware)
            .find("network.yml: topology: must not be a Ring") == 0);
  CHECK(refused(R"("all-reduce-implementation": ["ring", "ring"])",
                "topology: [Ring, Ring]\nnpus_count: [2, 2]\nbandwidth: [1, 1]\nlatency: [1, 1]\n", Congestion::aware)
            .find("network.yml: topology: must have one dimension, as the congestion-aware backend") == 0);
  const std::string without = R"({"preferred-dataset-splits": 1, "all-gather-implementation": ["ring"]})";
  CHECK(error({rank, rank}, files(without, kConnected2)) ==
        "system.json: all-reduce-implementation: must be there, as the workload has such a collective");
  CHECK(error({rank, rank}, files(R"({"all-reduce-implementation": ["ring"]})", kConnected2))
            .find("system.json: preferred-dataset-splits: must be there") == 0);
  CHECK(error({rank, rank},
              files(R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]})", kConnected2))
            .find("system.json: local-mem-bw: must be there") == 0);
  CHECK(error({{collective_node(1, CommType::reduce, 64)}}, files(kSystem, kConnected2)) ==
        "t.0.et: node 1 ('node') is a reduce, which ASTRA-sim does not have");

  const Configuration configuration = files(kSystem, kConnected2);
  CHECK(error({rank, {node(1, NodeType::comp, 1)}}, configuration) ==
        "t.0.et: node 1 ('node') waits for ever for ranks 1");
  CHECK(error({{transfer(1, true, 1, 64)}, {node(1, NodeType::comp, 1)}}, configuration) ==
        "t.0.et: node 1 ('node') waits for ever: rank 1 sends it no 64 bytes with tag 0");
  CHECK(error({rank, {collective_node(1, CommType::all_reduce, 64)}}, configuration) ==
        "t.1.et: node 1 ('node') is collective 0 of its group, and not the same as that of its other ranks");
  CHECK(error({{node(1, NodeType::comp, 1, {2}), node(2, NodeType::comp, 1, {1})}}, configuration)
            .find("t.0.et: has a circle of 2 dependencies") == 0);
}
