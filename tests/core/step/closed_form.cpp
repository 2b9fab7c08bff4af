// Closed forms beside the simulated step: equal where nothing is communicated, near where little is.
#include "core/step/estimate/closed_form.hpp"

#include <catch2/catch.hpp>

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

step::Links links_of(const Cluster& cluster) {
  return {{cluster.scale_up, 600'000}, {cluster.nic, 3'200'000}};
}

double simulated_s(const step::Configuration& configuration) {
  return seconds(run_configuration(configuration, step::Composition::composed).step_ps);
}

}  // namespace

TEST_CASE("without communication a step is the sum of its kernels, and the closed form is the simulation's") {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 1;
  for (const auto attention : {workload::AttentionKernel::unfused, workload::AttentionKernel::cudnn})
    for (const auto recompute : {workload::Recompute::none, workload::Recompute::full}) {
      step::Configuration configuration = config_of(cluster, 1, 1, 4);
      configuration.strategy.stack.attention = attention;
      configuration.strategy.recompute = recompute;
      const auto form = step::closed_form(configuration, links_of(cluster));
      CHECK(form.step_s == Approx(simulated_s(configuration)).epsilon(1e-9));
      CHECK(form.bubble_s == 0);
      CHECK(form.gradients_s == 0);
    }
}

TEST_CASE("the closed form's pipeline is that of the schedule where transfers are small") {
  for (const std::int64_t pp : {2, 4}) {
    Cluster cluster;
    cluster.nodes = 1;
    cluster.gpus_per_node = static_cast<std::uint32_t>(pp);
    cluster.scale_up = 1'600'000'000'000;
    step::Configuration configuration = config_of(cluster, 1, pp, 4 * pp);
    configuration.model.layers = 8;
    configuration.model.tied_embeddings = false;
    const auto form = step::closed_form(configuration, links_of(cluster));
    CHECK(form.step_s == Approx(simulated_s(configuration)).epsilon(0.03));
    CHECK(form.bubble_s > 0);
  }
}

TEST_CASE("the closed form adds what tensor and data parallelism expose") {
  Cluster cluster;
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  const step::Configuration configuration = config_of(cluster, 4, 1, 2);
  step::Configuration slow = configuration;
  slow.strategy.overlap_grad_reduce = false;
  const auto form = step::closed_form(configuration, links_of(cluster));
  CHECK(form.step_s == Approx(simulated_s(configuration)).epsilon(0.15));
  CHECK(form.gradients_s > 0);
  CHECK(step::closed_form(slow, links_of(cluster)).gradients_s >= form.gradients_s);
}

TEST_CASE("the closed form of ZeRO 3 gathers beside the units before, as the simulation does") {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 4;
  step::Configuration configuration = config_of(cluster, 1, 1, 2);
  configuration.model.layers = 8;
  configuration.strategy.zero = 3;
  for (const std::int64_t sequence : {64, 2'048}) {  // bound by the network, by kernels
    configuration.model.sequence = sequence;
    CHECK(step::closed_form(configuration, links_of(cluster)).step_s ==
          Approx(simulated_s(configuration)).epsilon(0.15));
  }
}

TEST_CASE("the closed form takes the slowest of the ranks that share experts") {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 4;
  step::Configuration configuration = config_of(cluster, 1, 1, 2);
  configuration.model.experts = 8, configuration.model.experts_per_token = 2;
  configuration.model.sequence = 4'096;
  configuration.strategy.ep = 4;
  const double balanced = step::closed_form(configuration, links_of(cluster)).step_s;
  CHECK(balanced == Approx(simulated_s(configuration)).epsilon(0.1));
  std::vector<std::vector<std::int64_t>> hot(4, std::vector<std::int64_t>(8, 1));
  for (auto& load : hot) load[3] = 100;  // in every layer the same rank is the busiest
  configuration.model.routing = workload::make_routing(hot);
  const double uneven = step::closed_form(configuration, links_of(cluster)).step_s;
  CHECK(uneven > 1.05 * balanced);
  CHECK(uneven == Approx(simulated_s(configuration)).epsilon(0.1));
}
