// Steps of models with layers for multi-token prediction.
#include "core/workload/model/multi_token_prediction.hpp"

#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

step::Configuration predicting(std::int64_t pp, std::int64_t mtp_layers, bool tied) {
  Cluster cluster;
  step::Configuration configuration = config_of(cluster, pp == 4 ? 1 : 2, pp, 2 * pp);
  configuration.model.position = workload::Position::rotary;
  configuration.model.tied_embeddings = tied;
  configuration.model.mtp_layers = mtp_layers;
  return configuration;
}

}  // namespace

TEST_CASE("composed and coupled agree to the picosecond with multi-token prediction") {
  for (const std::int64_t pp : {1, 2, 4})
    for (const std::int64_t mtp_layers : {1, 2})
      for (const bool tied : {false, true})
        for (const std::int64_t zero : {0, 1, 2}) {
          step::Configuration configuration = predicting(pp, mtp_layers, tied);
          configuration.strategy.zero = zero;
          configuration.strategy.sequence_parallel = configuration.strategy.tp > 1;
          CAPTURE(pp, mtp_layers, tied, zero);
          const auto composed = run_configuration(configuration, step::Composition::composed);
          const auto coupled = run_configuration(configuration, step::Composition::coupled);
          CHECK(composed.step_ps == coupled.step_ps);
          CHECK(composed.link_hops == coupled.link_hops);
        }
}

TEST_CASE("a step takes longer the more tokens are predicted") {
  for (const std::int64_t pp : {1, 4}) {
    const auto time = [&](std::int64_t layers) {
      return run_configuration(predicting(pp, layers, false), step::Composition::composed).step_ps;
    };
    CHECK(time(0) < time(1));
    CHECK(time(1) < time(2));
  }
}

TEST_CASE("ranks of the first and the last stage form groups where they share the table") {
  for (const auto& [pp, mtp_layers, tied, groups] :
       {std::tuple{4, 1, false, 2}, {4, 0, false, 0}, {4, 0, true, 2}, {4, 2, true, 2}, {1, 1, false, 0}}) {
    const step::Configuration configuration = predicting(pp, mtp_layers, tied);
    const step::RankLayout layout(
        step::parallel_config_of(configuration),
        std::make_shared<network::Router>(configuration.graph, configuration.transport.routing, 0));
    int found = 0;
    for (const step::Group& group : layout.groups()) found += group.role == workload::Role::embedding;
    CAPTURE(pp, mtp_layers, tied);
    CHECK(found == groups);
  }
}
