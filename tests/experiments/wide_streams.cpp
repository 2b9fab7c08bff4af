// Streams of hyper-connections between pipeline stages, and context parallelism of joint, cross and sparse attention,
// in whole steps: composed as with all packets in one event loop, and not below their bounds.
#include <catch2/catch.hpp>

#include <set>

#include "core/memory/footprint.hpp"
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

constexpr std::int64_t kStreams = 4, kToken = 2 * 64 * 256;  // bytes of a sample's hidden states

/// Eight layers of four streams, of which the last one makes one again.
const std::string kWide =
    "base:\n"
    "  model:\n"
    "    layers: 8\n    hidden: 64\n    heads: 4\n    vocabulary: 512\n    sequence: 256\n"
    "    architecture:\n"
    "      blocks:\n"
    "        a: [hyper_connection, {attention: {residual: false}}, hyper_connection, {mlp: {residual: false}}]\n"
    "        z: [hyper_connection, {mlp: {residual: false}}, {hyper_connection: {collapse_only: true}}]\n"
    "      layers: aaaaaaaz\n"
    "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
    "  topology: {rail_optimized: {oversubscription: 1}}\n"
    "  transport: dcqcn\n"
    "  strategy: {tp: 1, pp: 4, micro_batch: 1, global_batch: 8}\n";

Configuration configuration_of(const std::vector<std::string>& sets, const std::string& text = kWide) {
  GraphCache graphs;
  return configure(read(text, sets).experiments.at(0), graphs);
}

/// Checks that a step takes as long composed as coupled, and at least as long as its bound.
void check_step(Configuration configuration) {
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

}  // namespace

TEST_CASE("stages send all streams of hyper-connections, and one behind the layer that collapses them") {
  const Configuration even = configuration_of({});
  for (std::int64_t stage = 1; stage < 4; ++stage)
    CHECK(stage_boundary(even.model, even.strategy, stage).bytes == kStreams * kToken);
  CHECK(core::workload::mean_boundary(even.model, even.strategy).bytes == kStreams * kToken);
  CHECK(core::workload::least_boundary(even.model, even.strategy).bytes == kStreams * kToken);
  // Tokens are widened where they are embedded; the head may stand alone.
  const Configuration ends = configuration_of({"strategy.stage_layers=0+4+4+0"});
  CHECK(stage_boundary(ends.model, ends.strategy, 1).bytes == kStreams * kToken);
  CHECK(stage_boundary(ends.model, ends.strategy, 2).bytes == kStreams * kToken);
  CHECK(stage_boundary(ends.model, ends.strategy, 3).bytes == kToken);
  CHECK(core::workload::least_boundary(ends.model, ends.strategy).bytes == kToken);
  const Configuration divided = configuration_of({"strategy.tp=2", "strategy.sequence_parallel=true"});
  CHECK(stage_boundary(divided.model, divided.strategy, 1).bytes == kStreams * kToken / 2);
  const Configuration context = configuration_of({"strategy.cp=2"});
  CHECK(stage_boundary(context.model, context.strategy, 1).bytes == kStreams * kToken / 2);
}

TEST_CASE("programs send and receive the streams of a boundary on both of its sides") {
  using core::workload::Role;
  const Configuration configuration = configuration_of({});
  const auto sent_by = [&](std::int64_t stage, Role role) {
    std::set<std::int64_t> bytes;
    const auto program = build_program(configuration.model, configuration.strategy, configuration.gpu, stage);
    for (const core::workload::Op& op : program.ops)
      if (const core::workload::CollectiveCall* call = op.collective(); call != nullptr && call->role == role)
        bytes.insert(call->bytes);
    return bytes;
  };
  const std::set<std::int64_t> streams{kStreams * kToken};
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    CAPTURE(stage);
    CHECK(sent_by(stage, Role::send_forward) == streams);
    CHECK(sent_by(stage + 1, Role::recv_forward) == streams);
    CHECK(sent_by(stage + 1, Role::send_backward) == streams);
    CHECK(sent_by(stage, Role::recv_backward) == streams);
  }
}

