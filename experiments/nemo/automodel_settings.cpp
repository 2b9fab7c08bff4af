// Keys of NeMo Automodel: NVIDIA-NeMo/Automodel @36044ad, examples/llm_benchmark, examples/llm_pretrain and
// nemo_automodel/components/distributed.
#include "experiments/nemo/settings.hpp"

namespace manyworlds::experiments::jobs {

namespace {

std::vector<KnownName> mapped_keys() {
  return {
      {"model.pretrained_model_name_or_path", "model.name", "a name on the hub that the catalog has, or a path"},
      {"model.config.pretrained_model_name_or_path", "model.name", "as before"},
      {"model.config.name_or_path", "model.name", "as before"},
      {"model.config", "model.name", "as before"},
      {"model.config.num_hidden_layers", "model.layers"},
      {"model.backend.attn", "strategy.stack.attention", "",
       "te=cudnn sdpa=flash2 flex=cudnn torch=unfused eager=unfused"},
      {"model.attn_implementation", "strategy.stack.attention", "",
       "sdpa=flash2 flash_attention_2=flash2 flash_attention_3=cudnn eager=unfused"},
      {"model.backend.linear", "strategy.stack.layers", "", "te=transformer_engine torch=framework quack=framework"},
      {"model.backend.rope_fusion", "strategy.stack.rope_fusion", "", "true=true false=false"},
      {"model.backend.dispatcher", "strategy.stack.dispatcher",
       "deepep or hybridep; torch without expert parallelism alone", "deepep=deepep hybridep=hybrid_ep"},
      {"model.backend.dispatcher_num_sms", "strategy.stack.dispatcher_sms"},
      {"model.backend.experts", "strategy.expert_gemm", "", "te=grouped gmm=grouped torch_mm=grouped"},
      {"model.backend.te_fp8.recipe", "strategy.stack.precision", "", "mxfp8=mxfp8 block=fp8 current=fp8 delayed=fp8"},
      {"distributed.tp_size", "strategy.tp"},
      {"distributed.cp_size", "strategy.cp"},
      {"distributed.pp_size", "strategy.pp"},
      {"distributed.ep_size", "strategy.ep"},
      {"distributed.dp_size", "", "times tp x pp x cp: the GPUs"},
      {"distributed.dp_replicate_size", "strategy.zero_group", "replicas / this"},
      {"distributed.strategy", "strategy.zero", "", "fsdp2=3 ddp=0 megatron_fsdp=3"},
      {"distributed.sequence_parallel", "strategy.sequence_parallel", "off without tensor parallelism"},
      {"distributed.activation_checkpointing", "strategy.recompute", "", "true=full false=none"},
      {"distributed.enable_async_tensor_parallel", "strategy.stack.overlap_tensor", "with sequence parallelism"},
      {"distributed.pipeline.pp_schedule", "strategy.schedule", "",
       "1f1b=1f1b gpipe=gpipe interleaved1f1b=interleaved zbvzerobubble=zb_v dualpipev=dualpipev"},
      {"distributed.pipeline.pp_microbatch_size", "strategy.micro_batch", "with a pipeline"},
      {"distributed.pipeline.layers_per_stage", "strategy.virtual_stages, strategy.stage_layers",
       "the first stages have one more where the layers do not divide"},
      {"distributed.pipeline.round_virtual_stages_to_pp_multiple", "strategy.virtual_stages", "up or down"},
      {"step_scheduler.global_batch_size", "strategy.global_batch"},
      {"step_scheduler.local_batch_size", "strategy.micro_batch", "without a pipeline"},
      {"peft.dim", "model.lora_rank", "8 where there is a section peft"},
      {"peft.target_modules", "model.lora_weights",
       "names of modules, or patterns such as *_proj, which it is without them; a pair for each projection"},
      {"quantization.load_in_4bit", "model.frozen_weights", "nf4, with pairs of low rank", "true=nf4 false=bf16"},
      {"dataset.seq_len", "model.sequence"},
      {"dataset.seq_length", "model.sequence"},
      {"packed_sequence.packed_sequence_size", "model.sequence", "0: not packed"},
  };
}

std::vector<NameGroup> other_keys() {
  return {
      {Fate::irrelevant, "the run around the steps: its length, its log, its checkpoints and its data",
       "recipe seed rng.* benchmark.* ci.* dist_env.* checkpoint.* logger.* logging.* wandb.* mlflow.* comet.* "
       "slurm.* lr_scheduler.* validation_dataset* validation_dataloader* validation_* dataset.* dataloader.* "
       "packed_sequence.* step_scheduler.* env_vars.* restore_from* profiling.* nsys* auto_resume* launcher.*"},
      {Fate::irrelevant, "scales, types of what is loaded and names in Python",
       "model._target_ model.config._target_ model.backend._target_ model.trust_remote_code "
       "model.config.trust_remote_code model.torch_dtype model.dtype model.config.torch_dtype model.config.use_cache "
       "model.use_cache model.output_hidden_states model.force_hf model.load_base_model model.backend.gate_precision "
       "model.backend.enable_hf_state_dict_adapter model.backend.enable_fsdp_optimizations "
       "model.backend.fake_balanced_gate model.backend.fake_gate_noise model.backend.te_fp8._target_ "
       "model.revision model.cache_dir model.use_liger_kernel=False model.backend.rope "
       "model.config.name_or_path model.config.dtype model.text_config* model.config.architectures "
       "loss_fn._target_ loss_fn.fp32_upcast loss_fn.ignore_index loss_fn.reduction optimizer.* "
       "clip_grad* max_grad_norm"},
      {Fate::irrelevant, "wrapping of modules, and schedules of the pipeline's own",
       "distributed._target_ distributed.moe.* distributed.patch_* distributed.reshard_after_forward "
       "distributed.backend distributed.world_size distributed.pipeline.scale_grads_in_schedule "
       "distributed.pipeline.patch_* distributed.pipeline.dtype distributed.pipeline.pp_batch_size "
       "distributed.pipeline.pp_seq_len distributed.pipeline._target_ distributed.mp_policy* "
       "distributed.autocast_dtype distributed.use_hf_tp_plan distributed.tp_plan distributed.defer_fsdp_grad_sync "
       "distributed.reduce_* distributed.megatron_fsdp_unit_modules distributed.check_for_nan_in_grad "
       "parallelizer.*"},
      {Fate::noted, "kernels are as the stack of the catalog has them",
       "model.backend.rms_norm=te/torch model.backend.compile_attn model.compile distributed.enable_compile compile.* "
       "model.use_sdpa_patching model.sdpa_method"},
      {Fate::noted, "FSDP2 gathers the next layer's parameters beside a layer as it does by default",
       "distributed.enable_fsdp2_prefetch distributed.fsdp2_*"},
      {Fate::irrelevant, "scales and initial values of pairs of low rank, and how their kernels are written",
       "peft._target_ peft.alpha peft.dropout_position peft.lora_A_init peft.use_triton "
       "peft.use_memory_efficient_lora"},
      {Fate::noted, "pairs of low rank drop no elements here", "peft.dropout=0/0.0"},
      {Fate::refused, "magnitudes of weights (DoRA) of projections are not modelled", "peft.use_dora"},
      {Fate::refused, "which linear layers have pairs of low rank depends on the model, and the head may be one",
       "peft.match_all_linear peft.exclude_modules"},
      {Fate::refused, "pairs of low rank of this form are not modelled",
       "peft.lora_dtype=bf16/bfloat16/torch.bfloat16 peft.moe_rank_scaling peft.*"},
      {Fate::refused, "frozen weights in 4 bits are those of QLoRA: nf4, double quantisation, GEMMs in bfloat16",
       "quantization.bnb_4bit_quant_type=nf4 quantization.bnb_4bit_use_double_quant=True/true "
       "quantization.bnb_4bit_compute_dtype=bfloat16 quantization.bnb_4bit_quant_storage=bfloat16/uint8"},
      {Fate::refused, "quantised weights are not modelled", "quantization.* qat.* fp8.enabled model.quantization*"},
      {Fate::refused, "multi-token prediction is not read of its jobs",
       "model.num_nextn_predict_layers model.config.num_nextn_predict_layers model.mtp_*"},
      {Fate::refused, "offloading is not modelled", "distributed.offload_policy distributed.cpu_offload"},
      {Fate::refused, "only some parameters are trained", "freeze_config.*=False/None"},
      {Fate::refused, "another model teaches this one", "teacher_model.* kd_*"},
      {Fate::refused, "the model's own configuration is read from a config.json: give its path", "model.config.*"},
  };
}

}  // namespace

const KnownNames& automodel_keys() {
  static const KnownNames keys("NeMo Automodel", NameKind::key, mapped_keys(), other_keys());
  return keys;
}

}  // namespace manyworlds::experiments::jobs
