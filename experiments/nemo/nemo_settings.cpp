// Keys of NeMo's YAML: NVIDIA/NeMo-Framework-Launcher @26e42fa, launcher_scripts/conf/training, for the first version;
// NVIDIA-NeMo/Megatron-Bridge @067f987, training/config.py and the run_config.yaml that it writes, for later ones.
#include "experiments/nemo/settings.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr const char *kInverted = "True=- 1=- False=True 0=True", *kFalse = "without: given";

std::vector<KnownName> first_version() {
  return {
      {"model.encoder_seq_length", "seq-length"},
      {"model.data.seq_length", "seq-length"},
      {"model.data.train_ds.max_seq_length", "seq-length", "samples are taken to be as long"},
      {"model.bias", "disable-bias-linear", kFalse, kInverted},
      {"model.qkv_bias", "add-qkv-bias"},
      {"model.max_position_embeddings", "max-position-embeddings"},
      {"model.rotary_percentage", "rotary-percent"},
      {"model.seq_len_interpolation_factor", "rotary-seq-len-interpolation-factor"},
      {"model.scale_positional_embedding", "use-rope-scaling"},
      {"model.normalization", "normalization", "",
       "rmsnorm=RMSNorm RMSNorm=RMSNorm layernorm=LayerNorm layernorm1p=LayerNorm LayerNorm=LayerNorm"},
      {"model.share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", kFalse, kInverted},
      {"model.num_moe_experts", "num-experts"},
      {"model.override_vocab_size", "vocab-size"},
      {"model.tokenizer.vocab_size", "vocab-size"},
      {"model.virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
      {"model.activations_checkpoint_granularity", "recompute-granularity"},
      {"model.activations_checkpoint_method", "recompute-method"},
      {"model.activations_checkpoint_num_layers", "recompute-num-layers"},
      {"model.activations_checkpoint_recompute_modules", "recompute-modules"},
      {"model.apply_rope_fusion", "no-rope-fusion", kFalse, kInverted},
      {"model.bias_dropout_add_fusion", "no-bias-dropout-fusion", kFalse, kInverted},
      {"model.ub_tp_comm_overlap", "tp-comm-overlap"},
      {"model.overlap_p2p_comm", "no-overlap-p2p-communication", kFalse, kInverted},
      {"model.transformer_engine", "transformer-impl", "", "True=transformer_engine False=local"},
      {"model.use_flash_attention", "use-flash-attn"},
      {"model.sharp", "use-sharp", "refused if true"},
      {"model.optim.name", "use-distributed-optimizer", "",
       "mcore_distributed_optim=True distributed_fused_adam=True fused_adam=- adam=- adamw=-"},
      {"model.optim.overlap_grad_sync", "overlap-grad-reduce"},
      {"model.optim.overlap_grad_reduce", "overlap-grad-reduce"},
      {"model.optim.overlap_param_sync", "overlap-param-gather"},
      {"model.optim.overlap_param_gather", "overlap-param-gather"},
      {"model.optim.grad_sync_dtype", "grad-reduce-in-bf16", "", "bf16=True fp32=- None=-"},
      {"model.optim.ddp_bucket_size", "ddp-bucket-size"},
      {"model.optim.bucket_size", "ddp-bucket-size"},
      {"model.optim.use_distributed_optimizer", "use-distributed-optimizer"},
      {"model.optim.num_distributed_optimizer_instances", "num-distributed-optimizer-instances"},
  };
}

std::vector<KnownName> later_versions() {
  return {
      {"data.seq_length", "seq-length"},
      {"data.global_batch_size", "global-batch-size"},
      {"data.micro_batch_size", "micro-batch-size"},
      {"dataset.seq_length", "seq-length"},
      {"dataset.sequence_length", "seq-length"},
      {"train.global_batch_size", "global-batch-size"},
      {"train.micro_batch_size", "micro-batch-size"},
      {"tokenizer.vocab_size", "vocab-size"},
      {"tokenizer.tokenizer_type", "tokenizer-type"},
      {"tokenizer.tokenizer_model", "tokenizer-model"},
      {"model.cp_comm_type", "cp-comm-type"},
      {"model.gated_linear_unit", "swiglu"},
      {"model.fp8", "fp8-format", "", "True=hybrid hybrid=hybrid e4m3=e4m3 False=- None=-"},
      {"model.fp4", "fp4-format", "", "True=e2m1 e2m1=e2m1 nvfp4=e2m1 False=- None=-"},
      {"model.bias_activation_fusion", "no-bias-swiglu-fusion", "false: given, or no-bias-gelu-fusion", kInverted},
      {"optimizer.use_distributed_optimizer", "use-distributed-optimizer"},
      {"optim.use_distributed_optimizer", "use-distributed-optimizer"},
      {"optimizer.optimizer", "optimizer", "refused unless adam"},
      {"optim.optimizer", "optimizer", "refused unless adam"},
      {"ddp.use_distributed_optimizer", "use-distributed-optimizer"},
      {"ddp.overlap_grad_reduce", "overlap-grad-reduce"},
      {"ddp.overlap_param_gather", "overlap-param-gather"},
      {"ddp.grad_reduce_in_fp32", "grad-reduce-in-bf16", kFalse, kInverted},
      {"ddp.bucket_size", "ddp-bucket-size"},
      {"ddp.use_megatron_fsdp", "use-megatron-fsdp"},
      {"ddp.data_parallel_sharding_strategy", "data-parallel-sharding-strategy"},
      {"ddp.num_distributed_optimizer_instances", "num-distributed-optimizer-instances"},
      {"comm_overlap.tp_comm_overlap", "tp-comm-overlap"},
      {"comm_overlap.overlap_p2p_comm", "no-overlap-p2p-communication", kFalse, kInverted},
      {"comm_overlap.overlap_grad_reduce", "overlap-grad-reduce"},
      {"comm_overlap.overlap_param_gather", "overlap-param-gather"},
      {"comm_overlap.overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm"},
      {"comm_overlap.delay_wgrad_compute", "delay-wgrad-compute"},
      {"trainer.strategy.ddp.grad_reduce_in_fp32", "grad-reduce-in-bf16", kFalse, kInverted},
      {"trainer.strategy.ddp.bucket_size", "ddp-bucket-size"},
      {"trainer.plugins.grad_reduce_in_fp32", "grad-reduce-in-bf16", kFalse, kInverted},
      {"trainer.plugins.fp8", "fp8-format", "", "hybrid=hybrid e4m3=e4m3 None=- False=-"},
      {"trainer.plugins.fp8_recipe", "fp8-recipe"},
      {"model.config.gated_linear_unit", "swiglu"},
      {"mixed_precision.fp8", "fp8-format", "", "hybrid=hybrid e4m3=e4m3 None=- False=-"},
      {"mixed_precision.fp8_recipe", "fp8-recipe"},
      {"mixed_precision.fp4", "fp4-format", "", "e2m1=e2m1 nvfp4=e2m1 None=- False=-"},
      {"mixed_precision.grad_reduce_in_fp32", "grad-reduce-in-bf16", kFalse, kInverted},
      {"mixed_precision.bf16", "bf16"},
      {"mixed_precision.fp16", "fp16"},
  };
}

std::vector<KnownName> all_settings() {
  std::vector<KnownName> all = first_version();
  for (KnownName& one : later_versions()) all.push_back(std::move(one));
  return all;
}

}  // namespace

