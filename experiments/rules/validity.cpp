// The rules. Megatron-LM refuses the same layouts at its start, most of them in arguments.py.
#include "experiments/rules/validity.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/network/fabric/fabric.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/transports/lossless.hpp"
#include "core/network/transports/registry.hpp"
#include "experiments/config/routing.hpp"
#include "experiments/rules/activation_rules.hpp"
#include "experiments/rules/cost_rules.hpp"
#include "experiments/rules/machine_rules.hpp"
#include "experiments/rules/overlap_rules.hpp"
#include "experiments/rules/rule_facts.hpp"

namespace manyworlds::experiments {
namespace {

using core::step::Placement;
using core::workload::Dispatcher;
using core::workload::ExpertGemm;

constexpr std::int64_t kMostGpus = 131'072;

/// Broken unless `whole` is a multiple of `part`.
Broken divides(const char* whole_name, std::int64_t whole, const char* part_name, std::int64_t part) {
  if (whole % part == 0) return std::nullopt;
  return fmt::format("{} {}, {} {}", whole_name, whole, part_name, part);
}

/// How many members of a data-parallel group sit in one node: context-parallel ranks first, then replicas.
std::int64_t replicas_in_node(const World& world) {
  const auto& made = world.configuration;
  const auto& s = made.strategy;
  const std::int64_t apart = made.placement == Placement::tp_dp_pp ? 1 : s.pp;  // replicas, in ranks of tp x cp
  const std::int64_t tensor_groups = std::max<std::int64_t>(made.gpus_per_node / s.tp, 1);
  if (tensor_groups <= s.cp) return tensor_groups;
  return s.cp * std::clamp<std::int64_t>(tensor_groups / (s.cp * apart), 1, std::max<std::int64_t>(s.dp, 1));
}

std::vector<Rule> machine_rules() {
  return {
      rule("gpus_at_most", "cluster.nodes", fmt::format("nodes x gpus_per_node must be at most {}", kMostGpus),
           [](const World& w) -> Broken {
             if (w.cluster.gpus() <= kMostGpus) return std::nullopt;
             return fmt::format("nodes {}, gpus_per_node {}", w.cluster.nodes, w.cluster.gpus_per_node);
           }),
      rule("node_in_scale_up_domain", "cluster.gpus_per_node",
           "gpus_per_node must be at most the GPU's scale_up_domain, which joins the GPUs of a node",
           [](const World& w) -> Broken {
             if (w.cluster.gpus_per_node <= w.configuration.gpu.scale_up_domain) return std::nullopt;
             return fmt::format("gpus_per_node {}, scale_up_domain {}", w.cluster.gpus_per_node,
                                w.configuration.gpu.scale_up_domain);
           }),
      rule("idle_below_board", "cluster.gpu.idle_power_w", "idle_power_w must be at most board_power_w",
           [](const World& w) -> Broken {
             if (!w.power.known() || w.power.idle_power_w <= w.power.board_power_w) return std::nullopt;
             return fmt::format("idle_power_w {}, board_power_w {}", w.power.idle_power_w, w.power.board_power_w);
           }),
      rule("pause_thresholds", "transport", "pfc_xon_bytes must be at most pfc_xoff_bytes, and that below buffer_bytes",
           [](const World& w) -> Broken {
             const auto& t = w.configuration.transport;
             if (t.pfc_xon_bytes <= t.pfc_xoff_bytes && t.pfc_xoff_bytes < t.buffer_bytes) return std::nullopt;
             return fmt::format("pfc_xon_bytes {}, pfc_xoff_bytes {}, buffer_bytes {}", t.pfc_xon_bytes,
                                t.pfc_xoff_bytes, t.buffer_bytes);
           }),
      rule("marking_thresholds", "transport", "ecn_kmin_bytes must be at most ecn_kmax_bytes",
           [](const World& w) -> Broken {
             const auto& t = w.configuration.transport;
             if (!core::network::transport_type(t).marks || t.ecn_kmin_bytes <= t.ecn_kmax_bytes) return std::nullopt;
             return fmt::format("ecn_kmin_bytes {}, ecn_kmax_bytes {}", t.ecn_kmin_bytes, t.ecn_kmax_bytes);
           }),
      rule("rate_skipping", "skip.rate_tolerance", "only packets on pinned paths, composed, can be passed over by rate",
           [](const World& w) -> Broken {
             const auto& t = w.configuration.transport;
             if (t.rate_tolerance_ppm == 0) return std::nullopt;
             if (t.fidelity != core::network::Fidelity::packet) return "fidelity is analytic";
             if (core::network::needs_individuals(t)) return "this transport's packets are individuals";
             if (w.configuration.composition == core::step::Composition::coupled) return "composition is coupled";
             return std::nullopt;
           }),
      rule("transport_options", "transport", "the options of a transport must fit each other",
           [](const World& w) -> Broken {
             const auto& t = w.configuration.transport;
             std::string fault = core::network::transport_type(t).fault(t);
             return fault.empty() ? std::nullopt : Broken(std::move(fault));
           }),
  };
}

std::vector<Rule> model_rules() {
  return {
      rule("tp_in_node", "strategy.tp", "tp must divide gpus_per_node: a tensor-parallel group stays inside a node",
           [](const World& w) {
             return divides("gpus_per_node", w.cluster.gpus_per_node, "tp", w.configuration.strategy.tp);
           }),
      rule("hidden_by_heads", "model.hidden", "without head_dim, hidden must be a multiple of heads",
           [](const World& w) -> Broken {
             if (w.configuration.model.head_dim > 0) return std::nullopt;
             return divides("hidden", w.configuration.model.hidden, "heads", w.configuration.model.heads);
           }),
      rule("heads_by_kv_heads", "model.kv_heads", "heads must be a multiple of kv_heads",
           [](const World& w) {
             return divides("heads", w.configuration.model.heads, "kv_heads", w.configuration.model.kv());
           }),
      rule("heads_by_tp", "strategy.tp", "heads must be a multiple of tp",
           [](const World& w) {
             return divides("heads", w.configuration.model.heads, "tp", w.configuration.strategy.tp);
           }),
      rule("kv_heads_by_tp", "strategy.tp", "kv_heads must be a multiple of tp (KV-head replication is not supported)",
           [](const World& w) {
             return divides("kv_heads", w.configuration.model.kv(), "tp", w.configuration.strategy.tp);
           }),
      rule("hidden_by_tp", "strategy.tp", "hidden must be a multiple of tp",
           [](const World& w) {
             return divides("hidden", w.configuration.model.hidden, "tp", w.configuration.strategy.tp);
           }),
      rule("ffn_hidden_by_tp", "strategy.tp", "ffn_hidden must be a multiple of tp",
           [](const World& w) {
             return divides("ffn_hidden", w.configuration.model.ffn(), "tp", w.configuration.strategy.tp);
           }),
  };
}

std::vector<Rule> layout_rules() {
  return {
      rule("gpus_by_tp_pp", "strategy.pp", "the GPUs must be a multiple of tp x cp x pp",
           [](const World& w) {
             const auto& s = w.configuration.strategy;
             return divides("GPUs", w.cluster.gpus(), "tp x cp x pp", s.tp * s.cp * s.pp);
           }),
      rule("batch_by_replicas", "strategy.global_batch", "global_batch must be a multiple of dp x micro_batch",
           [](const World& w) {
             const auto& s = w.configuration.strategy;
             return divides("global_batch", s.global_batch, "dp x micro_batch", s.dp * s.micro_batch);
           }),
      rule("schedule_file_wanted", "strategy.schedule_file", "schedule_file needs schedule written",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             const core::workload::ScheduleType& type = core::workload::schedule_type(s.schedule);
             if (!s.written || type.chunks == core::workload::ScheduleType::kAsWritten) return std::nullopt;
             return fmt::format("schedule {}", type.name);
           }),
      rule("schedule_fits", "strategy.schedule", "the schedule must fit pp, virtual_stages and the micro-batches",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             std::string fault =
                 core::workload::schedule_fault(core::workload::schedule_type(s.schedule), s.pipeline());
             return fault.empty() ? std::nullopt : Broken(std::move(fault));
           }),
      rule("sequence_parallel_needs_tp", "strategy.sequence_parallel", "sequence_parallel needs tp > 1",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.sequence_parallel || s.tp > 1) return std::nullopt;
             return fmt::format("tp {}", s.tp);
           }),
      rule("sequence_by_cp", "model.sequence",
           "with cp > 1 the sequence must be a multiple of 2 x cp: a rank has pieces from both ends",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.cp == 1) return std::nullopt;
             return divides("sequence", w.configuration.model.sequence, "2 x cp", 2 * s.cp);
           }),
      rule("sequence_by_tp", "model.sequence", "under sequence_parallel the sequence must be a multiple of tp x cp",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.sequence_parallel) return std::nullopt;
             return divides("sequence", w.configuration.model.sequence, "tp x cp", s.tp * s.cp);
           }),
      rule("zero_3_on_mirrored", "strategy.zero",
           "zero 3 keeps tied embedding and head gathered together from forward to backward pass, which dualpipe's two "
           "directions do not allow",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.zero < 3 || s.copies() == 1 || !w.configuration.model.tied_embeddings) return std::nullopt;
             return "tied_embeddings true";
           }),
      rule("zero_needs_dp", "strategy.zero", "zero above 0 needs dp x cp > 1",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.zero == 0 || s.replicas() > 1) return std::nullopt;
             return fmt::format("dp {}, cp {}", s.dp, s.cp);
           }),
      rule("zero_group_fits", "strategy.zero_group",
           "zero_group needs zero above 0, 2 replicas or more in a group, and groups of equally many, of the dense "
           "parameters' replicas and of the experts'",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.zero_group == 0) return std::nullopt;
             if (s.zero > 0 && s.zero_group > 1 && s.replicas() % s.zero_group == 0 &&
                 (!w.configuration.model.has_experts() || s.expert_replicas() % s.zero_groups() == 0))
               return std::nullopt;
             return fmt::format("zero {}, zero_group {}, replicas {}, of experts {}", s.zero, s.zero_group,
                                s.replicas(), s.expert_replicas());
           }),
      rule("overlap_tensor_needs_sequence_parallel", "strategy.stack",
           "overlap_tensor requires sequence_parallel: add strategy.sequence_parallel: true",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.stack.overlap_tensor || s.tp == 1 || s.sequence_parallel) return std::nullopt;
             return fmt::format("tp {}, sequence_parallel false", s.tp);
           }),
      rule("post_validation_alone", "strategy.stack.post_validation",
           "post_validation lets a rank go on to its next step by itself, which parameters gathered for that step's "
           "first "
           "passes (overlap_parameters, zero 3) do not",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.stack.post_validation || (!s.stack.overlap_parameters && s.zero < 3)) return std::nullopt;
             return fmt::format("zero {}, overlap_parameters {}", s.zero, s.stack.overlap_parameters);
           }),
      rule("overlap_parameters_needs_shards", "strategy.stack.overlap_parameters",
           "overlap_parameters requires the distributed optimizer: add strategy.zero: 1, or 2",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.stack.overlap_parameters || s.zero == 1 || s.zero == 2) return std::nullopt;
             return fmt::format("zero {}", s.zero);
           }),
      rule("two_level_needs_levels", "collectives.all_reduce",
           "all_reduce two_level needs data-parallel groups with several members in each of several nodes",
           [](const World& w) -> Broken {
             if (w.configuration.collectives.all_reduce != core::collective::Algorithm::two_level) return std::nullopt;
             const std::int64_t local = replicas_in_node(w), dp = w.configuration.strategy.replicas();
             if (local > 1 && dp % local == 0 && dp / local > 1) return std::nullopt;
             return fmt::format("dp {}, members in a node {}", dp, local);
           }),
  };
}

