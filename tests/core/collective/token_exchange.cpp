// Exchanges of experts' tokens by measured kernels: their equation, and that the packets of an exchange alone meet it.
#include "core/collective/library/token_exchange.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/collective/transfers/token_chunks.hpp"
#include "core/workload/parts/routed_experts.hpp"
#include "tests/core/collective/simulated_collective.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::collective;

namespace {

TokenKernelFigures& of_set(Calibration& calibration, TokenSet set) {
  return calibration.tokens.at(static_cast<std::size_t>(set));
}

/// Round figures: dispatch launches for 30 us and combine for 50, 20 more for each doubling of the nodes.
Library library() {
  Library result;
  result.protocol = Protocol::calibrated;
  result.calibration.copy_gb_per_s = result.calibration.ll_copy_gb_per_s = 100;
  TokenKernelFigures& inside = of_set(result.calibration, TokenSet::deepep);
  inside.dispatch = {30, 0, 1, 100, 50, 25, 80};
  inside.combine = {50, 0, 0.5, 0, 50, 10, 80};
  TokenKernelFigures& between = of_set(result.calibration, TokenSet::deepep_between);
  between.dispatch = between.combine = {60, 20, 0, 0, 20, 10, 0};
  return result;
}

/// 100 GB/s inside a node, 10 GB/s between nodes; 1 and 2 us.
Communicator communicator(std::uint32_t members, std::uint32_t per_node) {
  return {members, per_node, {800'000'000'000, kMicrosecond}, {80'000'000'000, 2 * kMicrosecond}, true};
}

/// `tokens` rows of 10 kB, each of which goes to two ranks of a node.
TokenExchange exchange(std::int64_t tokens, double units, bool combine = false) {
  TokenExchange result;
  result.kernels = TokenKernels::deepep;
  result.combine = combine;
  result.row_bytes = 10'000;
  result.ranks_reached = 2;
  result.bytes = tokens * 20'000;
  result.units = units;
  return result;
}

double launch_us(const Shape& shape) {
  return static_cast<double>(shape.calibrated.launch_ps) / 1e6;
}

/// The sum of two times of which the longer one hides the shorter.
double longer_of(double a, double b) {
  return std::pow(std::pow(a, 6) + std::pow(b, 6), 1.0 / 6);
}

}  // namespace