TEST_CASE("wide streams on stages take as long composed as with all packets in one event loop") {
  const std::vector<std::vector<std::string>> layouts{
      {},
      {"strategy.stage_layers=0+4+4+0"},
      {"strategy.recompute=full"},
      {"strategy.split=by_time"},
      {"strategy.split=by_memory"},
      {"strategy.schedule=interleaved", "strategy.pp=2", "strategy.virtual_stages=2", "strategy.global_batch=16"},
      {"strategy.schedule=zb_v", "strategy.pp=2", "strategy.virtual_stages=2", "strategy.global_batch=16"},
      {"strategy.schedule=zb_h1", "strategy.pp=2"},
      {"strategy.tp=2", "strategy.pp=2", "strategy.stack.scatter_transfers=true"},
      {"strategy.tp=2", "strategy.pp=2", "strategy.sequence_parallel=true", "strategy.zero=1"},
      {"strategy.cp=2", "strategy.pp=2"},
  };
  for (const std::vector<std::string>& layout : layouts) {
    CAPTURE(layout);
    check_step(configuration_of(layout));
  }
}

TEST_CASE("stages of DeepSeek-V4 send four vectors of every token, and recomputed layers keep them") {
  constexpr std::int64_t kState = 2 * 4'096 * 4'096;  // 4,096 tokens of 4,096 numbers
  const std::string text =
      "base:\n  model: {like: deepseek-v4-flash, sequence: 4096}\n  cluster: {like: dgx_h100_superpod, nodes: 4}\n"
      "  topology: rail_optimized\n"
      "  strategy: {pp: 4, ep: 8, stage_layers: 11+11+11+10, micro_batch: 1, global_batch: 64}\n";
  const Configuration configuration = configuration_of({}, text);
  for (std::int64_t stage = 1; stage < 4; ++stage)
    CHECK(stage_boundary(configuration.model, configuration.strategy, stage).bytes == 4 * kState);
  const Configuration full = configuration_of({"strategy.recompute=full"}, text);
  for (const std::int64_t layer : {0, 2, 3, 42})
    CHECK(core::memory::activation_bytes_per_layer(full.model, full.strategy, full.model.layer_kind(layer)) ==
          4 * kState);
}

TEST_CASE("ranks that share images and texts take as long composed as with all packets in one event loop") {
  const auto text = [](const std::string& needed, const std::string& networks) {
    return "base:\n  model: {layers: 4, hidden: 64, heads: 8, ffn_hidden: 128, vocabulary: 512, sequence: 256" +
           needed + ", architecture: " + networks +
           "}\n  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
           "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n"
           "  strategy: {tp: 2, cp: 4, micro_batch: 1, global_batch: 4, stack: {attention: flash}}\n";
  };
  const std::string joint = text(
                        "", "{blocks: {a: [{joint_attention: {text: 64}}, {joint_mlp: {text: 64}}]}, layers: aaaa}"),
                    cross = text("",
                                 "{networks: {text: {sequence: 64, blocks: {a: mlp}, layers: aa}, image: {blocks: {a: "
                                 "[attention, {cross_attention: {keys: 64}}]}, layers: aa}}}"),
                    sparse =
                        text(", attention: latent, query_rank: 32, kv_rank: 32, rotary_dim: 16",
                             "{blocks: {a: [{sparse_attention: {index_heads: 4, index_width: 16, index_keys: 32}}, "
                             "mlp]}, layers: aaaa}");
  for (const char* exchange : {"ring", "all_gather", "gathered_blocks"})
    for (const std::string& each : {joint, cross}) {
      CAPTURE(exchange, each);
      check_step(configuration_of({std::string("strategy.cp_comm=") + exchange}, each));
    }
  for (const std::string& each : {joint, cross}) check_step(configuration_of({"strategy.cp_comm=ulysses"}, each));
  check_step(configuration_of({}, sparse));
  check_step(configuration_of({"strategy.cp_comm=all_gather"}, sparse));
  check_step(configuration_of({"strategy.cp_comm=all_gather", "strategy.sequence_parallel=true"}, sparse));
}