std::vector<Rule> expert_rules() {
  return {
      rule("experts_wanted", "model.experts",
           "experts_per_token, expert_ffn_hidden, shared_ffn_hidden, dense_layers, ep and etp need experts",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             const auto& s = w.configuration.strategy;
             if (m.has_experts() || (m.experts_per_token == 1 && m.expert_ffn_hidden == 0 && m.shared_ffn_hidden == 0 &&
                                     m.dense_layers == 0 && s.ep == 1 && s.etp == 1))
               return std::nullopt;
             return "experts 0";
           }),
      rule("experts_per_token_at_most", "model.experts_per_token", "experts_per_token must be at most experts",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             if (!m.has_experts() || m.experts_per_token <= m.experts) return std::nullopt;
             return fmt::format("experts_per_token {}, experts {}", m.experts_per_token, m.experts);
           }),
      rule("dense_layers_at_most", "model.dense_layers", "dense_layers must be fewer than layers",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             if (m.dense_layers < m.layers) return std::nullopt;
             return fmt::format("dense_layers {}, layers {}", m.dense_layers, m.layers);
           }),
      rule("experts_by_ep", "strategy.ep", "experts must be a multiple of ep",
           [](const World& w) {
             return divides("experts", w.configuration.model.experts, "ep", w.configuration.strategy.ep);
           }),
      rule("tp_by_etp", "strategy.etp", "tp must be a multiple of etp",
           [](const World& w) {
             return divides("tp", w.configuration.strategy.tp, "etp", w.configuration.strategy.etp);
           }),
      rule("stage_by_ep", "strategy.ep", "the ranks of a stage, tp x cp x dp, must be a multiple of ep x etp",
           [](const World& w) {
             const auto& s = w.configuration.strategy;
             return divides("tp x cp x dp", s.tp * s.cp * s.dp, "ep x etp", s.ep * s.etp);
           }),
      rule("expert_widths_by_tp", "strategy.tp",
           "expert_ffn_hidden must be a multiple of etp, and shared_ffn_hidden of tp",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             const auto& s = w.configuration.strategy;
             if (!m.has_experts()) return std::nullopt;
             if (const Broken own = divides("expert_ffn_hidden", m.expert_ffn(), "etp", s.etp)) return own;
             return divides("shared_ffn_hidden", m.shared_ffn_hidden, "tp", s.tp);
           }),
      rule("experts_need_sequence_parallel", "strategy.sequence_parallel",
           "with tp > 1 experts need sequence_parallel: each rank routes its own tokens",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!w.configuration.model.has_experts() || s.tp == 1 || s.sequence_parallel) return std::nullopt;
             return fmt::format("tp {}", s.tp);
           }),
  };
}

