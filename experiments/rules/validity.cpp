// The table of validity rules. Megatron-LM refuses the same layouts at its start, most of them in arguments.py.
#include "experiments/rules/validity.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/transports/pfc_headroom.hpp"
#include "core/network/transports/registry.hpp"
#include "experiments/rules/activation_rules.hpp"
#include "experiments/rules/cost_rules.hpp"
#include "experiments/rules/expert_rules.hpp"
#include "experiments/rules/machine_rules.hpp"
#include "experiments/rules/overlap_rules.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::step::Placement;

constexpr std::int64_t kMaxGpus = 131'072;

/// Returns how many members of a data-parallel group are in one node: context-parallel ranks first, then replicas.
std::int64_t replicas_in_node(const ExperimentConfig& config) {
  const auto& result = config.configuration;
  const auto& s = result.strategy;
  const std::int64_t replica_stride = result.placement == Placement::tp_dp_pp ? 1 : s.pp;  // in groups of tp x cp ranks
  const std::int64_t tensor_groups = std::max<std::int64_t>(result.gpus_per_node / s.tp, 1);
  if (tensor_groups <= s.cp) return tensor_groups;
  return s.cp * std::clamp<std::int64_t>(tensor_groups / (s.cp * replica_stride), 1, std::max<std::int64_t>(s.dp, 1));
}

std::vector<Rule> machine_rules() {
  return {
      rule("gpus_at_most", "cluster.nodes", fmt::format("nodes x gpus_per_node must be at most {}", kMaxGpus),
           {"limit of this program: room for ranks in its keys"},
           [](const ExperimentConfig& e) -> Violation {
             if (e.cluster.gpus() <= kMaxGpus) return std::nullopt;
             return fmt::format("nodes {}, gpus_per_node {}", e.cluster.nodes, e.cluster.gpus_per_node);
           }),
      rule("node_in_scale_up_domain", "cluster.gpus_per_node",
           "gpus_per_node must be at most the GPU's scale_up_domain, which joins the GPUs of a node", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.cluster.gpus_per_node <= e.configuration.gpu.scale_up_domain) return std::nullopt;
             return fmt::format("gpus_per_node {}, scale_up_domain {}", e.cluster.gpus_per_node,
                                e.configuration.gpu.scale_up_domain);
           }),
      rule("idle_below_board", "cluster.gpu.idle_power_w", "idle_power_w must be at most board_power_w",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (!e.power.known() || e.power.idle_power_w <= e.power.board_power_w) return std::nullopt;
             return fmt::format("idle_power_w {}, board_power_w {}", e.power.idle_power_w, e.power.board_power_w);
           }),
      rule("pause_thresholds", "transport", "pfc_xon_bytes must be at most pfc_xoff_bytes, and that below buffer_bytes",
           {kPfc},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (t.pfc_xon_bytes <= t.pfc_xoff_bytes && t.pfc_xoff_bytes < t.buffer_bytes) return std::nullopt;
             return fmt::format("pfc_xon_bytes {}, pfc_xoff_bytes {}, buffer_bytes {}", t.pfc_xon_bytes,
                                t.pfc_xoff_bytes, t.buffer_bytes);
           }),
      rule("marking_thresholds", "transport", "ecn_kmin_bytes must be at most ecn_kmax_bytes",
           {"Zhu et al. 2015 (DCQCN), section 3.1: marking begins at Kmin and is sure at Kmax"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (!core::network::transport_type(t).marks || t.ecn_kmin_bytes <= t.ecn_kmax_bytes) return std::nullopt;
             return fmt::format("ecn_kmin_bytes {}, ecn_kmax_bytes {}", t.ecn_kmin_bytes, t.ecn_kmax_bytes);
           }),
      rule("rate_skipping", "skip.rate_tolerance",
           "fast-forwarding by rate needs pinned paths, packet fidelity and composition composed", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (t.rate_tolerance_ppm == 0) return std::nullopt;
             if (t.fidelity != core::network::Fidelity::packet) return "fidelity is analytic";
             if (core::network::needs_per_packet(t)) return "this transport simulates every packet (per_packet)";
             if (e.configuration.composition == core::step::Composition::coupled) return "composition is coupled";
             return std::nullopt;
           }),
      rule("transport_options", "transport", "the options of a transport must fit each other",
           {"the transport's paper, named in docs/model/network.md"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             std::string fault = core::network::transport_type(t).fault(t);
             return fault.empty() ? std::nullopt : Violation(std::move(fault));
           }),
  };
}

