// Steps whose replicas draw documents of their own.
#include "core/step/layout/drawn_documents.hpp"

#include <catch2/catch.hpp>

#include "core/base/hash.hpp"
#include "core/step/layout/as_given.hpp"
#include "core/workload/distributions/documents.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

step::Configuration documented(std::uint32_t nodes, std::uint32_t gpus, std::int64_t tp, std::int64_t pp,
                               std::int64_t micro_batches) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  step::Configuration configuration = config_of(cluster, tp, pp, micro_batches);
  configuration.model.sequence = 8'192;
  configuration.strategy.stack.attention = workload::AttentionKernel::flash;
  configuration.model.documents =
      workload::pack_documents(workload::lognormal_lengths(1'500, 1.3, 7, 400), 8'192, workload::Packing::cut);
  return configuration;
}

manyworlds::core::Time step_of(const step::Configuration& configuration, const workload::GivenPrograms& programs,
                               network::Fidelity fidelity = network::Fidelity::packet) {
  step::Configuration given = configuration;
  given.programs = std::make_shared<const workload::GivenPrograms>(programs);
  given.model = {};
  given.strategy = {};
  return run_at(given, fidelity).step_ps;
}

}  // namespace

TEST_CASE("composed and coupled agree to the picosecond where samples have documents") {
  int shorter = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = draw_configuration(seed);
    if (configuration.strategy.cp_comm == workload::ContextExchange::gathered_blocks) continue;
    if (configuration.model.architecture) continue;
    configuration.strategy.stack.attention = workload::AttentionKernel::flash2;
    const std::int64_t sequence = configuration.model.sequence = 4'096;
    configuration.model.documents = workload::pack_documents(
        workload::lognormal_lengths(static_cast<double>(sequence) / 4, 1, 3, 200), sequence, workload::Packing::cut);
    const auto composed = run_configuration(configuration, step::Composition::composed);
    require_same_packets(composed, run_configuration(configuration, step::Composition::coupled));
    step::Configuration whole = configuration;
    whole.model.documents = nullptr;
    const auto of_whole = run_configuration(whole, step::Composition::composed);
    CHECK(composed.step_ps <= of_whole.step_ps);  // what the host launches takes no less
    shorter += composed.step_ps < of_whole.step_ps;
    step::SimulationContext context;
    CHECK(context.summary(configuration).step != context.summary(whole).step);
  }
  CHECK(shorter > 3);
}

TEST_CASE("a draw of one GPU's step is the step with the documents that it drew, to the picosecond") {
  const step::Configuration configuration = documented(1, 1, 1, 1, 1);
  step::SimulationContext context;
  const auto compiled = context.compile(configuration);
  const auto balanced = step::as_given(configuration, compiled.layout());
  step::DrawnDocuments documents(configuration, compiled.layout(), balanced);
  const auto& packed = *configuration.model.documents;
  for (std::uint64_t draw = 0; draw < 4; ++draw) {
    INFO("draw " << draw);
    auto only = std::make_shared<workload::Documents>(packed);
    only->samples.assign(1, packed.samples[manyworlds::core::decision_hash(draw, 0, 0) % packed.samples.size()]);
    only->lengths.clear();
    std::map<std::int64_t, std::int64_t> times;
    for (const std::int64_t length : only->samples.front()) ++times[length];
    only->lengths.assign(times.begin(), times.end());
    step::Configuration one = configuration;
    one.model.documents = only;
    CHECK(step_of(configuration, documents.draw(draw)) == run_at(one, network::Fidelity::packet).step_ps);
  }
}

TEST_CASE("draws of equal samples are the balanced step") {
  step::Configuration configuration = documented(1, 8, 2, 2, 4);
  configuration.model.documents =
      workload::pack_documents(std::vector<std::int64_t>(64, 2'048), 8'192, workload::Packing::cut);
  step::SimulationContext context;
  const auto compiled = context.compile(configuration);
  const auto balanced = step::as_given(configuration, compiled.layout());
  step::DrawnDocuments documents(configuration, compiled.layout(), balanced);
  for (const network::Fidelity fidelity : {network::Fidelity::packet, network::Fidelity::analytic})
    CHECK(step_of(configuration, documents.draw(1), fidelity) == run_at(configuration, fidelity).step_ps);
}

TEST_CASE("replicas with documents of their own make steps longer, and more of them more so") {
  const auto longer = [](std::uint32_t nodes) {
    const step::Configuration configuration = documented(nodes, 8, 1, 2, 4);
    step::SimulationContext context;
    const auto compiled = context.compile(configuration);
    const auto balanced = step::as_given(configuration, compiled.layout());
    step::DrawnDocuments documents(configuration, compiled.layout(), balanced);
    const auto balanced_ps = static_cast<double>(step_of(configuration, balanced, network::Fidelity::analytic));
    double sum = 0;
    for (std::uint64_t draw = 0; draw < 8; ++draw)
      sum += static_cast<double>(step_of(configuration, documents.draw(draw), network::Fidelity::analytic));
    return sum / 8 / balanced_ps;
  };
  const double of_four = longer(1), of_sixteen = longer(4);
  CHECK(of_four > 1);
  CHECK(of_sixteen > of_four);
}

TEST_CASE("steps of bidirectional pipelines, and of very many operations, have no draws") {
  step::Configuration configuration = documented(1, 8, 1, 2, 4);
  step::SimulationContext context;
  const auto balanced = step::as_given(configuration, context.compile(configuration).layout());
  CHECK(step::can_draw_documents(configuration, balanced));
  workload::GivenPrograms many = balanced;
  for (auto& program : many.programs) program.ops.resize(1'000'000);
  CHECK_FALSE(step::can_draw_documents(configuration, many));
  configuration.strategy.schedule = workload::schedule_by_name("dualpipe");
  CHECK_FALSE(step::can_draw_documents(configuration, balanced));
  configuration.model.documents = nullptr;
  CHECK_FALSE(step::can_draw_documents(configuration, balanced));
}