/// What is told of tokens and their experts beside how many there are.
std::vector<Rule> routing_rules() {
  return {
      rule(
          "routing_fits", "routing",
          fmt::format("routing other than balanced needs experts, {} of all layers together at most, and of a measured "
                      "table all of them, none with more tokens than can go there",
                      kMostLoads),
          [](const World& w) -> Broken { return w.routing_fault.empty() ? std::nullopt : Broken(w.routing_fault); }),
      rule("routing_by_all_to_all", "strategy.stack.dispatcher",
           "routing other than balanced, and capacity_factor, need dispatcher all_to_all: how often experts of one "
           "token share a rank no load tells",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.stack.dispatcher == Dispatcher::all_to_all) return std::nullopt;
             if (!w.configuration.model.routing && s.capacity_factor == 0) return std::nullopt;
             return fmt::format("dispatcher hybrid_ep, capacity_factor {}", s.capacity_factor);
           }),
      rule("expert_keys_wanted", "strategy", "capacity_factor, expert_recompute_tokens and hot_experts need experts",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (w.configuration.model.has_experts()) return std::nullopt;
             if (s.capacity_factor == 0 && s.expert_recompute_tokens == 0 && !s.hot_experts) return std::nullopt;
             return "experts 0";
           }),
      rule("capacity_wanted", "strategy.capacity_factor",
           "pad_to_capacity and token_drop position need a capacity_factor (Megatron-LM, arguments.py)",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.capacity_factor > 0) return std::nullopt;
             if (!s.pad_to_capacity && s.token_drop == core::workload::TokenDrop::probs) return std::nullopt;
             return "capacity_factor 0";
           }),
      rule("batched_experts", "strategy.expert_gemm",
           "expert_gemm batched needs pad_to_capacity: a batched GEMM takes as many rows of every expert",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.expert_gemm != ExpertGemm::batched || s.pad_to_capacity) return std::nullopt;
             return "pad_to_capacity false";
           }),
      rule("expert_recompute_beside", "strategy.expert_recompute_tokens",
           "expert_recompute_tokens needs recompute none or selective: full makes everything again",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (s.expert_recompute_tokens == 0 || s.recompute != core::workload::Recompute::full) return std::nullopt;
             return "recompute full";
           }),
      rule("hot_experts_fit", "strategy.hot_experts",
           "hot_experts needs ep > 1, etp 1, no pad_to_capacity, and hot_expert_tflops and hot_expert_gbps above 0",
           [](const World& w) -> Broken {
             const auto& s = w.configuration.strategy;
             if (!s.hot_experts) return std::nullopt;
             if (s.ep > 1 && s.etp == 1 && !s.pad_to_capacity && s.hot_expert_tflops > 0 && s.hot_expert_gbps > 0)
               return std::nullopt;
             return fmt::format("ep {}, etp {}, pad_to_capacity {}, hot_expert_tflops {}, hot_expert_gbps {}", s.ep,
                                s.etp, s.pad_to_capacity, s.hot_expert_tflops, s.hot_expert_gbps);
           }),
  };
}

