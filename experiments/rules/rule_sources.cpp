// Sources of the rules. For Megatron-LM, the file that refuses the layout is named; "by construction" means that the
// rule follows from the definition of its settings, or that this program does not build the layout, as the reason then
// states.
#include "experiments/rules/rule_sources.hpp"

#include <algorithm>

namespace manyworlds::experiments {
namespace {

constexpr const char* kConstruction = "by construction";
constexpr const char* kArguments = "Megatron-LM, training/arguments.py, validate_args()";
constexpr const char* kDivide = "Megatron-LM, core/tensor_parallel/layers.py: divide() of what ranks are given";
constexpr const char* kTransformerConfig = "Megatron-LM, core/transformer/transformer_config.py, __post_init__()";
constexpr const char* kPfc = "IEEE 802.1Qbb-2011, annex O: buffer needed when a pause is sent";

std::vector<RuleSource> make() {
  return {
      {"gpus_at_most", "limit of this program: room for ranks in its keys"},
      {"node_in_scale_up_domain", kConstruction},
      {"idle_below_board", kConstruction},
      {"pause_thresholds", kPfc},
      {"marking_thresholds", "Zhu et al. 2015 (DCQCN), section 3.1: marking begins at Kmin and is sure at Kmax"},
      {"rate_skipping", kConstruction},
      {"transport_options", "the transport's paper, named in docs/model/network.md"},
      {"hidden_by_heads", kArguments},
      {"heads_by_kv_heads", "Ainslie et al. 2023 (GQA), section 2.2: every group has as many query heads"},
      {"heads_by_tp", kTransformerConfig},
      {"kv_heads_by_tp", kTransformerConfig},
      {"hidden_by_tp", kDivide},
      {"ffn_hidden_by_tp", kDivide},
      {"layers_by_stages", kArguments},
      {"listed_layers", "Megatron-LM, core/transformer/pipeline_parallel_layer_layout.py"},
      {"empty_layers_fit",
       "Megatron-LM, pipeline_parallel_layer_layout.py: stages without layers hold embedding or loss"},
      {"pcie_rate", "PCI Express Base Specification 6.0: 64 GT/s a lane"},
      {"nics_by_gpus", kConstruction},
      {"slow_gpus_fit", kConstruction},
      {"nodes_match", kConstruction},
      {"measured_on_one_kind", kConstruction},
      {"schedule_on_one_kind", kConstruction},
      {"precision_on_gpu", "the GPU's datasheet, named beside cluster.gpu.precisions in the catalog"},
      {"gemms_below_peak", kConstruction},
      {"latent_wanted", kConstruction},
      {"latent_attention", "DeepSeek-AI 2024 (DeepSeek-V2), section 2.1: every head has keys and values of its own"},
      {"window_wanted", kConstruction},
      {"gpus_by_tp_pp", kArguments},
      {"tp_in_node", "Narayanan et al. 2021 (SC21), section 3.2, takeaway 1; other groups are not built"},
      {"batch_by_replicas", "Megatron-LM, core/num_microbatches_calculator.py", {"gpus_by_tp_pp"}},
      {"schedule_file_wanted", kConstruction},
      {"schedule_fits",
       "the schedule's own source, named where it is listed (Megatron-LM, core/pipeline_parallel/schedules.py; Qi et "
       "al. 2024; deepseek-ai/DualPipe)",
       {"gpus_by_tp_pp", "batch_by_replicas"}},
      {"sequence_parallel_needs_tp", kArguments},
      {"sequence_by_cp", "Megatron-LM, training/utils.py, get_batch_on_this_cp_rank(): one piece from each end"},
      {"sequence_by_tp", "Korthikanti et al. 2023, section 4.2.2: the sequence is cut over the tensor-parallel group"},
      {"zero_3_on_mirrored", kConstruction},
      {"zero_needs_dp", "Rajbhandari et al. 2020 (ZeRO), section 5: states are cut over replicas", {"gpus_by_tp_pp"}},
      {"zero_group_fits",
       "Zhao et al. 2023 (PyTorch FSDP), section 3.2.2: hybrid sharding, groups of equally many replicas",
       {"gpus_by_tp_pp"}},
      {"overlap_tensor_needs_sequence_parallel", kArguments},
      {"post_validation_alone", "Qi et al. 2024 (Zero Bubble), section 4"},
      {"overlap_parameters_needs_shards", kArguments},
      {"two_level_needs_levels", kConstruction, {"gpus_by_tp_pp", "tp_in_node"}},
      {"experts_wanted", kConstruction},
      {"experts_per_token_at_most", kConstruction},
      {"dense_layers_at_most", kConstruction},
      {"experts_by_ep", kArguments},
      {"tp_by_etp", "by construction; a group of Megatron-LM may span tensor-parallel groups, which is not built"},
      {"stage_by_ep", "Megatron-LM, core/parallel_state.py, initialize_model_parallel()", {"gpus_by_tp_pp"}},
      {"expert_widths_by_tp", kDivide},
      {"experts_need_sequence_parallel", kArguments},
      {"routing_fits", kConstruction},
      {"routing_by_all_to_all", "by construction: a load of experts does not tell pairs of them"},
      {"expert_keys_wanted", kArguments},
      {"capacity_wanted", kTransformerConfig},
      {"batched_experts", "by construction: torch.bmm takes matrices of one shape"},
      {"expert_recompute_beside", kConstruction},
      {"hot_experts_fit", "He et al. 2022 (FasterMoE), section 4.2, and fastmoe's shadow_policy.py"},
      {"tensor_chunks_wanted", kConstruction},
      {"tokens_by_chunks", "Transformer Engine, module/base.py, initialize_ub(): a buffer is cut into equal chunks"},
      {"cp_comm_wanted", kConstruction},
      {"heads_by_cp", "Jacobs et al. 2023 (DeepSpeed-Ulysses), section 3.1: heads are shared out over the group"},
      {"communication_sms_wanted", kConstruction},
      {"units_for_kernels", kConstruction, {"gpus_by_tp_pp"}},
      {"recompute_modules_beside", kTransformerConfig},
      {"recompute_modules_are_there", kTransformerConfig},
      {"recompute_where", kArguments},
      {"offload_modules_are_there", kTransformerConfig},
      {"offload_where", kConstruction},
      {"offload_alone",
       "by construction: copies go between passes that run one after the other",
       {"schedule_file_wanted", "schedule_fits"}},
      {"expert_overlap_fits", kTransformerConfig},
      {"step_transport", "by construction (docs/model/sharing.md: only the engine for pinned paths saves its state)"},
      {"topology_fits", kConstruction, {"gpus_at_most", "node_in_scale_up_domain"}},
      {"faults_fit", kConstruction, {"gpus_at_most", "node_in_scale_up_domain", "topology_fits"}},
      {"lossless",
       kPfc,
       {"gpus_at_most", "node_in_scale_up_domain", "topology_fits", "faults_fit", "step_transport",
        "pause_thresholds"}},
      {"one_price", kConstruction},
      {"purchase_is_whole", kConstruction},
      {"one_mtbf", kConstruction},
      {"failures_need_restart", kConstruction},
      {"checkpoints_need_failures", "Young 1974: the interval follows from the time between failures"},
      {"checkpoints_cost", kConstruction},
      {"storage_keeps_up", "Mohan et al. 2021 (CheckFreq), section 4: one checkpoint is on its way at a time"},
      {"replicas_at_most", "Wang et al. 2023 (Gemini), section 4: copies are in as many machines"},
  };
}

}  // namespace

const std::vector<RuleSource>& rule_sources() {
  static const std::vector<RuleSource> all = make();
  return all;
}

const RuleSource& source_of(std::string_view rule) {
  static const RuleSource others{"", kConstruction, {"gpus_by_tp_pp"}};
  const auto& all = rule_sources();
  const auto found = std::find_if(all.begin(), all.end(), [&](const RuleSource& one) { return one.name == rule; });
  return found == all.end() ? others : *found;
}

}  // namespace manyworlds::experiments