TEST_CASE("in a node an exchange launches, passes its first row, and takes the longer of its work and its wire") {
  // A token's work on a unit: 2 x (100 ns + 10 kB at 50 GB/s) + 10 kB at 25 GB/s, which is 1 us.
  const auto shape_of = [](double units, bool combine) {
    return token_exchange_shape(library(), communicator(4, 4), exchange(1'000, units, combine));
  };
  const double wire_us = 3.0 / 4 * 20e6 / 80e3;  // three quarters of 20 MB at the 80 GB/s that the kernels reach
  CHECK(launch_us(shape_of(10, false)) == Approx(30 + 10 + longer_of(100, wire_us) - wire_us - 3));
  CHECK(launch_us(shape_of(2, false)) == Approx(30 + 10 + longer_of(500, wire_us) - wire_us - 3));
  CHECK(shape_of(10, false).calibrated.intra_node_rate_ppm == 800'000);
  CHECK(shape_of(10, false).bytes == 20'000'000);
  // A combine: 2 x 10 kB at 50 GB/s + 10 kB at 10 GB/s are 1.4 us.
  CHECK(launch_us(shape_of(10, true)) == Approx(50 + 20 + longer_of(140, wire_us) - wire_us - 3));
}

TEST_CASE("between nodes the work is for nodes, doublings are of nodes, and what is forwarded last is not paid twice") {
  TokenExchange tokens = exchange(1'000, 10);
  tokens.ranks_reached = 4, tokens.nodes_reached = 2, tokens.bytes = 40'000'000;
  const Shape shape = token_exchange_shape(library(), communicator(16, 4), tokens);
  // Half of its tokens go to each node, and a quarter to each rank of a node.
  CHECK(shape.node_bytes == 5'000'000);
  const double nic_us = 3 * 5e6 / 10e3, link_us = 4 * 3 * 2.5e6 / 80e3;  // per GPU
  const double work_us = 1'000 / 10.0 * (2 * 10e3 / 20e3 + 10e3 / 10e3);
  const double chunks = token_chunks(4);
  CHECK(chunks == 3);
  const double transfers_us = std::max(nic_us + chunks * 3 * 2 + 3 + 3 * 2.5e6 / chunks / 80e3, link_us + 10 * 3);
  CHECK(launch_us(shape) == Approx(60 + 2 * 20 + longer_of(work_us, std::max(nic_us, link_us)) - transfers_us));
  tokens.kernels = TokenKernels::hybrid_ep;
  CHECK(token_exchange_shape(library(), communicator(16, 4), tokens).node_bytes == shape.node_bytes);
}

TEST_CASE("packet by packet an exchange that is alone lasts as its equation says, in a node and over two") {
  Library used = library();
  for (const bool over_nodes : {false, true})
    for (const std::int64_t tokens : {100, 2'000, 40'000})
      for (const double units : {2.0, 20.0}) {
        Cluster cluster;
        cluster.nodes = over_nodes ? 2 : 1;
        const auto graph = graph_of(cluster);
        const std::uint32_t members = cluster.nodes * cluster.gpus_per_node;
        network::Router router(graph, network::Routing::destination_mod_k, 1);
        std::vector<std::uint32_t> all(members);
        for (std::uint32_t i = 0; i < members; ++i) all[i] = i;
        const Communicator who = step::communicator_of(router, all, cluster.gpus_per_node);
        TokenExchange one = exchange(tokens, units);
        one.nodes_reached = over_nodes ? 1.5 : 1;
        const double bytes = static_cast<double>(one.bytes), sent = static_cast<double>(tokens), n = members;
        // Links reach 80 GB/s, NICs 25.
        const double link_us = cluster.nodes * 3 * bytes / n / 80e3,
                     nic_us = over_nodes ? sent * 0.75 * 10e3 / 25e3 : 0;
        const double work_us = sent / units * (over_nodes ? 1.5 * 0.5 + 1 : 1);
        const double launched_us = over_nodes ? 60 + 20 : 30 + 10;
        const double expected_us = launched_us + longer_of(work_us, std::max(link_us, nic_us));
        const double us = static_cast<double>(simulated(token_exchange_shape(used, who, one), graph)) / 1e6;
        INFO(members << " " << tokens << " " << units << ": " << us << " " << expected_us);
        // Rounds wait for whole packets; over nodes an eighth of the rows is forwarded after the last arrival.
        CHECK(us >= 0.99 * expected_us);
        CHECK(us <= (over_nodes ? 1.1 : 1.02) * expected_us + 5);
      }
}

TEST_CASE("more tokens take longer, and more compute units never do") {
  double before_us = 0;
  for (const std::int64_t tokens : {1, 10, 100, 1'000, 10'000}) {
    double slower_us = 1e12;
    for (const double units : {4.0, 8.0, 20.0, 132.0}) {
      const Shape shape = token_exchange_shape(library(), communicator(8, 8), exchange(tokens, units));
      const double us = static_cast<double>(predicted_ps(shape, communicator(8, 8))) / 1e6;
      CHECK(us <= slower_us);
      if (units == 132) CHECK(us > before_us);
      slower_us = us;
    }
    before_us = slower_us;
  }
}

TEST_CASE("low-latency kernels send a row for each expert, also to other nodes") {
  Library used = library();
  of_set(used.calibration, TokenSet::low_latency).dispatch = {8, 2, 0, 0, 0, 0, 80};
  of_set(used.calibration, TokenSet::low_latency_between).dispatch = {16, 4, 0, 0, 0, 0, 0};
  TokenExchange tokens = exchange(1, 1);
  tokens.kernels = TokenKernels::low_latency;
  tokens.experts_of_rank = 32;
  const double wire_us = 3.0 / 4 * 20e3 / 80e3;
  CHECK(launch_us(token_exchange_shape(used, communicator(4, 4), tokens)) ==
        Approx(8 + 5 * 2 - 3).margin(wire_us * 1e-3));
  CHECK(token_exchange_shape(used, communicator(16, 4), tokens).node_bytes == 0);
}

TEST_CASE("kernels that were not measured on a GPU are refused, by the name of a figure") {
  Library used = library();
  TokenExchange tokens = exchange(10, 20);
  of_set(used.calibration, TokenSet::deepep_between).combine = {};
  CHECK_NOTHROW(token_exchange_shape(used, communicator(16, 8), tokens));
  tokens.combine = true;
  try {
    token_exchange_shape(used, communicator(16, 8), tokens);
    FAIL("it was taken");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("library_tokens_deepep_between_combine_launch_us") != std::string::npos);
  }
  tokens.kernels = TokenKernels::trtllm_one_sided;
  CHECK_THROWS_AS(token_exchange_shape(used, communicator(16, 8), tokens), InputError);
  used.protocol = Protocol::none;
  CHECK(token_exchange_shape(used, communicator(16, 8), tokens).calibrated == ProtocolCosts{});
}

TEST_CASE("a stack's dispatcher decides whose kernels send its tokens, and which of them return") {
  step::Configuration configuration;
  configuration.model.experts = 16, configuration.model.experts_per_token = 2, configuration.model.hidden = 5'000;
  configuration.collectives = library();
  const step::GroupKind group{0, workload::Role::expert, communicator(4, 4)};
  const auto shape_of = [&](bool back) {
    return step::shape_of(configuration, group, Kind::all_to_all, 18'000'000, {{}, back});
  };
  configuration.strategy.stack.dispatcher = workload::Dispatcher::hybrid_ep;
  CHECK(shape_of(false) == shape_of(true));
  configuration.strategy.stack.dispatcher = workload::Dispatcher::deepep;
  configuration.strategy.stack.dispatcher_sms = 10;
  // A token goes to 1.8 of four ranks: 18 MB are 1,000 tokens of 10 kB.
  const double wire_us = 3.0 / 4 * 18e6 / 80e3;
  CHECK(launch_us(shape_of(false)) ==
        Approx(40 + longer_of(100 * (1.8 * 0.3 + 0.4), wire_us) - wire_us - 3).epsilon(1e-6));
  CHECK(launch_us(shape_of(true)) ==
        Approx(70 + longer_of(100 * (1.8 * 0.2 + 1), wire_us) - wire_us - 3).epsilon(1e-6));
}
