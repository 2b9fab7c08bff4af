#include "experiments/rules/layouts/layout_rules.hpp"

#include <algorithm>

#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/operators/key_heads.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

using core::step::Placement;
using core::workload::Model;

/// Returns how many members of a data-parallel group are in one node: context-parallel ranks first, then replicas.
std::int64_t replicas_in_node(const ExperimentConfig& config) {
  const auto& result = config.configuration;
  const auto& s = result.strategy;
  const std::int64_t replica_stride = result.placement == Placement::tp_dp_pp ? 1 : s.pp;  // in groups of tp x cp ranks
  const std::int64_t tensor_groups = std::max<std::int64_t>(result.gpus_per_node / s.tp, 1);
  if (tensor_groups <= s.cp) return tensor_groups;
  return s.cp * std::clamp<std::int64_t>(tensor_groups / (s.cp * replica_stride), 1, std::max<std::int64_t>(s.dp, 1));
}

/// Ranks that the heads of attention are sharded over.
std::int64_t attention_ranks(const ExperimentConfig& config) {
  return core::workload::weight_ranks(config.configuration.strategy, core::workload::data_part::attention);
}

/// Whether attention is not left out of the model's architecture altogether.
bool attends(const ExperimentConfig& config) {
  return config.configuration.model.heads > 0;
}

}  // namespace

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
             if (e.configuration.model.head_dim > 0 || !attends(e)) return std::nullopt;
             return check_divisible("hidden", e.configuration.model.hidden, "heads", e.configuration.model.heads);
           }),
      rule("heads_by_kv_heads", "model.kv_heads", "heads must be a multiple of kv_heads",
           {"Ainslie et al. 2023 (GQA), section 2.2: every group has as many query heads"},
           [](const ExperimentConfig& e) -> Violation {
             if (!attends(e)) return std::nullopt;
             return check_divisible("heads", e.configuration.model.heads, "kv_heads", e.configuration.model.kv());
           }),
      rule("heads_by_tp", "strategy.tp", "heads must be a multiple of tp", {kTransformerConfig},
           [](const ExperimentConfig& e) {
             return check_divisible("heads", e.configuration.model.heads, "tp", attention_ranks(e));
           }),
      rule(
          "kv_heads_by_tp", "strategy.tp",
          "kv_heads must be a multiple of tp, or tp of kv_heads with projection_fusion and without recompute per_op in "
          "attention that does not generate: a head is then shared by several ranks",
          {kTransformerConfig},
          [](const ExperimentConfig& e) -> Violation {
            const Model& model = e.configuration.model;
            if (!attends(e) || model.architecture) return std::nullopt;
            const std::int64_t tp = attention_ranks(e), node = e.cluster.gpus_per_node;
            std::string violated = core::workload::unshared_key_heads(model, e.configuration.strategy, tp);
            if (violated.empty()) return std::nullopt;
            if (tp > node)
              violated +=
                  fmt::format("; such a tensor-parallel group would leave its node, too: gpus_per_node {}", node);
            return violated;
          }),
      rule("hidden_by_tp", "strategy.tp", "hidden must be a multiple of tp", {kDivide},
           [](const ExperimentConfig& e) {
             return check_divisible("hidden", e.configuration.model.hidden, "tp", e.configuration.strategy.tp);
           }),
      rule("ffn_hidden_by_tp", "strategy.tp", "ffn_hidden must be a multiple of tp", {kDivide},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.model.architecture) return std::nullopt;  // checked by parts_by_ranks
             return check_divisible(
                 "ffn_hidden", e.configuration.model.ffn(), "tp",
                 core::workload::weight_ranks(e.configuration.strategy, core::workload::data_part::feed_forward));
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
             const auto& m = e.configuration.model;
             if (s.zero < 3 || s.stage_copies() == 1 || !core::workload::stages_share_table(m)) return std::nullopt;
             return m.tied_embeddings ? std::string("tied_embeddings true")
                                      : fmt::format("mtp_layers {}", m.mtp_layers);
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
             if (e.configuration.library_of(core::workload::Role::data).all_reduce !=
                 core::collective::Algorithm::two_level)
               return std::nullopt;
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

}  // namespace manyworlds::experiments
