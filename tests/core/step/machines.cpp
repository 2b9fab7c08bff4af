// Machines of several kinds in one configuration: kernels take what they take on the GPU of their rank, and everybody
// else waits.
#include <catch2/catch.hpp>
#include <numeric>

#include "core/step/estimate/closed_form.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using workload::RankClass;

namespace {

compute::Gpu other_gpu(double speed_factor = 1) {
  compute::Gpu result = gpu();
  result.matrix_tflops = 150, result.memory_gb_per_s = 1500, result.memory_gib = 40;
  result.communication_slowdown = 0.2;
  result.speed_factor = speed_factor;
  return result;
}

/// The later half of the machines is of another kind.
step::Configuration half(step::Configuration configuration, const compute::Gpu& other) {
  const std::uint32_t gpus = configuration.graph->gpus;
  configuration.other_gpus = {other};
  configuration.kind_of_gpu.assign(gpus, 0);
  std::fill(configuration.kind_of_gpu.begin() + gpus / 2, configuration.kind_of_gpu.end(), 1);
  return configuration;
}

step::Configuration all(step::Configuration configuration, const compute::Gpu& gpu) {
  configuration.gpu = gpu;
  return configuration;
}

/// Two GPUs in two nodes.
Cluster pair() {
  Cluster cluster;
  cluster.nodes = 2, cluster.gpus_per_node = 1;
  return cluster;
}

Time step_of(const step::Configuration& configuration) {
  return run_configuration(configuration, step::Composition::composed).step_ps;
}

/// Kernels of a class until its optimizer and of that.
std::pair<Time, Time> kernels_of(const step::Configuration& configuration, std::int64_t stage, const compute::Gpu& on) {
  std::pair<Time, Time> sum{0, 0};
  for (const workload::Op& op : workload::build_program(configuration.model, configuration.strategy, on, stage).ops)
    if (const workload::KernelOp* kernel = op.kernel())
      (kernel->category == workload::StepPart::optimizer ? sum.second : sum.first) += kernel->duration_ps;
  return sum;
}

}  // namespace

TEST_CASE("a pipeline over two kinds takes the sum of what its stages take on theirs") {
  step::Configuration configuration = config_of(pair(), 1, 2, 1);  // one micro-batch: nothing runs beside anything
  configuration.model.tied_embeddings = false;
  configuration.strategy.stack.host_kernel_us = 0;
  for (const double speed_factor : {1.0, 0.5}) {
    compute::Gpu slow = other_gpu(speed_factor);
    slow.memory_gb_per_s = 10'000;  // its optimizer ends while the first stage runs its backward pass
    const auto [first, first_optimizer] = kernels_of(configuration, 0, configuration.gpu);
    const auto [last, last_optimizer] = kernels_of(configuration, 1, configuration.gpu);
    const Time transfers = step_of(configuration) - first - last - first_optimizer;  // of activations, and of gradients
    REQUIRE(transfers > 0);
    const auto [slow_last, slow_optimizer] = kernels_of(configuration, 1, slow);
    REQUIRE(slow_last > last);
    REQUIRE(slow_optimizer < first + first_optimizer);
    CHECK(step_of(half(configuration, slow)) == first + slow_last + first_optimizer + transfers);
  }
}

TEST_CASE("replicas on two kinds take what the slower ones take by themselves") {
  for (const bool overlap : {false, true})
    for (const std::int64_t zero : {0, 1}) {
      step::Configuration configuration = config_of(pair(), 1, 1, 2);
      configuration.strategy.overlap_grad_reduce = overlap;
      configuration.strategy.zero = zero;
      const Time fast = step_of(configuration), slow = step_of(all(configuration, other_gpu(0.5)));
      CAPTURE(overlap, zero);
      CHECK(step_of(half(configuration, other_gpu(0.5))) == slow);
      CHECK(slow > fast);
    }
}

TEST_CASE("a slow GPU's kernels take the inverse of its pace as long") {
  const step::Configuration configuration = config_of(pair(), 1, 1, 1);
  compute::Gpu slow = configuration.gpu;
  slow.speed_factor = 0.8;
  for (const workload::KernelUse& use :
       workload::kernels_used(configuration.model, configuration.strategy, configuration.gpu, 0))
    CHECK(compute::modelled_time(use.kernel, slow) == round_half_up(static_cast<double>(use.cost_ps) / 0.8));
}

TEST_CASE("composed and coupled agree to the picosecond on machines of several kinds") {
  std::size_t configurations = 0, experts = 0, stalled = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
    configuration = half(configuration, other_gpu(seed % 4 == 0 ? 0.8 : 1));
    if (seed % 5 == 0) {  // every GPU its own draw of three kinds
      configuration.other_gpus.push_back(configuration.gpu);
      configuration.other_gpus.back().speed_factor = 0.7;
      for (std::uint32_t gpu = 0; gpu < configuration.kind_of_gpu.size(); ++gpu)
        configuration.kind_of_gpu[gpu] = static_cast<std::uint32_t>((seed * 7 + gpu * gpu * 5) % 11 % 3);
    }
    const auto composed = run_configuration(configuration, step::Composition::composed);
    const auto coupled = run_configuration(configuration, step::Composition::coupled);
    REQUIRE(composed.step_ps == coupled.step_ps);
    REQUIRE(composed.breakdown[workload::StepPart::exposed_dp] == coupled.breakdown[workload::StepPart::exposed_dp]);
    REQUIRE(composed.breakdown[workload::StepPart::stall] == coupled.breakdown[workload::StepPart::stall]);
    REQUIRE(composed.link_hops == coupled.link_hops);
    ++configurations;
    experts += configuration.model.has_experts();
    stalled += composed.breakdown[workload::StepPart::stall] > 0;
  }
  CHECK(configurations == 80);
  CHECK(experts > 5);
  CHECK(stalled > 30);
}

