// Small configurations for tests: a cluster built by hand, and layouts drawn at random that are valid by construction.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <random>

#include "core/collective/algorithms/registry.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/run/simulation_context.hpp"
#include "tests/core/collective/calibration_figures.hpp"

namespace manyworlds::tests {

using namespace manyworlds::core;

struct Cluster {
  std::uint32_t nodes = 2, gpus_per_node = 4;
  bool rails = true;         // one leaf per local index; otherwise one leaf per node
  std::uint32_t spines = 1;  // of which every leaf has one uplink each
  bool mesh = false;         // GPUs of a node have links of their own to one another, in equal parts of the rate
  std::int64_t scale_up = 1'600'000'000'000, nic = 200'000'000'000, uplink = 200'000'000'000;
};

inline std::shared_ptr<const network::Graph> graph_of(const Cluster& cluster) {
  auto graph = std::make_shared<network::Graph>();
  using network::LinkKind, network::VertexKind;
  const std::uint32_t gpus = cluster.nodes * cluster.gpus_per_node;
  for (std::uint32_t i = 0; i < gpus; ++i) graph->add_vertex(VertexKind::gpu, "gpu");
  for (std::uint32_t node = 0; cluster.mesh && node < cluster.nodes; ++node)
    for (std::uint32_t i = 0; i < cluster.gpus_per_node; ++i)
      for (std::uint32_t j = i + 1; j < cluster.gpus_per_node; ++j)
        graph->add_cable(node * cluster.gpus_per_node + i, node * cluster.gpus_per_node + j, LinkKind::scale_up,
                         cluster.scale_up / (cluster.gpus_per_node - 1), 300'000);
  for (std::uint32_t node = 0; !cluster.mesh && node < cluster.nodes; ++node) {
    const std::uint32_t inside = graph->add_vertex(VertexKind::scale_up_switch, "inside");
    for (std::uint32_t i = 0; i < cluster.gpus_per_node; ++i)
      graph->add_cable(node * cluster.gpus_per_node + i, inside, LinkKind::scale_up, cluster.scale_up, 300'000);
  }
  std::vector<std::uint32_t> leaves, spines;
  for (std::uint32_t i = 0; i < (cluster.rails ? cluster.gpus_per_node : cluster.nodes); ++i)
    leaves.push_back(graph->add_vertex(VertexKind::network_switch, "leaf"));
  for (std::uint32_t i = 0; i < cluster.spines; ++i)
    spines.push_back(graph->add_vertex(VertexKind::network_switch, "spine"));
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
    graph->add_cable(gpu, leaves[cluster.rails ? gpu % cluster.gpus_per_node : gpu / cluster.gpus_per_node],
                     LinkKind::network, cluster.nic, 700'000);
  for (const std::uint32_t leaf : leaves)
    for (const std::uint32_t spine : spines) graph->add_cable(leaf, spine, LinkKind::network, cluster.uplink, 900'000);
  return graph;
}

inline compute::Gpu gpu() {
  compute::Gpu result;
  result.matrix_tflops = 300;
  result.memory_gib = 80;
  result.memory_gb_per_s = 2000;
  result.compute_units = 100;
  result.clock_ghz = 1;
  result.sustained_rate = 1;
  result.scale_up_gb_per_s = 200;
  return result;
}

inline workload::Model tiny_model() {
  workload::Model model;
  model.layers = 4;
  model.hidden = 512;
  model.heads = 8;
  model.vocabulary = 2048;
  model.sequence = 128;
  return model;
}

/// A valid configuration on `cluster` with the given cut; dp follows from the GPUs.
inline step::Configuration config_of(const Cluster& cluster, std::int64_t tp, std::int64_t pp,
                                     std::int64_t micro_batches) {
  step::Configuration result;
  result.model = tiny_model();
  result.gpu = gpu();
  result.graph = graph_of(cluster);
  result.gpus_per_node = cluster.gpus_per_node;
  result.strategy.tp = tp;
  result.strategy.pp = pp;
  result.strategy.dp = cluster.nodes * cluster.gpus_per_node / (tp * pp);
  result.strategy.global_batch = micro_batches * result.strategy.dp;
  result.strategy.bucket_parameters = 1'000'000;
  result.strategy.stack.host_kernel_us = 0.5;  // launching limits some passes of the tiny models, not all
  return result;
}

/// One that can do all-reduces, or the library's own choice.
inline collective::Algorithm any_all_reduce(std::uint64_t draw) {
  std::vector<collective::Algorithm> able{collective::Algorithm::automatic};
  for (const auto& info : collective::algorithms())
    if (collective::supports(info.algorithm, collective::Kind::all_reduce)) able.push_back(info.algorithm);
  return able[draw % able.size()];
}

/// One that runs on pinned paths.
inline std::string any_transport(std::uint64_t draw) {
  std::vector<std::string> pinned;
  for (const auto& type : network::transports())
    if (type.make_engine != nullptr) pinned.push_back(type.name);
  return pinned[draw % pinned.size()];
}

inline step::Configuration draw_configuration(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto any = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  Cluster cluster;
  cluster.nodes = static_cast<std::uint32_t>(any({1, 2, 4}));
  cluster.gpus_per_node = static_cast<std::uint32_t>(any({2, 4}));
  cluster.rails = any({0, 1}) != 0;
  cluster.spines = static_cast<std::uint32_t>(any({1, 2}));
  cluster.uplink = any({100, 200, 400}) * 1'000'000'000;
  cluster.scale_up = any({200, 1600}) * 1'000'000'000;
  const std::int64_t gpus = cluster.nodes * cluster.gpus_per_node;
  std::int64_t tp = any({1, 2, 4}), pp = any({1, 2, 4});
  tp = std::min<std::int64_t>(tp, cluster.gpus_per_node);
  while (tp * pp > gpus) pp /= 2;
  step::Configuration result = config_of(cluster, tp, pp, pp * any({1, 2}));
  workload::Strategy& s = result.strategy;
  if (pp > 1 && any({0, 1}) != 0) s.schedule = workload::schedule_by_name("gpipe");
  if (pp == 2 && any({0, 1}) != 0) s.schedule = workload::schedule_by_name("interleaved"), s.virtual_stages = 2;
  s.sequence_parallel = tp > 1 && any({0, 1}) != 0;
  s.recompute = static_cast<workload::Recompute>(any({0, 1, 2}));
  s.zero = s.dp > 1 ? any({0, 1}) : 0;
  s.bucket_parameters = any({300'000, 1'000'000, 40'000'000});
  s.overlap_grad_reduce = any({0, 1, 1}) != 0;
  s.stack.attention = static_cast<workload::AttentionKernel>(any({0, 1, 2}));
  s.stack.precision = static_cast<workload::Precision>(any({0, 1, 2, 3, 4}));
  s.stack.overlap_input_gradient = any({0, 1}) != 0;
  s.stack.overlap_tensor = s.sequence_parallel && any({0, 1}) != 0;
  s.stack.cuda_graphs = any({0, 1}) != 0 ? workload::CudaGraphs::all : workload::CudaGraphs::none;
  result.placement = any({0, 1}) != 0 ? step::Placement::tp_dp_pp : step::Placement::tp_pp_dp;
  using collective::Protocol;
  result.collectives.all_reduce = any_all_reduce(random());
  result.transport.kind = any_transport(random());
  result.transport.routing = any({0, 1}) != 0 ? network::Routing::destination_mod_k : network::Routing::ecmp_hash;
  result.transport.window_bytes = any({16, 64, 256}) * 4160;
  result.transport.pfc_xoff_bytes = any({20, 100}) * 4160;
  result.transport.pfc_xon_bytes = result.transport.pfc_xoff_bytes / 2;
  result.transport.ecn_kmin_bytes = any({5, 50}) * 1000;
  result.transport.ecn_kmax_bytes = 4 * result.transport.ecn_kmin_bytes;
  result.collectives.protocol = static_cast<Protocol>(any({0, 0, 0, 1, 2, 3, 4}));
  result.collectives.channels = any({1, 1, 1, 2, 4});
  result.collectives.chunk_bytes = any({0, 0, 0, 100'000});
  return result;
}

/// With half the replicas as context-parallel ranks, or with experts, or both.
inline step::Configuration with_context_and_experts(step::Configuration configuration, std::uint64_t seed) {
  workload::Strategy& s = configuration.strategy;
  if (seed % 3 != 0 && s.dp % 2 == 0) {
    s.cp = 2, s.dp /= 2, s.global_batch /= 2;
    if (s.replicas() == 1) s.zero = 0;
  }
  if (seed % 3 != 1 && (s.tp == 1 || s.sequence_parallel)) {
    configuration.model.experts = 8, configuration.model.experts_per_token = 2;
    configuration.model.dense_layers = static_cast<std::int64_t>(seed % 2);
    s.etp = seed % 5 == 0 ? s.tp : 1;
    s.ep = std::min<std::int64_t>(s.tp * s.cp * s.dp / s.etp, seed % 4 == 0 ? 2 : 8);
    if (seed % 2 == 0) s.stack.dispatcher = workload::Dispatcher::hybrid_ep;
    s.stack.overlap_experts = seed % 7 < 3;
  }
  if (seed % 4 == 1) {
    configuration.model.attention = workload::Attention::latent,
    configuration.model.position = workload::Position::rotary;
    configuration.model.query_rank = 128, configuration.model.kv_rank = 64, configuration.model.rotary_dim = 32,
    configuration.model.value_dim = 48;
  }
  return configuration;
}

/// With tensor-parallel communication in chunks, keys that are gathered or heads that are traded, and collectives that
/// take compute units or none.
inline step::Configuration with_overlaps(step::Configuration configuration, std::uint64_t seed) {
  workload::Strategy& s = configuration.strategy;
  if (s.cp > 1) s.cp_comm = static_cast<workload::ContextExchange>(1 + seed % 2);
  if (s.cp > 1 && seed % 3 == 0 && s.stack.attention != workload::AttentionKernel::unfused)
    s.cp_comm = workload::ContextExchange::gathered_blocks;
  if (s.tp > 1) s.sequence_parallel = s.stack.overlap_tensor = true;
  if (s.tp > 1) s.stack.tensor_chunks = 1 << seed % 4;
  s.stack.communication_engine = static_cast<workload::CommunicationEngine>(seed / 2 % 3);
  if (configuration.model.has_experts() && s.ep > 1 && !s.stack.overlap_experts) {
    configuration.model.shared_ffn_hidden = 512;
    s.stack.overlap_shared_expert = seed % 4 != 1;
    s.stack.delay_expert_weights = seed % 4 != 2;
  }
  bool* const fusions[] = {&s.stack.bias_activation_fusion,       &s.stack.bias_dropout_fusion, &s.stack.rope_fusion,
                           &s.stack.grouped_query_fusion,         &s.stack.permute_fusion,      &s.stack.router_fusion,
                           &s.stack.gradient_accumulation_fusion, &s.stack.projection_fusion,   &s.stack.sequence_first,
                           &s.stack.masked_softmax_fusion};
  for (std::size_t i = 0; i < std::size(fusions); ++i) *fusions[i] = (seed >> i & 1) == 0;
  s.stack.scatter_transfers = seed % 3 == 1;
  s.stack.communication_sms = s.stack.communication_engine == workload::CommunicationEngine::calibrated ? 0 : 15;
  return configuration;
}

/// With experts whose loads follow Zipf's law, and by turns capacity, copies of hot experts, recomputation of loaded
/// ranks, an all-to-all by rails, and any pipeline, tensor and context parallelism of drawn configurations.
inline step::Configuration draw_routed(std::uint64_t seed) {
  step::Configuration configuration = draw_configuration(seed);
  workload::Strategy& s = configuration.strategy;
  if (s.tp > 1) s.sequence_parallel = true;
  if (seed % 5 == 1 && s.dp % 2 == 0) {
    s.cp = 2, s.dp /= 2, s.global_batch /= 2;
    if (s.replicas() == 1) s.zero = 0;
  }
  configuration.model.experts = 8, configuration.model.experts_per_token = 2;
  configuration.model.expert_ffn_hidden = 256;
  configuration.model.dense_layers = static_cast<std::int64_t>(seed % 2);
  s.etp = seed % 7 == 0 ? s.tp : 1;
  s.ep = std::min<std::int64_t>(s.tp * s.replicas() / s.etp, seed % 4 == 0 ? 2 : 8);
  configuration.model.routing = workload::zipf_routing(
      configuration.model.layers, 8, 0.4 + 0.2 * static_cast<double>(seed % 6), static_cast<std::int64_t>(seed));
  if (seed % 3 == 0) s.capacity_factor = 1.25;
  s.pad_to_capacity = seed % 9 == 0;
  s.expert_recompute_tokens = seed % 4 == 1 && s.recompute != workload::Recompute::full ? 150 : 0;
  s.hot_experts = seed % 2 == 0 && s.etp == 1 && s.ep > 1 && !s.pad_to_capacity;
  s.hot_expert_tflops = 0.1, s.hot_expert_gbps = 400;  // slow enough to compute for copies to pay
  s.stack.overlap_experts = seed % 7 < 3;
  if (seed % 3 == 1) configuration.collectives.all_to_all = collective::Algorithm::node_aware;
  return configuration;
}

/// With a calibrated library's choices and costs. Its shares of the links' rates are unequal inside nodes and between
/// them.
inline step::Configuration with_calibrated_library(step::Configuration configuration) {
  configuration.collectives = {};
  configuration.collectives.all_reduce = collective::Algorithm::automatic;
  configuration.collectives.protocol = collective::Protocol::calibrated;
  configuration.collectives.channels = 0;
  configuration.collectives.calibration = calibration();
  return configuration;
}

/// With another schedule, on as many ranks as it needs, and twice as many micro-batches as ranks.
inline step::Configuration with_schedule(step::Configuration configuration, const workload::ScheduleType& type) {
  workload::Strategy& s = configuration.strategy;
  if (s.pp == 1) {
    if (s.dp % 2 == 0)
      s.dp /= 2;
    else if (s.tp % 2 == 0)
      s.tp /= 2, s.sequence_parallel &= s.tp > 1, s.stack.overlap_tensor &= s.sequence_parallel;
    s.pp = 2;
  }
  s.schedule = workload::schedule_by_name(type.name);
  s.virtual_stages = type.chunks == workload::ScheduleType::kTwoOrMore ? 2 : type.chunks;
  s.global_batch = 2 * s.pp * s.dp * s.micro_batch;
  configuration.model.layers = 2 * s.stages().count();
  if (s.replicas() == 1) s.zero = 0;
  return configuration;
}

inline step::StepResult run_configuration(step::Configuration configuration, step::Composition composition,
                                          bool share = true) {
  configuration.composition = composition;
  step::SimulationContext context(share);
  step::IsolatedResults results;
  return context.run(context.compile(configuration), results);
}

/// Returns the step of a configuration at a fidelity, composed.
inline step::StepResult run_at(step::Configuration configuration, network::Fidelity fidelity,
                               step::Ranks ranks = step::Ranks::all, bool share = true) {
  configuration.transport.fidelity = fidelity;
  step::SimulationContext context(share);
  step::IsolatedResults results;
  return context.run(context.compile(configuration, ranks), results);
}

/// Returns it with kernels that are not slowed by collectives, as under analytic fidelity.
inline step::Configuration undisturbed(step::Configuration configuration) {
  configuration.gpu.communication_slowdown = 0;
  configuration.strategy.stack.communication_sms = 0;
  configuration.strategy.stack.communication_engine = workload::CommunicationEngine::calibrated;
  return configuration;
}

/// Requires two results to be of the same packets: to the picosecond, the link-hop, the mark and the pause.
inline void require_same_packets(const step::StepResult& one, const step::StepResult& other) {
  REQUIRE(one.step_ps == other.step_ps);
  REQUIRE(one.link_hops == other.link_hops);
  REQUIRE(one.ecn_marks == other.ecn_marks);
  REQUIRE(one.pauses == other.pauses);
}

}  // namespace manyworlds::tests
