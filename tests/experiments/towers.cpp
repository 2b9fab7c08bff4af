// Networks in front of a language model on pipeline stages of their own, or on those that it begins on.
#include <catch2/catch.hpp>
#include <set>

#include "core/step/estimate/lower_bound.hpp"
#include "core/step/run/simulation_context.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/strategy/stage_boundaries.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::step::Configuration;
using core::workload::stage_boundary;

namespace {

/// A tower of four layers of 128 x 64, a layer between, and four layers of 64 x 256.
const std::string kTower =
    "base:\n"
    "  model:\n"
    "    layers: 9\n    hidden: 64\n    heads: 4\n    vocabulary: 512\n    sequence: 256\n"
    "    architecture:\n"
    "      networks:\n"
    "        vision: {hidden: 128, sequence: 64, blocks: {a: [{attention: {causal: false}}, mlp]}, layers: aaaa}\n"
    "        merger: {sequence: 16, blocks: {m: {mlp: {inputs: 512, norms: none, residual: false}}}, layers: m}\n"
    "        text: {blocks: {a: [attention, mlp]}, layers: aaaa}\n"
    "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
    "  topology: {rail_optimized: {oversubscription: 1}}\n"
    "  transport: dcqcn\n"
    "  strategy: {tp: 1, pp: 4, micro_batch: 1, global_batch: 8}\n";

Configuration configuration_of(const std::vector<std::string>& sets, const std::string& text = kTower) {
  GraphCache graphs;
  return configure(read(text, sets).experiments.at(0), graphs);
}

/// Returns the bytes of the sends of a pipeline rank, each once.
std::set<std::int64_t> sent_by(const Configuration& configuration, std::int64_t stage, core::workload::Role role) {
  std::set<std::int64_t> bytes;
  const core::workload::Program program =
      build_program(configuration.model, configuration.strategy, configuration.gpu, stage);
  for (const core::workload::Op& op : program.ops)
    if (const core::workload::CollectiveCall* call = op.collective(); call != nullptr && call->role == role)
      bytes.insert(call->bytes);
  return bytes;
}

}  // namespace

TEST_CASE("stages send hidden states of the network that they end in, and embedded tokens until the last begins") {
  constexpr std::int64_t kVision = 2 * 128 * 64, kMerged = 2 * 64 * 16, kText = 2 * 64 * 256;
  const Configuration inside = configuration_of({"strategy.stage_layers=2+2+2+3"});
  CHECK(stage_boundary(inside.model, inside.strategy, 1).bytes == kVision + kText);
  CHECK(stage_boundary(inside.model, inside.strategy, 2).bytes == kVision + kText);
  CHECK(stage_boundary(inside.model, inside.strategy, 3).bytes == kText);
  const Configuration apart = configuration_of({"strategy.stage_layers=0+5+2+2"});
  CHECK(stage_boundary(apart.model, apart.strategy, 1).bytes == kText);
  CHECK(stage_boundary(apart.model, apart.strategy, 2).bytes == kMerged + kText);
  const Configuration alone =
      configuration_of({"strategy.stage_layers=2+2+2+3", "strategy.micro_batch=2"},
                       with(kTower, "    architecture:\n", "    architecture:\n      embedding: false\n"));
  CHECK(stage_boundary(alone.model, alone.strategy, 1).bytes == 2 * kVision);
  CHECK(core::workload::mean_boundary(alone.model, alone.strategy).bytes == (4 * kVision + 2 * kText) / 3);
  CHECK(core::workload::least_boundary(alone.model, alone.strategy).bytes == 2 * kMerged);
  CHECK(core::workload::least_boundary(inside.model, inside.strategy).bytes == kText);
}

TEST_CASE("programs send and receive the bytes of a boundary on both of its sides") {
  using core::workload::Role;
  const Configuration configuration = configuration_of({"strategy.stage_layers=2+3+2+2"});
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    const std::set<std::int64_t> bytes{
        stage_boundary(configuration.model, configuration.strategy, stage + 1).transfer_bytes};
    CAPTURE(stage);
    CHECK(sent_by(configuration, stage, Role::send_forward) == bytes);
    CHECK(sent_by(configuration, stage + 1, Role::recv_forward) == bytes);
    CHECK(sent_by(configuration, stage + 1, Role::send_backward) == bytes);
    CHECK(sent_by(configuration, stage, Role::recv_backward) == bytes);
  }
}

TEST_CASE("towers on stages take as long composed as with all packets in one event loop") {
  const std::vector<std::vector<std::string>> layouts{
      {"strategy.stage_layers=2+2+2+3"},
      {"strategy.stage_layers=5+1+1+2"},
      {"strategy.split=by_time"},
      {"strategy.split=by_memory"},
      {"strategy.schedule=interleaved", "strategy.pp=2", "strategy.virtual_stages=2", "strategy.global_batch=16",
       "strategy.split=by_time"},
      {"strategy.schedule=zb_v", "strategy.pp=2", "strategy.virtual_stages=2", "strategy.global_batch=16",
       "strategy.split=by_time"},
      {"strategy.tp=2", "strategy.pp=2", "strategy.split=by_time", "strategy.stack.scatter_transfers=true"},
      {"strategy.tp=2", "strategy.pp=2", "strategy.split=by_parameters", "strategy.sequence_parallel=true"},
  };
  for (const std::vector<std::string>& layout : layouts) {
    Configuration configuration = configuration_of(layout);
    CAPTURE(layout, configuration.strategy.stage_layers);
    std::vector<core::Time> steps;
    for (const auto composition : {core::step::Composition::composed, core::step::Composition::coupled}) {
      configuration.composition = composition;
      core::step::SimulationContext context;
      core::step::IsolatedResults results;
      steps.push_back(context.run(context.compile(configuration), results).step_ps);
    }
    CHECK(steps[0] > 0);
    CHECK(steps[0] == steps[1]);
    CHECK(core::step::lower_bound_ps(configuration) <= steps[0]);
  }
}
