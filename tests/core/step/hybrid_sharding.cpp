// ZeRO within groups of replicas (HSDP): who is in which group, what travels within and across, and what it saves.
#include <catch2/catch.hpp>
#include <set>

#include "core/memory/footprint.hpp"
#include "core/step/estimate/closed_form.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "tests/core/step/step_configurations.hpp"
#include "tests/core/workload/program_sums.hpp"
#include "tests/core/workload/workload_grid.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::core::workload;

namespace {

using Bytes = std::map<std::pair<Role, collective::Kind>, std::int64_t>;

Bytes replica_bytes(const Program& program) {
  Bytes bytes;
  for (const Role role : {Role::data, Role::expert_data, Role::data_inter_group, Role::expert_data_inter_group})
    for (const auto& [kind, sum] : bytes_by_kind(program, role)) bytes[{role, kind}] = sum;
  return bytes;
}

/// 12 replicas: 3 groups of 4.
Strategy grouped(std::int64_t zero, std::int64_t micro_batches = 3) {
  Strategy strategy = layout(1, 1, 1, 12 * micro_batches);
  strategy.dp = 12;
  strategy.zero = zero;
  strategy.zero_group = 4;
  strategy.bucket_parameters = 1'000'000;
  return strategy;
}

/// The same with one group's replicas alone.
Strategy one_group(Strategy strategy) {
  strategy.global_batch = strategy.global_batch / strategy.dp * strategy.zero_group;
  strategy.dp = strategy.zero_group;
  strategy.zero_group = 0;
  return strategy;
}

/// ZeRO in groups where there are replicas enough; false where there are not.
bool shares_in_groups(step::Configuration& configuration, std::uint64_t seed) {
  Strategy& s = configuration.strategy;
  if (s.replicas() < 4) return false;
  s.zero = 1 + static_cast<std::int64_t>(seed % 3);
  s.zero_group = seed % 2 == 0 ? 2 : s.replicas() / 2;
  s.stack.overlap_parameters = s.zero < 3 && seed % 4 < 2;
  s.stack.reduce_in_16bit = seed % 5 == 0;
  return !configuration.model.has_experts() || s.expert_replicas() % s.zero_groups() == 0;
}

}  // namespace

TEST_CASE("a group of replicas sends what it would send alone, and adds up its shares with the others once a step") {
  for (const bool llama_style : {false, true})
    for (const std::int64_t zero : {1, 2, 3})
      for (const bool overlap : {false, true}) {
        const Model model = small(llama_style, 6);
        Strategy strategy = grouped(zero);
        strategy.overlap_grad_reduce = overlap;
        Bytes bytes = replica_bytes(build_program(model, strategy, round_gpu(), 0));
        const std::int64_t across = bytes[{Role::data_inter_group, collective::Kind::all_reduce}];
        bytes.erase({Role::data_inter_group, collective::Kind::all_reduce});
        CAPTURE(llama_style, zero, overlap);
        CHECK(bytes == replica_bytes(build_program(model, one_group(strategy), round_gpu(), 0)));
        // A quarter of the gradients that are scattered: once in a step under ZeRO 1, else by every micro-batch.
        const std::int64_t scattered = bytes[{Role::data, collective::Kind::reduce_scatter}] / (zero == 1 ? 1 : 3);
        CHECK(4 * across == scattered);
      }
}

TEST_CASE("the replicas of experts are cut into as many groups as those of the dense parameters") {
  Model model = small(true, 4);
  model.experts = 8, model.experts_per_token = 2;
  for (const std::int64_t zero : {1, 2, 3})
    for (const std::int64_t ep : {2, 4}) {  // two expert ranks of a group share out, or one has all
      Strategy strategy = grouped(zero, 1);
      strategy.ep = ep;
      strategy.bucket_parameters = 1'000'000'000;  // one bucket, whose shares need no padding
      REQUIRE(strategy.expert_shards() == 4 / ep);
      Bytes bytes = replica_bytes(build_program(model, strategy, round_gpu(), 0));
      const std::int64_t held = stage_parameters(model, strategy, 0).experts;
      CAPTURE(zero, ep);
      CHECK(bytes[{Role::expert_data, collective::Kind::reduce_scatter}] == (ep == 4 ? 0 : 4 * held));
      CHECK((bytes[{Role::expert_data, collective::Kind::all_gather}] > 0) == (ep != 4));
      CHECK(bytes[{Role::expert_data_inter_group, collective::Kind::all_reduce}] ==
            4 * held / strategy.expert_shards());
    }
}

