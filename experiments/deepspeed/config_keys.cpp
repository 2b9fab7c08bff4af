// Names and defaults are those of deepspeedai/DeepSpeed @edaa722 (deepspeed/runtime/config.py, constants.py,
// precision_config.py, zero/config.py and zero/offload_config.py).
#include "experiments/deepspeed/config_keys.hpp"

namespace manyworlds::experiments::jobs::deepspeed {
namespace {

std::vector<KnownName> mapped_keys() {
  return {
      {"train_batch_size", "strategy.global_batch", "without it micro-batch x accumulation x replicas"},
      {"train_micro_batch_size_per_gpu", "strategy.micro_batch", "without it what the others leave"},
      {"gradient_accumulation_steps", "strategy.micro_batch, strategy.global_batch",
       "without it what the others leave, or 1"},
      {"zero_optimization.stage", "strategy.zero", "0"},
      {"zero_optimization.overlap_comm", "strategy.overlap_grad_reduce",
       "of stages 1 to 3; true for stage 3, else false"},
      {"zero_optimization.reduce_bucket_size", "strategy.bucket_parameters",
       "500,000,000; auto: the square of the hidden size"},
      {"zero_optimization.mics_shard_size", "strategy.zero_group", "of stage 3 (MiCS); -1: all replicas"},
      {"bf16.enabled", "strategy.stack.precision", "bf16; bfloat16 is an earlier name of the section"},
      {"bfloat16.enabled", "strategy.stack.precision", "bf16"},
      {"fp16.enabled", "strategy.stack.precision", "fp16"},
      {"communication_data_type", "strategy.stack.reduce_in_16bit", "fp16 and bf16 true, fp32 false; without it true"},
  };
}

std::vector<NameGroup> other_keys() {
  return {
      {Fate::irrelevant, "how the rate changes, and what is scaled by how much",
       "optimizer.params optimizer.legacy_fusion scheduler scheduler.type scheduler.params gradient_clipping "
       "fp16.loss_scale fp16.loss_scale_window fp16.hysteresis fp16.consecutive_hysteresis fp16.min_loss_scale "
       "fp16.initial_scale_power bf16.check_grad_overflow bfloat16.check_grad_overflow prescale_gradients "
       "gradient_predivide_factor gradient_allreduce_op zero_allow_untested_optimizer zero_force_ds_cpu_optimizer"},
      {Fate::irrelevant, "logs, profiles and checkpoints",
       "steps_per_print wall_clock_breakdown memory_breakdown dump_state log_level tensorboard wandb csv_monitor comet "
       "monitor_config flops_profiler comms_logger autotuning checkpoint nebula timers elasticity.enabled "
       "zero_optimization.stage3_gather_16bit_weights_on_model_save "
       "zero_optimization.stage3_gather_fp16_weights_on_model_save zero_optimization.load_from_fp32_weights "
       "zero_optimization.elastic_checkpoint zero_optimization.pipeline_loading_checkpoint aio"},
      {Fate::irrelevant, "checks and details that cost nothing here",
       "dataloader_drop_last disable_allgather managed_gradient_accumulation communication_data_type_sequence "
       "use_data_before_expert_parallelism zero_optimization.ignore_unused_parameters zero_optimization.legacy_stage1 "
       "zero_optimization.log_trace_cache_warnings zero_optimization.enable_sanity_checks "
       "zero_optimization.override_module_apply zero_optimization.memory_efficient_linear "
       "zero_optimization.use_multi_rank_bucket_allreduce zero_optimization.contiguous_gradients "
       "zero_optimization.save_muon_momentum_buffer_in_memory zero_optimization.cpu_offload_use_pin_memory "
       "zero_optimization.offload_optimizer.buffer_count zero_optimization.offload_optimizer.cpuadam_cores_perc "
       "zero_optimization.offload_optimizer.fast_init zero_optimization.offload_optimizer.nvme_path "
       "zero_optimization.offload_optimizer.pin_memory zero_optimization.offload_optimizer.pipeline_read "
       "zero_optimization.offload_optimizer.pipeline_write zero_optimization.offload_optimizer.ratio "
       "zero_optimization.offload_optimizer.super_offload zero_optimization.offload_param.buffer_count "
       "zero_optimization.offload_param.buffer_size zero_optimization.offload_param.max_in_cpu "
       "zero_optimization.offload_param.nvme_path zero_optimization.offload_param.pin_memory "
       "activation_checkpointing.profile activation_checkpointing.number_checkpoints pipeline"},
      {Fate::noted, "parameters are gathered layer by layer, one layer ahead, and dropped after it",
       "zero_optimization.allgather_bucket_size zero_optimization.sub_group_size "
       "zero_optimization.stage3_prefetch_bucket_size=auto zero_optimization.stage3_param_persistence_threshold=auto "
       "zero_optimization.stage3_model_persistence_threshold=auto zero_optimization.stage3_max_live_parameters=auto "
       "zero_optimization.stage3_max_reuse_distance=auto zero_optimization.stage3_module_granularity_threshold=0 "
       "zero_optimization.stage3_allgather_sequential=false zero_optimization.leaf_module"},
      {Fate::noted, "gradients are reduced in order", "zero_optimization.round_robin_gradients=false"},
      {Fate::noted, "gradients are accumulated in 32 bits here", "data_types.grad_accum_dtype=fp32/auto"},
      {Fate::refused, "only Adam with states in 32 bits is modelled",
       "optimizer.type=Adam/adam/AdamW/adamw/FusedAdam bf16.bf16_master_weights_and_grads=false "
       "bf16.bf16_optimizer_states=false bf16.immediate_grad_update=false fp16.fp16_master_weights_and_grads=false "
       "data_types.optimizer_states"},
      {Fate::refused, "offloading to the host or to disks is not modelled",
       "zero_optimization.offload_optimizer.device=none zero_optimization.offload_param.device=none "
       "zero_optimization.cpu_offload=false zero_optimization.cpu_offload_param=false zero_optimization.zenflow "
       "activation_checkpointing.cpu_checkpointing=false"},
      {Fate::refused, "other collectives than reduce-scatters and all-gathers of all replicas are not modelled",
       "zero_optimization.reduce_scatter=true zero_optimization.allgather_partitions=true "
       "zero_optimization.stage3_use_all_reduce_for_fetch_params=false zero_optimization.zero_hpz_partition_size=1 "
       "zero_optimization.zero_quantized_weights=false zero_optimization.zero_quantized_gradients=false "
       "zero_optimization.zero_quantized_nontrainable_weights=false zero_optimization.zeropp_loco_param "
       "zero_optimization.mics_hierarchical_params_gather=false communication_data_compression"},
      {Fate::refused, "activations that are sharded or copied together are not modelled",
       "activation_checkpointing.partition_activations=false "
       "activation_checkpointing.contiguous_memory_optimization=false "
       "activation_checkpointing.synchronize_checkpoint_boundary=false"},
      {Fate::refused, "another way to 16 bits is not modelled",
       "fp16.auto_cast=false amp.enabled=false amp.opt_level torch_autocast.enabled=false torch_autocast.dtype"},
      {Fate::refused, "steps of changing sizes are not modelled",
       "curriculum_learning.enabled=false curriculum_learning.curriculum_type=seqlen/fixed_linear "
       "progressive_layer_drop.enabled=false data_efficiency.enabled=false"},
      {Fate::irrelevant, "of what is not enabled",
       "curriculum_learning.min_difficulty curriculum_learning.max_difficulty curriculum_learning.schedule_type "
       "curriculum_learning.schedule_config progressive_layer_drop.theta progressive_layer_drop.gamma "
       "torch_autocast.lower_precision_safe_modules eigenvalue"},
      {Fate::refused, "layers, kernels or ranks of this form are not modelled",
       "sparse_attention sparse_gradients=false compression_training quantize_training hybrid_engine "
       "tensor_parallel sequence_parallel_size=1 graph_harvesting=false compile expert_parallel"},
  };
}

}  // namespace

const KnownNames& known_keys() {
  static const KnownNames keys("DeepSpeed", NameKind::key, mapped_keys(), other_keys());
  return keys;
}

}  // namespace manyworlds::experiments::jobs::deepspeed
