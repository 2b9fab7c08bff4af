// Names and defaults are those of pytorch/torchtitan v0.2.2 (torchtitan/config/job_config.py) and of the versions since
// 2024; docs/jobs.md shows the table.
#include "experiments/torchtitan/key_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

struct Renamed {
  std::string_view old, name;
};
constexpr std::array<Renamed, 29> kRenamed{{
    {"training.batch_size", "training.local_batch_size"},
    {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    {"training.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"training.disable_loss_parallel", "parallelism.disable_loss_parallel"},
    {"training.deterministic", "debug.deterministic"},
    {"training.seed", "debug.seed"},
    {"training.debug_moe_force_load_balance", "debug.moe_force_load_balance"},
    {"training.fp8_linear", "float8.enable_float8_linear"},
    {"training.enable_float8_linear", "float8.enable_float8_linear"},
    {"training.warmup_steps", "lr_scheduler.warmup_steps"},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
    {"experimental.context_parallel_rotate_method", "parallelism.context_parallel_rotate_method"},
    {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
    {"experimental.enable_compiled_autograd", "parallelism.enable_compiled_autograd"},
    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    {"experimental.pipeline_parallel_schedule_csv", "parallelism.pipeline_parallel_schedule_csv"},
    {"experimental.pipeline_parallel_split_points", "parallelism.pipeline_parallel_split_points"},
    {"float8.emulate", "quantize.linear.float8.emulate"},
    {"float8.enable_fsdp_float8_all_gather", "quantize.linear.float8.enable_fsdp_float8_all_gather"},
    {"float8.filter_fqns", "quantize.linear.float8.filter_fqns"},
    {"float8.precompute_float8_dynamic_scale_for_fsdp",
     "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp"},
    {"float8.recipe_name", "quantize.linear.float8.recipe_name"},
    {"float8.moe_fqns_prototype", "quantize.grouped_mm.float8.fqns"},
    {"mx.filter_fqns", "quantize.linear.mx.filter_fqns"},
    {"mx.recipe_name", "quantize.linear.mx.recipe_name"},
}};

/// Renamed since v0.2.0, which has these yet.
constexpr std::string_view kOfV020[] = {"training.deterministic", "training.seed",
                                        "training.debug_moe_force_load_balance"};

/// Keys without another name that v0.1.0 of June 2025 or versions before it have, and none since v0.2.0.
constexpr std::string_view kOnlyBeforeV020[] = {"checkpoint.enable_checkpoint",
                                                "checkpoint.initial_load_model_weights_only",
                                                "checkpoint.last_save_model_weights_only",
                                                "fault_tolerance.fragment_sync_delay",
                                                "fault_tolerance.fragment_update_alpha",
                                                "fault_tolerance.should_quantize",
                                                "fault_tolerance.sync_steps",
                                                "float8.enable_float8_linear",
                                                "float8.force_recompute_fp8_weight_in_bwd",
                                                "job.print_args",
                                                "job.use_for_integration_test",
                                                "lr_scheduler.lr_min",
                                                "memory_estimation.enabled",
                                                "model.norm_type",
                                                "mx.use_fp8_dim1_cast_triton_kernel",
                                                "optimizer.fused",
                                                "parallelism.pipeline_parallel_split_points",
                                                "experimental.pipeline_parallel_microbatches",
                                                "training.compile"};

std::vector<KnownName> mapped_keys() {
  const char* stages = "strategy.virtual_stages, strategy.stage_layers";
  const char* recompute = "strategy.recompute, strategy.recompute_layers";
  std::vector<KnownName> keys{
      {"model.name", "model", "with its flavor; llama3"},
      {"model.flavor", "model", "the sizes of torchtitan's own arguments; debugmodel"},
      {"model.converters", "strategy.stack.precision", "bf16, fp8 of float8 converters, mxfp8 of mx ones"},
      {"model.norm_type", "model.norm, strategy.stack.norm_fusion",
       "rmsnorm, layernorm, in all their forms; until 2025"},
      {"training.local_batch_size", "strategy.micro_batch", "with pipelines the samples of one step; 8"},
      {"training.global_batch_size", "strategy.global_batch", "-1: local_batch_size x data-parallel ranks"},
      {"training.seq_len", "model.sequence", "2048"},
      {"training.compile", "strategy.stack", "until 2025, as compile.enable with model and loss"},
      {"parallelism.data_parallel_replicate_degree", "strategy.zero, strategy.zero_group",
       "groups of sharded ranks; alone DistributedDataParallel; 1"},
      {"parallelism.data_parallel_shard_degree", "strategy.zero, strategy.zero_group",
       "-1: what is left of --gpus N; FSDP2 over these x context-parallel ranks"},
      {"parallelism.fsdp_reshard_after_forward", "strategy.zero, strategy.stack.overlap_parameters",
       "always 3, never 2, default 3 without pipelines"},
      {"parallelism.tensor_parallel_degree", "strategy.tp, strategy.sequence_parallel", "1"},
      {"parallelism.enable_async_tensor_parallel", "strategy.stack.overlap_tensor", "needs the model compiled"},
      {"parallelism.enable_sequence_parallel", "strategy.sequence_parallel", "true; since 2026"},
      {"parallelism.context_parallel_degree", "strategy.cp", "1"},
      {"parallelism.context_parallel_rotate_method", "strategy.cp_comm", "allgather gathered_blocks, alltoall ring"},
      {"parallelism.expert_parallel_degree", "strategy.ep", "of mixtures of experts; 1"},
      {"parallelism.expert_tensor_parallel_degree", "strategy.etp", "1; without expert parallelism as tp"},
      {"parallelism.expert_parallel_comm_backend", "strategy.stack.dispatcher",
       "standard all_to_all, deepep, hybridep"},
      {"parallelism.pipeline_parallel_degree", "strategy.pp", "1"},
      {"parallelism.pipeline_parallel_schedule", "strategy.schedule",
       "1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble, DualPipeV"},
      {"parallelism.pipeline_parallel_microbatch_size", "strategy.micro_batch", "1"},
      {"parallelism.pipeline_parallel_microbatches", "strategy.micro_batch",
       "until 2025: local_batch_size in so many; pipeline ranks"},
      {"parallelism.pipeline_parallel_layers_per_stage", stages,
       "stages of so many layers, embedding and head counted; without it one stage a rank, or two"},
      {"parallelism.pipeline_parallel_first_stage_less_layers", stages, "1"},
      {"parallelism.pipeline_parallel_last_stage_less_layers", stages, "1"},
      {"parallelism.pipeline_parallel_split_points", stages, "until 2025: layers that begin stages"},
      {"parallelism.module_fqns_per_model_part", stages, "layers of each stage by name"},
      {"activation_checkpoint.mode", recompute, "selective, full or none"},
      {"activation_checkpoint.selective_ac_option", recompute, "op per_op; N every Nth layer; 2"},
      {"compile.enable", "strategy.stack", "torchtitan, without the model torchtitan-eager"},
      {"compile.components", "strategy.stack, strategy.stack.cross_entropy_fusion", "model, loss"},
      {"loss.num_chunks", "strategy.stack.loss_chunks", "of a ChunkedLossWrapper; 8"},
      {"optimizer.implementation", "strategy.stack.optimizer_fusion", "fused, foreach, for-loop; fused"},
      {"optimizer.fused", "strategy.stack.optimizer_fusion", "until 2025: true, or false as foreach"},
      {"quantize.linear.float8.recipe_name", "strategy.stack.precision", "tensorwise; one scale a row is not modelled"},
      {"float8.enable_float8_linear", "strategy.stack.precision", "until 2025, as a float8 converter"},
      {"debug.deterministic", "strategy.stack.deterministic", ""},
      {"training.disable_cuda_graphs", "strategy.stack.cuda_graphs", "since 2026, when they are the default"},
  };
  return keys;
}

std::vector<NameGroup> other_keys() {
  return {
      {Fate::irrelevant, "names, folders and logs",
       "job.config_file job.description job.dump_folder job.print_args job.print_config job.save_config_file "
       "job.use_for_integration_test metrics.disable_color_printing metrics.enable_color_printing "
       "metrics.enable_tensorboard metrics.enable_wandb metrics.log_freq metrics.rank_0_only "
       "metrics.save_for_all_ranks metrics.save_tb_folder model.hf_assets_path model.print_after_conversion "
       "model.tokenizer_path profiling.enable_memory_snapshot profiling.enable_profiling profiling.profile_freq "
       "profiling.profiler_active profiling.profiler_warmup profiling.run_profiler "
       "profiling.save_memory_snapshot_folder profiling.save_traces_folder"},
      {Fate::irrelevant, "how long is trained, on what, and how the rate changes",
       "lr_scheduler.decay_ratio lr_scheduler.decay_type lr_scheduler.lr_min lr_scheduler.min_lr_factor "
       "lr_scheduler.total_steps lr_scheduler.warmup_steps optimizer.beta1 optimizer.beta2 optimizer.eps optimizer.lr "
       "optimizer.weight_decay training.data_parallel_type training.dataloader.num_workers "
       "training.dataloader.persistent_workers training.dataloader.pin_memory training.dataloader.prefetch_factor "
       "training.dataset training.dataset_path training.enable_loss_parallel training.gc_debug training.gc_freq "
       "training.max_norm training.steps debug.seed debug.print_config debug.save_config_file "
       "debug.enable_structured_logging"},
      {Fate::irrelevant, "saving and loading",
       "checkpoint.async_mode checkpoint.create_seed_checkpoint checkpoint.enable checkpoint.enable_checkpoint "
       "checkpoint.enable_first_step_checkpoint checkpoint.enable_ft_dataloader_checkpoints "
       "checkpoint.exclude_from_loading checkpoint.export_dtype checkpoint.folder checkpoint.initial_load_in_hf "
       "checkpoint.initial_load_in_hf_quantized checkpoint.initial_load_model_only "
       "checkpoint.initial_load_model_weights_only checkpoint.initial_load_path checkpoint.interval "
       "checkpoint.interval_type checkpoint.keep_latest_k checkpoint.last_save_in_hf checkpoint.last_save_model_only "
       "checkpoint.last_save_model_weights_only checkpoint.load_only checkpoint.load_step "
       "checkpoint.model_weights_only"},
      {Fate::irrelevant, "validation, between steps",
       "validation.dataloader.num_workers validation.dataloader.persistent_workers validation.dataloader.pin_memory "
       "validation.dataloader.prefetch_factor validation.dataset validation.dataset_path validation.enable "
       "validation.freq validation.local_batch_size validation.seq_len validation.steps"},
      {Fate::irrelevant, "starting the processes and their limits",
       "comm.init_timeout_seconds comm.save_traces_file_prefix comm.save_traces_folder comm.trace_buf_size "
       "comm.train_timeout_seconds memory_estimation.disable_fake_mode memory_estimation.enable "
       "memory_estimation.enabled fault_tolerance.fragment_sync_delay fault_tolerance.fragment_update_alpha "
       "fault_tolerance.group_size fault_tolerance.min_replica_size fault_tolerance.process_group "
       "fault_tolerance.process_group_timeout_ms fault_tolerance.replica_id fault_tolerance.should_quantize "
       "fault_tolerance.sync_steps"},
      {Fate::irrelevant, "details of recomputation that cost nothing here",
       "activation_checkpoint.debug activation_checkpoint.determinism_check activation_checkpoint.early_stop "
       "activation_checkpoint.memory_budget activation_checkpoint.preserve_rng_state "
       "activation_checkpoint.visualize_memory_budget_pareto"},
      {Fate::irrelevant, "which layers of 8 bits are which: head and embedding have 16",
       "quantize.linear.float8.filter_fqns quantize.linear.mx.filter_fqns quantize.grouped_mm.float8.fqns "
       "quantize.grouped_mm.mx.fqns quantize.grouped_mm.mx.recipe_name "
       "quantize.linear.mx.mxfp8_dim1_cast_kernel_choice mx.use_fp8_dim1_cast_triton_kernel "
       "float8.force_recompute_fp8_weight_in_bwd"},
      {Fate::irrelevant, "only effective with what is read elsewhere",
       "parallelism.pipeline_parallel_expert_parallel_overlap parallelism.context_parallel_ptrr_mask_key "
       "debug.deterministic_warn_only"},
      {Fate::noted, "parameters are gathered in 16 bits here",
       "quantize.linear.float8.enable_fsdp_float8_all_gather=false "
       "quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp=false"},
      {Fate::noted, "GEMMs of other shapes are recomputed",
       "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns=[]"},
      {Fate::noted, "tokens are spread evenly over context-parallel ranks here",
       "parallelism.context_parallel_load_balancer=headtail/ptrr"},
      {Fate::noted, "buffers registered with NCCL are the library's own speed here",
       "parallelism.enable_fsdp_symm_mem=false"},
      {Fate::noted, "kernels around the collectives are as those of DTensor here",
       "parallelism.spmd_backend=spmd_types/partial_dtensor"},
      {Fate::noted, "routing is balanced here", "debug.moe_force_load_balance=false/true"},
      {Fate::refused, "only Adam with states in 32 bits is modelled",
       "optimizer.name=Adam/AdamW optimizer.early_step_in_backward=false"},
      {Fate::refused, "weights are kept in 32 bits and used in 16",
       "training.dtype=float32 training.mixed_precision_param=bfloat16 training.mixed_precision_reduce=float32"},
      {Fate::refused, "offloading of parameters is not modelled", "training.enable_cpu_offload=false"},
      {Fate::refused, "the whole logits on every rank are not modelled", "parallelism.disable_loss_parallel=false"},
      {Fate::refused, "gradients of other kernels than PyTorch's own are not modelled",
       "parallelism.enable_compiled_autograd=false compile.backend=inductor"},
      {Fate::refused, "schedules of a file are not modelled", "parallelism.pipeline_parallel_schedule_csv"},
      {Fate::refused, "8 bits are not computed in them", "quantize.linear.float8.emulate=false"},
      {Fate::refused, "only mxfp8 is modelled", "quantize.linear.mx.recipe_name=mxfp8/mxfp8_cublas"},
      {Fate::refused, "only one scale a tensor, computed anew, is modelled",
       "float8.scaling_type_grad_output=dynamic float8.scaling_type_input=dynamic float8.scaling_type_weight=dynamic"},
      {Fate::refused, "replicas that come and go are not modelled",
       "fault_tolerance.enable=false fault_tolerance.semi_sync_method"},
      {Fate::refused, "settings of a module that is not here would count",
       "experimental.custom_args_module experimental.custom_import experimental.custom_model_path "
       "job.custom_config_module"},
      {Fate::refused, "nothing is trained so", "comm.mode=default/fake_backend/torchcomms"},
      {Fate::refused, "checks between kernels are not modelled",
       "debug.detect_anomaly=false debug.spmd_typechecking=false debug.batch_invariant=false"},
  };
}

}  // namespace

const KnownNames& known_keys() {
  static const KnownNames keys = [] {
    std::vector<KnownName> mapped = mapped_keys();
    for (const Renamed& one : kRenamed)
      mapped.push_back({std::string(one.old), "", "an earlier name of `" + std::string(one.name) + "`"});
    mapped.push_back({"experimental.pipeline_parallel_microbatches", "",
                      "an earlier name of `parallelism.pipeline_parallel_microbatches`"});
    return KnownNames("torchtitan", NameKind::key, std::move(mapped), other_keys());
  }();
  return keys;
}

std::string key_before_v0_2(const std::vector<GivenKey>& keys) {
  const auto is_in = [](const auto& list, const std::string& name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  for (const GivenKey& one : keys) {
    const bool renamed =
        std::any_of(kRenamed.begin(), kRenamed.end(), [&](const Renamed& row) { return row.old == one.name; });
    if (is_in(kOnlyBeforeV020, one.name) || (renamed && !is_in(kOfV020, one.name))) return one.name;
  }
  return "";
}

std::vector<GivenKey> with_names_of_today(std::vector<GivenKey> keys) {
  std::vector<GivenKey> renamed;
  bool old_pipeline = false;
  for (GivenKey& one : keys) {
    const auto* old =
        std::find_if(kRenamed.begin(), kRenamed.end(), [&](const Renamed& row) { return row.old == one.name; });
    const auto is = [&](const std::string& name) {
      return std::any_of(keys.begin(), keys.end(), [&](const GivenKey& other) { return other.name == name; });
    };
    if (one.name == "experimental.pipeline_parallel_degree") old_pipeline = true;
    if (one.name == "experimental.pipeline_parallel_microbatches")
      one.name = "parallelism.pipeline_parallel_microbatches";
    if (old != kRenamed.end() && is(std::string(old->name))) continue;
    renamed.push_back({old == kRenamed.end() ? one.name : std::string(old->name), one.value});
  }
  const bool counted = std::any_of(renamed.begin(), renamed.end(), [](const GivenKey& one) {
    return one.name == "parallelism.pipeline_parallel_microbatches";
  });
  // Until 2025 the default was as many micro-batches as pipeline ranks, then micro-batches of one sample.
  if (old_pipeline && !counted) {
    import::Node none;
    none.kind = import::Node::Kind::scalar, none.text = "-1";
    renamed.push_back({"parallelism.pipeline_parallel_microbatches", none});
  }
  return renamed;
}

}  // namespace manyworlds::experiments::jobs::torchtitan