std::vector<Rule> attention_rules() {
  return {
      rule("latent_wanted", "model.attention", "query_rank, kv_rank, rotary_dim and value_dim need attention latent",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             if (m.is_latent() || (m.query_rank == 0 && m.kv_rank == 0 && m.rotary_dim == 0 && m.value_dim == 0))
               return std::nullopt;
             return "attention multi_head";
           }),
      rule("latent_attention", "model.attention",
           "attention latent needs kv_rank and as many kv_heads as heads, and has no query_key_norm",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             if (!m.is_latent() || (m.kv_rank > 0 && m.kv() == m.heads && !m.query_key_norm)) return std::nullopt;
             return fmt::format("kv_rank {}, kv_heads {}", m.kv_rank, m.kv());
           }),
      rule("window_wanted", "model.window_every", "window_every needs a window",
           [](const World& w) -> Broken {
             const auto& m = w.configuration.model;
             if (m.window > 0 || m.window_every == 1) return std::nullopt;
             return fmt::format("window_every {}", m.window_every);
           }),
  };
}

/// `world` with nothing broken must fit its topology; then its faults must fit that.
Rule graph_rule(std::string name, std::string reason, std::string key, bool with_faults) {
  return {std::move(name), std::move(reason), std::move(key),
          [with_faults](const World& world, GraphCache& graphs) -> Broken {
            if (with_faults && world.faults.none()) return std::nullopt;
            try {
              if (with_faults || world.faults.none()) {
                graphs.get(world);
              } else {
                World whole = world;
                whole.faults = {};
                graphs.get(whole);
              }
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          }};
}

Rule lossless_rule() {
  return {"lossless", "a buffer must hold what is on its way when a pause takes effect", "transport",
          [](const World& world, GraphCache& graphs) -> Broken {
            try {
              core::network::check_lossless(*graphs.get(world), world.configuration.transport);
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          }};
}

/// What is remembered of collectives and episodes is remembered of slices, whose packets are alike.
Rule step_transport_rule() {
  Rule made = rule("step_transport", "transport",
                   "steps take pinned paths (routing destination_mod_k or ecmp_hash), coalesced acks and a lossless "
                   "fabric; `manyworlds net` takes the others too",
                   [](const World& w) -> Broken {
                     std::string why = core::network::why_individuals(w.configuration.transport);
                     return why.empty() ? std::nullopt : Broken(std::move(why));
                   });
  made.steps_only = true;
  return made;
}

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (auto part : {machine_rules(), mixed_machine_rules()})
    for (Rule& one : part) all.push_back(std::move(one));
  for (auto part : {precision_rules(), model_rules(), section_rules(), attention_rules(), layout_rules(),
                    expert_rules(), routing_rules(), overlap_rules(), activation_rules()})
    for (Rule& one : part) {
      one.steps_only = true;
      all.push_back(std::move(one));
    }
  all.push_back(step_transport_rule());
  all.push_back(graph_rule("topology_fits", "the topology must fit the cluster", "topology", false));
  all.push_back(graph_rule("faults_fit", "faults must name cables and leave all GPUs joined", "faults", true));
  all.push_back(lossless_rule());
  for (Rule& one : cost_rules()) {
    one.steps_only = true;
    all.push_back(std::move(one));
  }
  for (Rule& one : all) {
    const RuleFacts& facts = facts_of(one.name);
    one.source = facts.source;
    one.relies_on = facts.relies_on;
  }
  return all;
}

}  // namespace

Rule rule(std::string name, std::string key, std::string reason, WorldCheck check) {
  return {std::move(name), std::move(reason), std::move(key),
          [check = std::move(check)](const World& world, GraphCache&) { return check(world); }};
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = all_rules();
  return table;
}

std::optional<Violation> find_violation(const World& world, GraphCache& graphs, Scope scope) {
  for (const Rule& one : rules()) {
    if (one.steps_only && scope != Scope::step) continue;
    if (const Broken values = one.check(world, graphs))
      return Violation{one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values};
  }
  return std::nullopt;
}

Violations find_violations(const World& world, GraphCache& graphs, Scope scope) {
  Violations made;
  std::set<std::string> amiss;  // broken, or not asked
  for (const Rule& one : rules()) {
    if (one.steps_only && scope != Scope::step) continue;
    const auto& needs = one.relies_on;
    if (std::any_of(needs.begin(), needs.end(), [&](const std::string& rule) { return amiss.count(rule) > 0; })) {
      made.not_asked.push_back(one.name);
      amiss.insert(one.name);
    } else if (const Broken values = one.check(world, graphs)) {
      made.broken.push_back({one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values});
      amiss.insert(one.name);
    }
  }
  return made;
}

}  // namespace manyworlds::experiments
