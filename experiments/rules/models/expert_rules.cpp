#include "experiments/rules/models/expert_rules.hpp"

#include <algorithm>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/group_limits.hpp"
#include "experiments/key_contents/expert_routing.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::workload::Dispatcher;
using core::workload::ExpertGemm;

/// Rules about how experts divide over ranks.
std::vector<Rule> placement_rules() {
  return {
      rule("experts_wanted", "model.experts",
           "experts_per_token, expert_ffn_hidden, shared_ffn_hidden, dense_layers, ep and etp need experts; ep may be "
           "that "
           "of embedding tables",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             const auto& s = e.configuration.strategy;
             if (m.has_experts() || (m.experts_per_token == 1 && m.expert_ffn_hidden == 0 && m.shared_ffn_hidden == 0 &&
                                     m.dense_layers == 0 && (s.ep == 1 || core::workload::has_tables(m)) && s.etp == 1))
               return std::nullopt;
             return "experts 0";
           }),
      rule("experts_per_token_at_most", "model.experts_per_token", "experts_per_token must be at most experts",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (!m.has_experts() || m.experts_per_token <= m.experts) return std::nullopt;
             return fmt::format("experts_per_token {}, experts {}", m.experts_per_token, m.experts);
           }),
      rule("dense_layers_at_most", "model.dense_layers", "dense_layers must be fewer than layers", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (m.dense_layers < m.layers) return std::nullopt;
             return fmt::format("dense_layers {}, layers {}", m.dense_layers, m.layers);
           }),
      rule("experts_by_ep", "strategy.ep", "experts must be a multiple of ep", {kArguments},
           [](const ExperimentConfig& e) {
             return check_divisible("experts", e.configuration.model.experts, "ep", e.configuration.strategy.ep);
           }),
      rule("tp_by_etp", "strategy.etp", "tp must be a multiple of etp",
           {"by construction; a group of Megatron-LM may span tensor-parallel groups, which is not built"},
           [](const ExperimentConfig& e) {
             return check_divisible("tp", e.configuration.strategy.tp, "etp", e.configuration.strategy.etp);
           }),
      rule("stage_by_ep", "strategy.ep", "the ranks of a stage, tp x cp x dp, must be a multiple of ep x etp",
           {"Megatron-LM, core/parallel_state.py, initialize_model_parallel()", {"gpus_by_tp_pp"}},
           [](const ExperimentConfig& e) {
             const auto& s = e.configuration.strategy;
             return check_divisible("tp x cp x dp", s.tp * s.cp * s.dp, "ep x etp", s.ep * s.etp);
           }),
      rule("expert_widths_by_tp", "strategy.tp",
           "expert_ffn_hidden must be a multiple of etp, and shared_ffn_hidden of tp", {kDivide},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             const auto& s = e.configuration.strategy;
             if (!m.has_experts()) return std::nullopt;
             if (const Violation own = check_divisible("expert_ffn_hidden", m.expert_ffn(), "etp", s.etp)) return own;
             return check_divisible("shared_ffn_hidden", m.shared_ffn_hidden, "tp", s.tp);
           }),
      rule("experts_need_sequence_parallel", "strategy.sequence_parallel",
           "with tp > 1 experts need sequence_parallel, but in generation: each rank routes its own tokens",
           {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!e.configuration.model.has_experts() || s.tp == 1 || s.sequence_parallel) return std::nullopt;
             if (core::workload::is_generation(e.configuration.model)) return std::nullopt;
             return fmt::format("tp {}", s.tp);
           }),
  };
}

/// Rules about routers that first choose groups of experts.
std::vector<Rule> group_rules() {
  const std::string group_limits = fmt::format("{}: moe_router_num_groups, moe_router_group_topk", kTransformerConfig);
  return {
      rule("groups_wanted", "model.expert_groups", "expert_groups and groups_per_token need experts", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (m.has_experts() || (m.expert_groups == 1 && m.groups_per_token == 0)) return std::nullopt;
             return "experts 0";
           }),
      rule("experts_by_groups", "model.expert_groups", "experts must be a multiple of expert_groups", {group_limits},
           [](const ExperimentConfig& e) {
             const auto& m = e.configuration.model;
             return check_divisible("experts", m.experts, "expert_groups", m.expert_groups);
           }),
      rule("groups_per_token_at_most", "model.groups_per_token",
           "groups_per_token must be at most expert_groups: change both together, as expert_groups 1 with "
           "groups_per_token 0, which limits nothing",
           {group_limits},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (m.groups_per_token <= m.expert_groups) return std::nullopt;
             return fmt::format("groups_per_token {}, expert_groups {}", m.groups_per_token, m.expert_groups);
           }),
      rule("experts_in_groups", "model.groups_per_token",
           "experts_per_token must be at most the experts of groups_per_token groups",
           {"DeepSeek-V3 (arXiv 2412.19437), section 2.1.2: a token's experts are in the groups chosen for it"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& m = e.configuration.model;
             if (!core::workload::limits_groups(m)) return std::nullopt;
             const std::int64_t reachable = m.experts / m.expert_groups * m.groups_per_token;
             if (m.experts_per_token <= reachable) return std::nullopt;
             return fmt::format("experts_per_token {}, {} experts in {} groups", m.experts_per_token, reachable,
                                m.groups_per_token);
           }),
  };
}

}  // namespace

