// Variables of MLPerf's configurations: mlcommons/training_results_v5.1 @441d65f,
// NVIDIA/benchmarks/llama31_405b/…/conf/ custom.yaml and pretrain.py say what they mean,
// AMD/benchmarks/llama31_8b/…/src/train.py those of AMD, …/benchmarks/llama2_70b_lora/…/conf/
// megatron_gpt_peft_tuning_config.yaml those of fine-tuning; earlier rounds have most of them too.
#include "experiments/nemo/settings.hpp"

namespace manyworlds::experiments::jobs {

const Dialect& mlperf_dialect() {
  static const Dialect dialect{
      {"MLPerf's configurations",
       NameKind::setting,
       {
           {"TENSOR_MODEL_PARALLEL", "tensor-model-parallel-size"},
           {"TP", "tensor-model-parallel-size"},
           {"PIPELINE_MODEL_PARALLEL", "pipeline-model-parallel-size"},
           {"PP", "pipeline-model-parallel-size"},
           {"CONTEXT_PARALLEL", "context-parallel-size"},
           {"CP", "context-parallel-size"},
           {"EXPERT_PARALLEL", "expert-model-parallel-size"},
           {"INTERLEAVED_PIPELINE", "num-virtual-stages-per-pipeline-rank"},
           {"VP", "num-virtual-stages-per-pipeline-rank"},
           {"SEQ_PARALLEL", "sequence-parallel"},
           {"SP", "sequence-parallel"},
           {"ASYM_PP_EMBED", "account-for-embedding-in-pipeline-split"},
           {"ASYM_PP_LOSS", "account-for-loss-in-pipeline-split"},
           {"TP_PP_DP_MAPPING", "use-tp-pp-dp-mapping"},
           {"MICRO_BATCH_SIZE", "micro-batch-size"},
           {"MBS", "micro-batch-size"},
           {"GLOBAL_BATCH_SIZE", "global-batch-size"},
           {"GBS", "global-batch-size"},
           {"SEQ_LENGTH", "seq-length"},
           {"OVERWRITTEN_NUM_LAYERS", "num-layers"},
           {"FP8", "fp8-format", "", "True=hybrid 1=hybrid False=- 0=-"},
           {"FP8_RECIPE", "fp8-recipe"},
           {"FP4", "fp4-format", "", "True=e2m1 1=e2m1 False=- 0=-"},
           {"CP_COMM_TYPE", "cp-comm-type"},
           {"ACG", "recompute-granularity"},
           {"ACM", "recompute-method"},
           {"ACL", "recompute-num-layers"},
           {"RECOMPUTE_GRANULARITY", "recompute-granularity"},
           {"RECOMPUTE_METHOD", "recompute-method"},
           {"RECOMPUTE_NUM_LAYERS", "recompute-num-layers"},
           {"ACT_CKPT_GRANULARITY", "recompute-granularity"},
           {"ACT_CKPT_METHOD", "recompute-method"},
           {"ACT_CKPT_NUM_LAYERS", "recompute-num-layers"},
           {"USE_DIST_OPTIMIZER", "use-distributed-optimizer"},
           {"OVERLAP_GRAD_REDUCE", "overlap-grad-reduce"},
           {"DDP_OVERLAP_GRAD_REDUCE", "overlap-grad-reduce"},
           {"DDP_OVERLAP_PARAM_GATHER", "overlap-param-gather"},
           {"OVERLAP_PARAM_GATHER", "overlap-param-gather"},
           {"BUCKET_SIZE", "ddp-bucket-size"},
           {"TP_COMM_OVERLAP", "tp-comm-overlap"},
           {"UB_TP_COMM_OVERLAP", "tp-comm-overlap"},
           {"OVERLAP_P2P_COMM", "no-overlap-p2p-communication", "false: given", "True=- 1=- False=True 0=True"},
           {"GRAD_ACCUM_FUSION", "no-gradient-accumulation-fusion", "false: given", "True=- 1=- False=True 0=True"},
           {"CROSS_ENTROPY_LOSS_FUSION", "cross-entropy-loss-fusion"},
           {"CE_FUSION_IMPL", "cross-entropy-fusion-impl"},
           {"MCORE_CUDA_GRAPH", "enable-cuda-graph"},
           {"LAYER_CUDA_GRAPH", "external-cuda-graph"},
           {"FULL_CUDA_GRAPH", "cuda-graph-scope", "", "True=full_iteration 1=full_iteration False=- 0=-"},
           {"CUDA_GRAPH_SCOPE", "cuda-graph-scope"},
           {"DETERMINISTIC_MODE", "deterministic-mode"},
           {"SHARP", "use-sharp", "refused if true"},
       },
       {
           {Fate::irrelevant, "read by itself: the model, the GPUs and the samples of a replica",
            "MODEL_SIZE SIZE MINIBS DGXNNODES DGXNGPU NNODES GPUS_PER_NODE"},
           {Fate::irrelevant, "the run around the steps: its length, its data, its checkpoints and its log",
            "TRAIN_ONLY MAX_STEPS LOAD_MINIMAL_NUM_SAMPLES OVERRIDE_ZERO_CONSUMED_SAMPLES INIT_GLOBAL_STEP "
            "LOAD_CHECKPOINT CHECK_COMPLIANCE CHECKPOINT_NAME LEGACY_DATASET NO_CKPT NEMO_* EXP_MANAGER* TARGET* "
            "LOG_* GC_* VAL_* OPT_* LR MIN_LR MAX_LR WARMUP* LIMIT_* SKIP_EVALS SEED* DATA* PREPROC* SPM* "
            "TOKENIZER* HYDRA_* HF_* TQDM_* WALLTIME* NEXP DGXSYSTEM DGXHT DGXNSOCKET DGXSOCKETCORES EXTRA_ARGS "
            "MODEL_TFLOP_PER_SAMPLE MLPERF_* POSSIBLE_USER_WARNINGS TORCH_CPP_LOG_LEVEL LOAD_CKPT USE_CKPT SAVE_CKPT "
            "FROM_HF CONTINUAL_CKPT ENABLE_RERUNS FORCE_SUCCESS_STATUS RUN_* RESET_* PRE_VALIDATE EXTEND_RUN_EVALS "
            "PROFILE* NSYS* PRINT_CONFIG MEMORY_PROFILE* ENABLE_* STEP_TIME_ATOL START_* EVAL_* TAG NPAR REMOTE "
            "DEPENDENCIES PROXY_GBS CREATE_* DIST_CKPT_* OPTIM_* EXCHANGE_* CUSTOM_INPUT_PIPELINE MOCK_* DISABLE_*"},
           {Fate::irrelevant, "where the job runs: nodes, containers and processes",
            "BINDCMD GPU_ARCH SEGMENT SBATCH_* SLURM_* CONT* ATTEMPT_* OMP_NUM_THREADS MASTER_* CLEAR_CACHES "
            "JET_* SINGULARITY* PMI* UCX_* HANG_* POWERCMD* API_* CUDA_ENABLE_* CUDA_COREDUMP_* TRANSFORMERS_OFFLINE"},
           {Fate::irrelevant, "tuning of libraries, whose kernels and collectives take here what was measured of them",
            "NCCL_* TORCH_NCCL_* NVTE_* CUDA_* CUBLAS_* CUDNN_* PYTORCH_* MC_TP_OVERLAP_* TE_UB_* UB_* CG_* "
            "FP8_AMAX_* FP8_HYBRID FP8_REDUCE_AMAX TP_ONLY_AMAX_RED ALIGN_PARAM_GATHER SYNC_BATCH_COMM "
            "BATCH_P2P_COMM FP4_RECIPE WGRAD_DEFERRAL_LIMIT CHECK_FOR_NAN* HSA_* USE_HIPBLASLT TORCH_BLAS_* CK_* "
            "PT_TENSOR_VALIDATION "
            "BUCKET_CAP_MB NUM_LAYERS_AT_* ENABLE_TRANSPOSE_CACHE RMSNORM_CAST FUSED_SOFTMAX "
            "EXPERIMENTAL* ON_DEVICE_CLIP_GRAD USE_TE_SWIGLU TE_*"},
           {Fate::noted, "parameters are gathered in 16 bits here", "FP8_PARAM_GATHER FP8_PARAMS FP4_PARAM_GATHER"},
           {Fate::noted, "which chunks and which GEMMs overlap is as overlap_tensor has it",
            "FC1_* FC2_* QKV_* PROJ_*"},
           {Fate::noted, "only the order in time differs",
            "DEFER_EMBEDDING_WGRAD_COMPUTE OVERLAP_PARAM_GATHER_WITH_OPTIM_STEP"},
           {Fate::noted, "attention runs in 16 bits here", "FP8_DPA FP8_DOT_PRODUCT_ATTENTION FP8_MHA"},
           {Fate::noted, "Transformer Engine fuses as its stack in the catalog does",
            "USE_TE_OPS FUSED_QKV_ROPE FUSED_SINGLE_QKV_ROPE"},
           {Fate::refused, "layers of two precisions are not modelled", "FIRST_LAST_LAYERS_BF16"},
           {Fate::irrelevant, "read by itself: model.lora_rank, 16 unless it is given", "LORA_DIM"},
           {Fate::irrelevant, "scales of pairs of low rank", "LORA_ALPHA"},
           {Fate::noted, "pairs of low rank drop no elements here", "LORA_DROPOUT=0/0.0 NEMO_LORA_USE_THUNDER_DROPOUT"},
           {Fate::noted, "outputs of pairs of low rank are gathered here", "LORA_A2A"},
           {Fate::refused, "pairs of low rank of this form are not modelled", "LORA_* NEMO_LORA_*"},
           {Fate::refused, "PyTorch's FSDP is not modelled with Megatron-Core's layers here", "FSDP"},
           {Fate::refused, "offloading of whole layers is not modelled", "CPU_OFFLOADING CPU_OFFLOADING_NUM_LAYERS"},
       }},
      {},
      true};
  return dialect;
}

}  // namespace manyworlds::experiments::jobs
