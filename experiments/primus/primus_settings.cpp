// Names of Primus that Megatron-LM does not have: AMD-AGI/Primus @fd1eeab, primus/configs/modules/megatron and
// primus/configs/models/megatron.
#include "experiments/primus/primus.hpp"

namespace manyworlds::experiments::jobs {

const Dialect& primus_dialect() {
  static const Dialect dialect{
      {"Primus",
       NameKind::setting,
       {
           {"use_turbo_deepep", "moe-enable-deepep", "tokens go by DeepEP, with enable_primus_turbo"},
           {"turbo_deepep_num_cu", "moe-deepep-num-sms"},
           {"moe_use_fused_router_with_aux_score", "moe-router-fusion"},
       },
       {
           {Fate::irrelevant, "the run around the steps: its log, its profile, its checkpoints and its data",
            "stderr_sink_level file_sink_level log_avg_* disable_tensorboard disable_wandb disable_mlflow mlflow_* "
            "generate_tracelens_report use_rocm_mem_info* auto_continue_train disable_last_saving pp_warmup "
            "dump_pp_data dataloader_mp_context disable_compile_dependencies torch_profiler_* "
            "disable_profiler_activity_cpu profile_memory_iter trainable wall_clock_step_timer hf_path "
            "mock_dataset mock_dataset.* sft_* stage=pretrain/sft enable_packed_sequences=False deprecated_* "
            "use_dist_ckpt_deprecated dist_ckpt_format_deprecated ckpt_fully_parallel_save_deprecated "
            "fully_parallel_save includes empty_cache_interval debug_scheduler_table"},
           {Fate::irrelevant, "scales and tokens beside the kernels",
            "original_max_position_embeddings add_position_embedding tiktoken_special_tokens "
            "disable_primus_topk_router use_deprecated_20241209_moe_layer moe_router_force_load_balancing_type "
            "moe_use_legacy_grouped_gemm no_fp8_weight_transpose_cache disable_delayed_scaling_patches "
            "model_type=gpt bert_binary_head standalone_embedding_stage keep_fp8_transpose_cache_* "
            "encoder_tensor_model_parallel_size encoder_pipeline_model_parallel_size check_for_nan_in_loss "
            "enable_gloo_process_groups enable_one_logger iterations_to_skip "
            "retro_* inference_* grpo_* langrl_* rl_* muon_* retriever_seq_length onnx_safe fp4_param"},
           {Fate::irrelevant, "options of schedules and switches that are off",
            "offload_ops pp_max_mem pp_cost_f pp_cost_b pp_cost_w communication_method enable_zb_runtime "
            "zero_bubble_pipeline_timers_* zero_bubble_max_pending_backward "
            "zero_bubble_adaptive_memory_limit_percentile enable_exactly_numeric_match allow_padding_num_layers "
            "interleave_group_size offload_chunk_num offload_time auto_offload_time offload_overlap_sr "
            "odc_* conv_L_cache conv_bias mxfp4_* weight_deosc_* turbo_mega_moe_precision lb_mini_* fla_cache_dir "
            "enable_optimizer_post_validation pre_communication_optimization data_parallel_replicate_degree=1 "
            "patch_moe_overlap num_seq_splits=1 fused_ce_* torch_compile.*"},
           {Fate::irrelevant, "read by itself: the schedule, and which kernels Primus-Turbo takes",
            "pp_algorithm patch_primus_pipeline patch_zero_bubble enable_zero_bubble zero_bubble_v_schedule "
            "zero_bubble_v_schedule_mem_setup enable_1f1b_v decoder_pipeline_manual_split_list enable_primus_turbo"},
           {Fate::noted, "kernels of Primus-Turbo take as long as Transformer Engine's here",
            "use_turbo_attention use_turbo_gemm use_turbo_grouped_gemm use_turbo_grouped_mlp use_turbo_rms_norm "
            "use_turbo_norm_te_linear use_turbo_fused_act_with_probs use_turbo_permute_padding turbo_*=default "
            "use_turbo_autotune use_turbo_parallel_linear use_turbo_row_parallel_linear "
            "use_turbo_column_parallel_linear use_turbo_layer_norm_column_parallel_linear "
            "enable_turbo_attention_float8 enable_fused_linear_ce"},
           {Fate::refused, "pairs of low rank are not read of Primus's jobs: model.lora_rank is their rank",
            "lora.enabled lora.*=True/None"},
           {Fate::refused, "samples of several lengths are not modelled", "use_packed_attention enable_odc_lb_mini"},
           {Fate::refused, "layers of this form are not modelled",
            "use_sink_attention sink_sliding_window sink_window_even_layers_only=True final_logit_softcapping "
            "attn_logit_softcapping router_logit_softcapping lfm_layer_types use_turbo_mega_moe "
            "fused_padded_mla_attention"},
           {Fate::refused, "the order of ranks or the communication differs from what is simulated",
            "enable_odc use_custom_fsdp cpu_offload offload weight_deosc pipeline_model_parallel_split_rank"},
           {Fate::refused, "layers chosen one by one are not recomputed here", "recompute_layer_ids"},
       }},
      {""}};
  return dialect;
}

}  // namespace manyworlds::experiments::jobs