std::vector<Rule> expert_rules() {
  std::vector<Rule> all = placement_rules();
  for (Rule& one : group_rules()) all.push_back(std::move(one));
  return all;
}

/// Rules about tokens and their experts, beyond the number of experts.
std::vector<Rule> routing_rules() {
  return {
      rule(
          "routing_fits", "routing",
          fmt::format("routing other than balanced needs experts, {} of all layers together at most, and of a measured "
                      "table all of them, none with more tokens than can go there",
                      kMaxExpertLoads),
          {kConstruction},
          [](const ExperimentConfig& e) -> Violation {
            return e.routing_error.empty() ? std::nullopt : Violation(e.routing_error);
          }),
      rule("routing_by_all_to_all", "strategy.stack.dispatcher",
           "routing other than balanced, and capacity_factor, need dispatcher all_to_all: how often experts of one "
           "token share a rank no load tells",
           {"by construction: a load of experts does not tell pairs of them"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.stack.dispatcher == Dispatcher::all_to_all) return std::nullopt;
             if (!e.configuration.model.routing && s.capacity_factor == 0) return std::nullopt;
             return fmt::format("dispatcher {}, capacity_factor {}",
                                s.stack.dispatcher == Dispatcher::deepep ? "deepep" : "hybrid_ep", s.capacity_factor);
           }),
      rule("expert_keys_wanted", "strategy", "capacity_factor, expert_recompute_tokens and hot_experts need experts",
           {kArguments},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (e.configuration.model.has_experts()) return std::nullopt;
             if (s.capacity_factor == 0 && s.expert_recompute_tokens == 0 && !s.hot_experts) return std::nullopt;
             return "experts 0";
           }),
      rule("capacity_wanted", "strategy.capacity_factor",
           "pad_to_capacity and token_drop position need a capacity_factor (Megatron-LM, arguments.py)",
           {kTransformerConfig},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.capacity_factor > 0) return std::nullopt;
             if (!s.pad_to_capacity && s.token_drop == core::workload::TokenDrop::probs) return std::nullopt;
             return "capacity_factor 0";
           }),
      rule("batched_experts", "strategy.expert_gemm",
           "expert_gemm batched needs pad_to_capacity: a batched GEMM takes as many rows of every expert",
           {"by construction: torch.bmm takes matrices of one shape"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.expert_gemm != ExpertGemm::batched || s.pad_to_capacity) return std::nullopt;
             return "pad_to_capacity false";
           }),
      rule("expert_recompute_beside", "strategy.expert_recompute_tokens",
           "expert_recompute_tokens needs recompute none or selective: full recomputes everything", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (s.expert_recompute_tokens == 0 || s.recompute != core::workload::Recompute::full) return std::nullopt;
             return "recompute full";
           }),
      rule("hot_experts_fit", "strategy.hot_experts",
           "hot_experts needs ep > 1, etp 1, no pad_to_capacity, and hot_expert_tflops and hot_expert_gbps above 0",
           {"He et al. 2022 (FasterMoE), section 4.2, and fastmoe's shadow_policy.py"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& s = e.configuration.strategy;
             if (!s.hot_experts) return std::nullopt;
             if (s.ep > 1 && s.etp == 1 && !s.pad_to_capacity && s.hot_expert_tflops > 0 && s.hot_expert_gbps > 0)
               return std::nullopt;
             return fmt::format("ep {}, etp {}, pad_to_capacity {}, hot_expert_tflops {}, hot_expert_gbps {}", s.ep,
                                s.etp, s.pad_to_capacity, s.hot_expert_tflops, s.hot_expert_gbps);
           }),
  };
}

Violation split_expert_passes(const core::workload::Strategy& strategy) {
  if (strategy.hot_experts) return "hot_experts true";
  if (strategy.stack.overlap_shared_expert) return "overlap_shared_expert true";
  return strategy.stack.delay_expert_weights ? Violation("delay_expert_weights true") : std::nullopt;
}

}  // namespace manyworlds::experiments