std::vector<Rule> model_rules() {
  return {
      rule("tp_by_node", "strategy.tp",
           "tp must divide gpus_per_node or be a multiple of it: a tensor-parallel group is a part of a node, or whole "
           "nodes",
           {"by construction; software takes both: Megatron-LM, core/parallel_state.py, and nanotron, "
            "parallel/context.py, form groups of consecutive ranks, whatever their nodes"},
           [](const ExperimentConfig& e) -> Violation {
             const std::int64_t node = e.cluster.gpus_per_node, tp = e.configuration.strategy.tp;
             return tp % node == 0 ? std::nullopt : check_divisible("gpus_per_node", node, "tp", tp);
           }),
      rule("hidden_by_heads", "model.hidden", "without head_dim, hidden must be a multiple of heads", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.model.head_dim > 0) return std::nullopt;
             return check_divisible("hidden", e.configuration.model.hidden, "heads", e.configuration.model.heads);
           }),
      rule("heads_by_kv_heads", "model.kv_heads", "heads must be a multiple of kv_heads",
           {"Ainslie et al. 2023 (GQA), section 2.2: every group has as many query heads"},
           [](const ExperimentConfig& e) {
             return check_divisible("heads", e.configuration.model.heads, "kv_heads", e.configuration.model.kv());
           }),
      rule("heads_by_tp", "strategy.tp", "heads must be a multiple of tp", {kTransformerConfig},
           [](const ExperimentConfig& e) {
             return check_divisible("heads", e.configuration.model.heads, "tp", e.configuration.strategy.tp);
           }),
      rule("kv_heads_by_tp", "strategy.tp", "kv_heads must be a multiple of tp (KV-head replication is not supported)",
           {kTransformerConfig},
           [](const ExperimentConfig& e) {
             return check_divisible("kv_heads", e.configuration.model.kv(), "tp", e.configuration.strategy.tp);
           }),
      rule("hidden_by_tp", "strategy.tp", "hidden must be a multiple of tp", {kDivide},
           [](const ExperimentConfig& e) {
             return check_divisible("hidden", e.configuration.model.hidden, "tp", e.configuration.strategy.tp);
           }),
      rule("ffn_hidden_by_tp", "strategy.tp", "ffn_hidden must be a multiple of tp", {kDivide},
           [](const ExperimentConfig& e) {
             return check_divisible("ffn_hidden", e.configuration.model.ffn(), "tp", e.configuration.strategy.tp);
           }),
  };
}