const Dialect& nemo_dialect() {
  static const Dialect dialect{
      {"NeMo",
       NameKind::setting,
       all_settings(),
       {
           {Fate::irrelevant, "read by itself: the GPUs, the precision, the activation function and the tokenizer",
            "trainer.num_nodes trainer.devices trainer.precision trainer.plugins.precision model.precision "
            "model.activation "
            "model.activation_func mixed_precision model.tokenizer.type model.tokenizer.library"},
           {Fate::irrelevant, "the run around the steps: its length, its log, its checkpoints and its data",
            "run.* name restore_from_path exp_manager.* hydra.* defaults env_vars.* log.* logger.* resume.* "
            "checkpoint.* rng.* validation.* profiling.* s3_checkpointing.* scheduler.* dist.* rerun_state_machine.* "
            "straggler.* nvrx_straggler.* ft.* inprocess_restart.* tensor_inspect.* "
            "trainer.accelerator trainer.logger trainer.enable_* trainer.use_distributed_sampler trainer.max_* "
            "trainer.log_* trainer.val_* trainer.limit_* trainer.gradient_clip_* trainer.benchmark "
            "trainer.num_sanity_val_steps trainer.check_val_every_n_epoch trainer.replace_sampler_ddp "
            "trainer.callbacks* trainer.plugins* trainer.sync_batchnorm trainer.strategy* trainer.accumulate_grad_* "
            "train.* data.* dataset.* tokenizer.* optimizer.* optim.* model.data.* model.tokenizer.* "
            "model.optim.lr model.optim.weight_decay model.optim.betas model.optim.sched.* model.optim.eps "
            "model.optim.lock_timeout model.optim.dtype model.nsys_profile.* model.memory_profile* "
            "model.resume_from_checkpoint model.answer_only_loss model.save_nemo_* model.restore* model.seed "
            "model.dist_ckpt_* model.megatron_timer* "
            "model.enable_megatron_timers model.gc_interval model.apex_transformer_log_level model.name "
            "model.mcore_gpt model.megatron_amp_O2 model.target model._target_ *_target_ model.custom.* "
            "model.generation_config model.hf_model_id model.perform_initialization model.should_pad_vocab "
            "model.scatter_embedding_sequence_parallel model.timers model.finalize_model_grads_func "
            "model.no_sync_func model.grad_*_func model.param_sync_func model.inference* model.parallel_output "
            "model.transformer_layer_spec* model.init_method* model.output_layer_init_method* model.use_kitchen* "
            "model.fp16_lm_cross_entropy=False model.clone_scatter_output_in_embedding"},
           {Fate::irrelevant, "scales, epsilons and initial values: the same kernels",
            "model.use_scaled_init_method model.ffn_dropout "
            "model.do_layer_norm_weight_decay model.pre_process model.post_process model.headscale "
            "model.transformer_block_type model.normalize_attention_scores "
            "model.attention_type "
            "model.rotary_scaling* model.mcore_customization_config.* model.native_amp_* model.precision_* "
            "model.reduce_amax model.tp_only_amax_red model.fp8_e4m3 model.fp8_hybrid model.fp8_wgrad "
            "model.use_te_rng_tracker model.grad_div_ar_fusion model.grad_allreduce_chunk_size_mb "
            "model.gradient_as_bucket_view model.get_attention_mask_from_fusion model.deteministic_mode "
            "model.optim.contiguous_* model.optim.bucket_cap_mb model.optim.nccl_ub model.optim.align_param_gather "
            "model.validation_param_sync_overlap  "
            "model.batch_p2p_comm model.sync_batch_comm model.optim.check_for_nan_in_grad model.use_emha "
            "model.fsdp_* model.bf16 model.fp16 model.params_dtype model.pipeline_dtype model.autocast* "
            "model.enable_autocast model.deallocate_pipeline_outputs model.variable_seq_lengths "
            "model.attention_dropout_* model.softmax_* model.num_microbatches_with_partial_activation_checkpoints "
            "model.seq_len_* model.rope_scaling* model.activation_func_fp8_input_store model.window_attn_* "
            "model.hidden_act model.barrier_with_L1_time model.cuda_graph_retain* "
            "mixed_precision.* ddp.* comm_overlap.*"},
           {Fate::noted, "which chunks and which GEMMs overlap is as overlap_tensor has it",
            "model.ub_tp_comm_overlap_cfg* comm_overlap.tp_comm_overlap_cfg*"},
           {Fate::noted, "parameters are gathered in 16 bits here",
            "model.fp8_params model.optim.fp8_param_gather mixed_precision.fp8_param_gather "
            "mixed_precision.fp8_param"},
           {Fate::noted, "attention runs in 16 bits here", "model.fp8_dot_product_attention"},
           {Fate::noted, "the batch that it grows to is taken", "model.rampup_batch_size train.rampup_batch_size"},
           {Fate::refused, "only some micro-batches or stages are recomputed",
            "model.num_micro_batches_with_partial_activation_checkpoints "
            "model.activations_checkpoint_layers_per_pipeline"},
           {Fate::irrelevant, "read by itself: model.lora_rank and model.lora_weights",
            "peft peft._target_ peft.dim peft.target_modules model.peft.peft_scheme "
            "model.peft.lora_tuning.adapter_dim model.peft.lora_tuning.target_modules "
            "model.peft.lora_tuning.variant"},
           {Fate::irrelevant, "scales and initial values of pairs of low rank, and what other schemes have",
            "peft.alpha peft.lora_A_init_method peft.lora_B_init_method peft.dropout_position peft.network_alpha "
            "peft._partial_ peft._call_ model.peft.restore_from_* model.peft.adapter_tuning.* model.peft.p_tuning.* "
            "model.peft.ia3_tuning.* model.peft.selective_tuning.* model.peft.lora_tuning.alpha "
            "model.peft.lora_tuning.column_init_method model.peft.lora_tuning.row_init_method "
            "model.peft.lora_tuning.dropout_position model.peft.lora_tuning.position_embedding_strategy"},
           {Fate::noted, "pairs of low rank drop no elements here",
            "peft.dropout=0.0 model.peft.lora_tuning.adapter_dropout=0.0 peft.dropout_recompute"},
           {Fate::noted, "outputs of pairs of low rank are gathered, and their inputs kept",
            "peft.a2a_experimental model.peft.lora_tuning.a2a_experimental peft.sequence_parallel_input_regather"},
           {Fate::refused, "pairs of low rank of this form are not modelled",
            "peft.exclude_modules peft.lora_dtype=torch.bfloat16/bfloat16/bf16 peft.normalize_moe_lora "
            "peft.experts_shared_outer_loras peft.share_expert_adapters=True model.peft.lora_tuning.layer_selection "
            "model.peft.lora_tuning.weight_tying"},
           {Fate::refused, "what is trained beside frozen weights is not read by this name",
            "peft* model.peft.* model.lora*"},
           {Fate::refused, "PyTorch's FSDP with Megatron-Core's layers is not modelled", "model.fsdp"},
           {Fate::refused, "offloading of whole layers is not modelled",
            "model.cpu_offloading model.cpu_offloading_num_layers=0 model.cpu_offloading_*=True/False"},
           {Fate::refused, "it must be 1: samples of a step are those of the global batch",
            "trainer.accumulate_grad_batches=1"},
       }},
      {"model.", "model.optim.", "model.config.", "trainer.strategy.", "trainer.strategy.ddp.", "train.", "ddp.",
       "optimizer.", "optim.", "comm_overlap.", "mixed_precision."}};
  return dialect;
}

}  // namespace manyworlds::experiments::jobs