TEST_CASE("a rank in a group needs the memory of a rank of one group alone, and one communicator more") {
  const Model model = small(true, 6);
  compute::Gpu gpu = round_gpu();
  gpu.communicator_mib = 100;
  for (const std::int64_t zero : {1, 2, 3}) {
    const Strategy strategy = grouped(zero);
    memory::Footprint in_group = memory::footprint(model, strategy, gpu, 0);
    memory::Footprint alone = memory::footprint(model, one_group(strategy), gpu, 0);
    CHECK(in_group.communicators - alone.communicators == 100 << 20);
    for (const memory::FootprintPart& part : memory::footprint_parts())
      if (std::string(part.name) != "communicators") CHECK(in_group.*part.member == alone.*part.member);
    Strategy all = strategy;
    all.zero_group = 0;
    const memory::Footprint everywhere = memory::footprint(model, all, gpu, 0);
    const std::int64_t parameters = stage_parameters(model, strategy, 0).total();
    CHECK(in_group.optimizer - everywhere.optimizer ==
          12 * ((parameters + 3) / 4 - (parameters + 11) / 12));  // a quarter instead of a twelfth
  }
}

TEST_CASE("groups are neighbours, and across them stand the replicas with the same share") {
  Cluster cluster;
  cluster.nodes = 4;
  step::Configuration configuration = config_of(cluster, 1, 2, 2);  // 2 stages of 8 replicas
  configuration.strategy.zero = 1, configuration.strategy.zero_group = 4;
  const step::RankLayout layout(
      step::parallel_config_of(configuration),
      std::make_shared<network::Router>(configuration.graph, configuration.transport.routing, 0));
  const auto group = [&](std::uint32_t rank, Role role) -> const step::Group& {
    return layout.groups()[layout.group_of(step::RankId(rank), role)];
  };
  const auto members = [&](std::uint32_t rank, Role role) {
    std::vector<std::uint32_t> ranks;
    for (const step::RankId member : group(rank, role).ranks) ranks.push_back(member.value());
    return ranks;
  };
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    const std::uint32_t first = rank / 4 * 4, stage = rank / 8 * 8;
    CHECK(members(rank, Role::data) == std::vector{first, first + 1, first + 2, first + 3});
    CHECK(members(rank, Role::data_inter_group) == std::vector{stage + rank % 4, stage + 4 + rank % 4});
    CHECK(group(rank, Role::data).per_node == 4);              // inside a node
    CHECK(group(rank, Role::data_inter_group).per_node == 1);  // from node to node
  }
}

TEST_CASE("composed and coupled agree to the picosecond where ZeRO shares out within groups") {
  std::size_t configurations = 0, experts = 0, mirrored = 0;
  const auto check = [&](const step::Configuration& configuration) {
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    REQUIRE(composed.step_ps == coupled.step_ps);
    REQUIRE(composed.breakdown[StepPart::exposed_dp] == coupled.breakdown[StepPart::exposed_dp]);
    REQUIRE(composed.link_hops == coupled.link_hops);
    ++configurations;
    experts += configuration.model.has_experts();
    mirrored += configuration.strategy.stage_copies() > 1;
  };
  for (std::uint64_t seed = 1; seed <= 160; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
    if (seed % 10 == 7) configuration = with_schedule(configuration, schedule_type(schedule_by_name("dualpipe")));
    if (!shares_in_groups(configuration, seed)) continue;
    if (configuration.strategy.stage_copies() > 1 && configuration.strategy.zero == 3)
      configuration.model.tied_embeddings = false;
    check(configuration);
  }
  CHECK(configurations > 30);
  CHECK(experts > 3);
  CHECK(mirrored > 2);
}

TEST_CASE("groups in nodes spare the network between nodes, by the closed form as by the simulation") {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.nic = cluster.uplink = 50'000'000'000;
  for (const std::int64_t zero : {1, 3}) {
    step::Configuration configuration = config_of(cluster, 1, 1, 1);
    configuration.model.layers = 8;
    configuration.model.tied_embeddings = false;
    configuration.strategy.zero = zero;
    configuration.strategy.overlap_grad_reduce = zero == 3;
    double simulated[2], formed[2];
    for (const bool in_groups : {false, true}) {
      configuration.strategy.zero_group = in_groups ? 4 : 0;
      simulated[in_groups] = seconds(run_configuration(configuration, step::Composition::composed).step_ps);
      formed[in_groups] =
          step::closed_form(configuration, {{cluster.scale_up, 600'000}, {cluster.nic, 3'200'000}}).step_s;
      CAPTURE(zero, in_groups);
      CHECK(formed[in_groups] == Approx(simulated[in_groups]).epsilon(0.2));
    }
    CAPTURE(simulated[0], simulated[1], formed[0], formed[1]);
    CHECK(simulated[1] < 0.8 * simulated[0]);
    CHECK(formed[1] < 0.8 * formed[0]);
  }
}