std::vector<Rule> layout_rules() {
  return {
      rule("gpus_by_tp_pp", "strategy.pp", "the GPUs must be a multiple of tp x cp x pp", {kArguments},
           [](const ExperimentConfig& e) {
             const auto& s = e.configuration.strategy;
             return check_divisible("GPUs", e.cluster.gpus(), "tp x cp x pp", s.tp * s.cp * s.pp);
           }),
      rule("batch_by_replicas", "strategy.global_batch", "global_batch must be a multiple of dp x micro_batch",
           {"Megatron-LM, core/num_microbatches_calculator.py", {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) {
             const auto& s = e.configuration.strategy;
             return check_divisible("global_batch", s.global_batch, "dp x micro_batch", s.dp * s.micro_batch);
           }),
      rule("schedule_file_wanted", "strategy.schedule_file", "schedule_file needs schedule written", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             const core::workload::ScheduleType& type = core::workload::schedule_type(s.schedule);
             if (!s.written || type.chunks == core::workload::ScheduleType::kAsWritten) return std::nullopt;
             return fmt::format("schedule {}", type.name);
           }),
      rule("schedule_fits", "strategy.schedule", "the schedule must fit pp, virtual_stages and the micro-batches",
           {"the schedule's own source, named where it is listed (Megatron-LM, core/pipeline_parallel/schedules.py; Qi "
            "et "
            "al. 2024; deepseek-ai/DualPipe)",
            {"gpus_by_tp_pp", "batch_by_replicas"}},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             std::string fault =
                 core::workload::schedule_infeasible_reason(core::workload::schedule_type(s.schedule), s.pipeline());
             return fault.empty() ? std::nullopt : Violation(std::move(fault));
           }),
      rule("sequence_parallel_needs_tp", "strategy.sequence_parallel", "sequence_parallel needs tp > 1", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.sequence_parallel || s.tp > 1) return std::nullopt;
             return fmt::format("tp {}", s.tp);
           }),
      rule("sequence_by_cp", "model.sequence",
           "with cp > 1 the sequence must be a multiple of 2 x cp: a rank has pieces from both ends",
           {"Megatron-LM, training/utils.py, get_batch_on_this_cp_rank(): one piece from each end"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.cp == 1) return std::nullopt;
             return check_divisible("sequence", e.configuration.model.sequence, "2 x cp", 2 * s.cp);
           }),
      rule("sequence_by_tp", "model.sequence", "under sequence_parallel the sequence must be a multiple of tp x cp",
           {"Korthikanti et al. 2023, section 4.2.2: the sequence is cut over the tensor-parallel group"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.sequence_parallel) return std::nullopt;
             return check_divisible("sequence", e.configuration.model.sequence, "tp x cp", s.tp * s.cp);
           }),
      rule("zero_3_on_mirrored", "strategy.zero",
           "zero 3 keeps tied embedding and head gathered together from forward to backward pass, which dualpipe's two "
           "directions do not allow",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.zero < 3 || s.stage_copies() == 1 || !e.configuration.model.tied_embeddings) return std::nullopt;
             return "tied_embeddings true";
           }),
      rule("zero_needs_dp", "strategy.zero", "zero above 0 needs dp x cp > 1",
           {"Rajbhandari et al. 2020 (ZeRO), section 5: states are cut over replicas", {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.zero == 0 || s.replicas() > 1) return std::nullopt;
             return fmt::format("dp {}, cp {}", s.dp, s.cp);
           }),
      rule("zero_group_fits", "strategy.zero_group",
           "zero_group needs zero above 0, 2 replicas or more in a group, and groups of equally many, of the dense "
           "parameters' replicas and of the experts'",
           {"Zhao et al. 2023 (PyTorch FSDP), section 3.2.2: hybrid sharding, groups of equally many replicas",
            {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.zero_group == 0) return std::nullopt;
             if (s.zero > 0 && s.zero_group > 1 && s.replicas() % s.zero_group == 0 &&
                 (!e.configuration.model.has_experts() || s.expert_replicas() % s.zero_groups() == 0))
               return std::nullopt;
             return fmt::format("zero {}, zero_group {}, replicas {}, of experts {}", s.zero, s.zero_group,
                                s.replicas(), s.expert_replicas());
           }),
      rule("overlap_tensor_needs_sequence_parallel", "strategy.stack",
           "overlap_tensor requires sequence_parallel: add strategy.sequence_parallel: true", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.overlap_tensor || s.tp == 1 || s.sequence_parallel) return std::nullopt;
             return fmt::format("tp {}, sequence_parallel false", s.tp);
           }),
      rule("post_validation_alone", "strategy.stack.post_validation",
           "post_validation lets a rank begin its next step independently, which parameters gathered for that step's "
           "first "
           "passes (overlap_parameters, zero 3) do not",
           {"Qi et al. 2024 (Zero Bubble), section 4"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.post_validation || (!s.stack.overlap_parameters && s.zero < 3)) return std::nullopt;
             return fmt::format("zero {}, overlap_parameters {}", s.zero, s.stack.overlap_parameters);
           }),
      rule("overlap_parameters_needs_shards", "strategy.stack.overlap_parameters",
           "overlap_parameters requires the distributed optimizer: add strategy.zero: 1, or 2", {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.stack.overlap_parameters || s.zero == 1 || s.zero == 2) return std::nullopt;
             return fmt::format("zero {}", s.zero);
           }),
      rule("two_level_needs_levels", "collectives.all_reduce",
           "all_reduce two_level needs data-parallel groups with several members in each of several nodes",
           {kConstruction, {"gpus_by_tp_pp", "tp_by_node"}},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.collectives.all_reduce != core::collective::Algorithm::two_level) return std::nullopt;
             const std::int64_t local = replicas_in_node(e), dp = e.configuration.strategy.replicas();
             if (local > 1 && dp % local == 0 && dp / local > 1) return std::nullopt;
             return fmt::format("dp {}, members in a node {}", dp, local);
           }),
  };
}

std::vector<Rule> attention_rules() {
  return {
      rule("latent_wanted", "model.attention", "query_rank, kv_rank, rotary_dim and value_dim need attention latent",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (m.is_latent() || (m.query_rank == 0 && m.kv_rank == 0 && m.rotary_dim == 0 && m.value_dim == 0))
               return std::nullopt;
             return "attention multi_head";
           }),
      rule("latent_attention", "model.attention",
           "attention latent needs kv_rank and as many kv_heads as heads, and has no query_key_norm",
           {"DeepSeek-AI 2024 (DeepSeek-V2), section 2.1: every head has keys and values of its own"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (!m.is_latent() || (m.kv_rank > 0 && m.kv() == m.heads && !m.query_key_norm)) return std::nullopt;
             return fmt::format("kv_rank {}, kv_heads {}", m.kv_rank, m.kv());
           }),
      rule("window_wanted", "model.window_every", "window_every needs a window", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (m.window > 0 || m.window_every == 1) return std::nullopt;
             return fmt::format("window_every {}", m.window_every);
           }),
  };
}