TEST_CASE("a kind of machine that is like the others changes nothing but names") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    const auto one = run_configuration(configuration, step::Composition::composed);
    const auto two = run_configuration(half(configuration, configuration.gpu), step::Composition::composed);
    REQUIRE(one.step_ps == two.step_ps);
    REQUIRE(one.breakdown[workload::StepPart::stall] == two.breakdown[workload::StepPart::stall]);
    REQUIRE(one.breakdown[workload::StepPart::forward] == two.breakdown[workload::StepPart::forward]);
    REQUIRE(one.collectives.size() == two.collectives.size());
    REQUIRE(one.kernels.size() == two.kernels.size());
    for (std::size_t i = 0; i < one.kernels.size(); ++i) {
      REQUIRE(one.kernels[i].key == two.kernels[i].key);
      REQUIRE(one.kernels[i].times == two.kernels[i].times);
    }
  }
}

TEST_CASE("ranks are told apart by machine where they sit on several kinds, whatever the order of ranks") {
  Cluster cluster;  // 2 nodes of 4
  step::Configuration configuration = half(config_of(cluster, 2, 2, 2), other_gpu());
  using Classes = std::map<RankClass, std::uint32_t>;
  CHECK(step::classes_of(step::parallel_config_of(configuration)) == Classes{{{0, 0, 0}, 4}, {{1, 0, 1}, 4}});
  configuration.placement = step::Placement::tp_pp_dp;  // a replica to a node
  CHECK(step::classes_of(step::parallel_config_of(configuration)) ==
        Classes{{{0, 0, 0}, 2}, {{0, 0, 1}, 2}, {{1, 0, 0}, 2}, {{1, 0, 1}, 2}});
}

TEST_CASE("times by kind of machine add up to those of all, and survive the journal") {
  Cluster cluster;
  const step::Configuration configuration = half(config_of(cluster, 2, 2, 2), other_gpu());
  const auto result = step::decode_step(step::encode(run_configuration(configuration, step::Composition::composed)));
  REQUIRE(result.by_kind.size() == 2);
  CHECK(result.by_kind[0][workload::StepPart::backward] + result.by_kind[1][workload::StepPart::backward] ==
        Approx(2 * result.breakdown[workload::StepPart::backward]).epsilon(1e-12));
  CHECK(result.by_kind[0][workload::StepPart::bubble] >
        result.by_kind[1][workload::StepPart::bubble]);  // the fast stage waits
}

TEST_CASE("what counts is the memory of the rank that has least left") {
  Cluster cluster;
  step::Configuration configuration = half(config_of(cluster, 2, 2, 2), other_gpu());
  const auto demand = step::memory_requirement_of(configuration);
  CHECK(demand.memory_gib == 40);
  CHECK(demand.required.total() ==
        memory::footprint(configuration.model, configuration.strategy, other_gpu(), {1, 0, 1}).total());
  configuration.other_gpus[0].memory_gib = 1'000;
  CHECK(step::memory_requirement_of(configuration).memory_gib == 80);
  CHECK(step::mean_peak_tflops(configuration) == (300.0 + 150) / 2);
}

TEST_CASE("configurations whose ranks sit on other kinds have other keys, and those alike have one") {
  Cluster cluster;
  const step::Configuration base = config_of(cluster, 2, 1, 2);
  step::SimulationContext context;
  const auto key = [&](const step::Configuration& configuration) { return context.summary(configuration).step; };
  step::Configuration swapped = half(base, other_gpu());
  std::reverse(swapped.kind_of_gpu.begin(), swapped.kind_of_gpu.end());
  const std::vector<sharing::Key> keys{key(base), key(half(base, other_gpu())), key(half(base, other_gpu(0.8))),
                                       key(swapped)};
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(keys[i] == keys[j]);
  CHECK(key(half(base, other_gpu())) == keys[1]);
}

TEST_CASE("the closed form of a pipeline over two kinds waits for the slower one, as the simulation does") {
  Cluster cluster;
  cluster.nodes = 1, cluster.gpus_per_node = 2;
  step::Configuration configuration = config_of(cluster, 1, 2, 8);
  configuration.model.layers = 8;
  configuration.model.sequence = 1'024;
  configuration.model.tied_embeddings = false;
  const step::Links links{{cluster.scale_up, 600'000}, {cluster.nic, 3'200'000}};
  const double fast = step::closed_form(configuration, links).step_s;
  configuration = half(configuration, other_gpu());
  const double mixed = step::closed_form(configuration, links).step_s;
  CHECK(mixed == Approx(seconds(step_of(configuration))).epsilon(0.05));
  CHECK(mixed > 1.3 * fast);
}