/// The topology without faults must fit the cluster; then the faults must fit the topology.
Rule graph_rule(std::string name, std::string reason, std::string key, bool with_faults,
                std::vector<std::string> prerequisites) {
  return {std::move(name),
          std::move(reason),
          std::move(key),
          [with_faults](const ExperimentConfig& config, GraphCache& graphs) -> Violation {
            if (with_faults && config.faults.fabric_is_intact()) return std::nullopt;
            try {
              if (with_faults || config.faults.fabric_is_intact()) {
                graphs.get(config);
              } else {
                ExperimentConfig whole = config;
                whole.faults = {};
                graphs.get(whole);
              }
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          },
          false,
          kConstruction,
          std::move(prerequisites)};
}

Rule lossless_rule() {
  return {
      "lossless",
      "a buffer must hold what is on its way when a pause takes effect",
      "transport",
      [](const ExperimentConfig& config, GraphCache& graphs) -> Violation {
        try {
          core::network::check_pfc_headroom(*graphs.get(config), config.configuration.transport);
          return std::nullopt;
        } catch (const core::InputError& error) {
          return error.what();
        }
      },
      false,
      kPfc,
      {"gpus_at_most", "node_in_scale_up_domain", "topology_fits", "faults_fit", "step_transport", "pause_thresholds"}};
}

/// Cached results of collectives and episodes come from the engine for pinned paths, whose state can be saved.
Rule step_transport_rule() {
  Rule result = rule("step_transport", "transport",
                     "steps take pinned paths (routing destination_mod_k or ecmp_hash), coalesced acks and a lossless "
                     "fabric; `manyworlds net` takes the others too",
                     {"by construction (docs/model/sharing.md: only the engine for pinned paths saves its state)"},
                     [](const ExperimentConfig& e) -> Violation {
                       std::string why = core::network::per_packet_reason(e.configuration.transport);
                       return why.empty() ? std::nullopt : Violation(std::move(why));
                     });
  result.steps_only = true;
  return result;
}

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (auto part : {machine_rules(), mixed_machine_rules()})
    for (Rule& one : part) all.push_back(std::move(one));
  for (auto part : {precision_rules(), model_rules(), stage_rules(), attention_rules(), layout_rules(), expert_rules(),
                    routing_rules(), overlap_rules(), activation_rules()})
    for (Rule& one : part) {
      one.steps_only = true;
      all.push_back(std::move(one));
    }
  all.push_back(step_transport_rule());
  all.push_back(graph_rule("topology_fits", "the topology must fit the cluster", "topology", false,
                           {"gpus_at_most", "node_in_scale_up_domain"}));
  all.push_back(graph_rule("faults_fit", "faults must name cables and leave all GPUs joined", "faults", true,
                           {"gpus_at_most", "node_in_scale_up_domain", "topology_fits"}));
  all.push_back(lossless_rule());
  for (Rule& one : cost_rules()) {
    one.steps_only = true;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Rule rule(std::string name, std::string key, std::string reason, RuleSource source, ConfigCheck check) {
  return {std::move(name),
          std::move(reason),
          std::move(key),
          [check = std::move(check)](const ExperimentConfig& config, GraphCache&) { return check(config); },
          false,
          std::move(source.text),
          std::move(source.prerequisites)};
}

Violation check_divisible(const char* whole_name, std::int64_t whole, const char* part_name, std::int64_t part) {
  if (whole % part == 0) return std::nullopt;
  return fmt::format("{} {}, {} {}", whole_name, whole, part_name, part);
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = all_rules();
  return table;
}

std::optional<RuleViolation> find_violation(const ExperimentConfig& config, GraphCache& graphs, Scope scope) {
  for (const Rule& one : rules()) {
    if (one.steps_only && scope != Scope::step) continue;
    if (const Violation values = one.check(config, graphs))
      return RuleViolation{one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values};
  }
  return std::nullopt;
}

RuleViolations find_violations(const ExperimentConfig& config, GraphCache& graphs, Scope scope) {
  RuleViolations result;
  std::set<std::string> failed_or_skipped;  // violated or skipped
  for (const Rule& one : rules()) {
    if (one.steps_only && scope != Scope::step) continue;
    const auto& needs = one.prerequisites;
    if (std::any_of(needs.begin(), needs.end(),
                    [&](const std::string& rule) { return failed_or_skipped.count(rule) > 0; })) {
      result.skipped.push_back(one.name);
      failed_or_skipped.insert(one.name);
    } else if (const Violation values = one.check(config, graphs)) {
      result.broken.push_back({one.name, one.key, fmt::format("{}: {}", one.reason, *values), one.source, *values});
      failed_or_skipped.insert(one.name);
    }
  }
  return result;
}

}  // namespace manyworlds::experiments
