// Arguments of Megatron-LM that no setting follows from: without effect on time and memory, not modelled, or refused.
// Names and values are those of NVIDIA/Megatron-LM @d98e8a6 (megatron/training/arguments.py and the dataclasses that it
// names) and of the versions of 2021 on.
#include "experiments/megatron/argument_table.hpp"

namespace manyworlds::experiments::jobs {

std::vector<NameGroup> other_arguments() {
  return {
      {Fate::carried, "the model's own: positions, scales, epsilons and initial values",
       "activation-func-clamp-value= add-qkv-bias apply-layernorm-1p apply-query-key-layer-scaling "
       "attention-softmax-in-fp32 embedding-init-method-std= glu-linear-offset= init-method-std= "
       "init-method-xavier-uniform layernorm-epsilon= layernorm-zero-centered-gamma= "
       "max-position-embeddings= moe-shared-expert-gate mrope-section+ mscale-all-dim= mscale= "
       "no-position-embedding no-query-key-layer-scaling no-yarn-correction-range-round-to-int "
       "norm-epsilon= relative-attention-max-distance= relative-attention-num-buckets= "
       "rope-scaling-factor= rope-type= rotary-base= rotary-interleaved rotary-percent= "
       "rotary-scaling-factor= rotary-seq-len-interpolation-factor= softmax-type= use-rope-scaling "
       "yarn-beta-fast= yarn-beta-slow= yarn-correction-range-round-to-int "
       "yarn-original-max-position-embeddings="},
      {Fate::carried, "the model's own: how tokens are given to experts",
       "moe-router-score-function= moe-router-enable-expert-bias moe-router-topk-scaling-factor= "
       "moe-router-pre-softmax moe-router-bias-update-rate= "
       "moe-router-load-balancing-type+ moe-router-dtype= moe-aux-loss-coeff+ moe-z-loss-coeff= "
       "moe-input-jitter-eps="},
      {Fate::irrelevant, "numerics of the same kernels",
       "add-bias-linear= batch-invariant-backend= batch-invariant-mode ddp-average-in-collective "
       "disable-bf16-reduced-precision-matmul disable-clone-scatter-output-in-embedding disable-jit-fuser "
       "enable-gpt-oss flash-attention-version= fp4-quantizer-factory= fp4-recipe= fp8-amax-compute-algo= "
       "fp8-amax-history-len= fp8-margin= fp8-quantizer-factory= moe-mlp-glu-interleave-size= "
       "moe-shared-expert-glu-interleave-size= no-clone-scatter-output-in-embedding "
       "no-gradient-reduce-div-fusion no-persist-layer-norm onnx-safe= output-logit-dtype= qk-clip-alpha= "
       "qk-clip-threshold="},
      {Fate::irrelevant, "how long is trained, how the rate changes, and evaluation",
       "adam-beta1= adam-beta2= adam-eps= apply-wd-to-qk-layernorm calculate-per-token-loss "
       "classes-fraction= clip-grad= decoupled-lr= decoupled-min-lr= decrease-batch-size-if-needed "
       " end-weight-decay= eval-global-batch-size= eval-interval= eval-iters= "
       "eval-micro-batch-size= head-lr-mult= hysteresis=  "
       "initial-loss-scale= lion-beta1= lion-beta2= loss-scale-window= loss-scale= lr-decay-iters= "
       "lr-decay-samples= lr-decay-steps= lr-decay-style= lr-decay-tokens= lr-warmup-fraction= "
       "lr-warmup-init= lr-warmup-iters= lr-warmup-samples= lr-warmup-steps= lr-warmup-tokens= "
       "lr-wsd-decay-iters= lr-wsd-decay-samples= lr-wsd-decay-style= lr= min-loss-scale= min-lr= "
       "  moe-loss-coeff=  mtp-loss-scaling-factor= "
       "muon-coefficient-type= muon-extra-scale-factor= muon-fp32-matmul-prec= muon-momentum= muon-nesterov "
       "muon-no-split-qkv muon-num-ns-steps= muon-scalar-optimizer= muon-scale-mode= muon-tp-mode= "
       "muon-use-syrk mup-attn-scale-power= mup-base-head-dim= mup-base-hidden-size= mup-embedding-mult= "
       "mup-output-mult= mup-width-mult= no-initialization no-weight-decay-cond-type= "
       "perform-initialization= rampup-batch-size+ seed= sgd-momentum= start-eval-at-iter= "
       "start-weight-decay= train-iters= train-samples= train-tokens= use-mup "
       "use-same-sampling-seed-across-dp-ranks wd-incr-steps= weight-decay-incr-style= weight-decay= "
       "wsd-decay-steps= "},
      {Fate::irrelevant, "saving, loading, restarting and ending",
       "adlr-autoresume adlr-autoresume-interval= async-ckpt-cpu-priority= async-ckpt-io-priority= "
       "async-ckpt-use-cpu-shm async-save async-strategy= auto-detect-ckpt-format calc-ft-timeouts "
       "ckpt-assume-constant-structure ckpt-convert-format= ckpt-convert-save= "
       "ckpt-convert-update-legacy-dist-opt-format ckpt-drop-redundant-extra-state ckpt-format= "
       "ckpt-fully-parallel-load ckpt-fully-parallel-load-exchange-algo= "
       "ckpt-fully-parallel-load-per-rank-objects ckpt-fully-parallel-load-process-group= "
       "ckpt-fully-parallel-save ckpt-fully-parallel-save-process-group= ckpt-pg-tensors-cache-create "
       "ckpt-pg-tensors-cache-path= ckpt-step= disable-ckpt-load-validate-sharding-integrity "
       "disable-manual-gc-eval disable-msc disable-save-tokenizer-assets disable-strict-fsdp-dtensor-load "
       "dist-ckpt-format= dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 "
       "dist-ckpt-strictness= dist-ckpt-workers= distrib-optim-fully-reshardable-mem-efficient "
       "distributed-backend= distributed-timeout-minutes= distributed-timeout-seconds-after-init= "
       "enable-ft-package enable-msc error-injection-rate= error-injection-type+ exit-duration-in-mins= "
       "exit-interval= exit-on-missing-checkpoint exit-signal-handler exit-signal-handler-for-dataloader "
       "exit-signal-handler-for-training exit-signal= finetune ft-num-warmup-iters= fully-parallel-load= "
       "fully-parallel-save= init-model-with-meta-device inprocess-active-world-size= "
       "inprocess-barrier-timeout= inprocess-completion-timeout= inprocess-empty-cuda-cache "
       "inprocess-granularity= inprocess-hard-timeout= inprocess-heartbeat-interval= "
       "inprocess-heartbeat-timeout= inprocess-last-call-wait= inprocess-max-iterations= "
       "inprocess-monitor-process-interval= inprocess-monitor-thread-interval= "
       "inprocess-progress-watchdog-interval= inprocess-restart inprocess-soft-timeout= "
       "inprocess-termination-grace-time= iterations-to-skip+ load-main-params-from-ckpt load= "
       "logits-load-decode-threads= logits-load-dir= logits-load-ignore-errors logits-load-kd-loss-alpha= "
       "logits-load-msc-prefetch-depth= logits-load-prefetch-factor= logits-save-dir= logits-save-dtype= "
       "logits-save-top-k= logits-save-top-p-min-k= logits-save-top-p= manual-gc manual-gc-interval= "
       "no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity no-load-optim no-load-rng "
       "no-manual-gc-eval no-save-optim no-save-rng no-save-tokenizer-assets no-strict-fsdp-dtensor-load "
       "non-persistent-ckpt-type= non-persistent-global-ckpt-dir= non-persistent-local-ckpt-algo= "
       "non-persistent-local-ckpt-dir= non-persistent-save-interval= object-storage-cache-path= "
       "override-ckpt-iteration= override-opt-param-scheduler override-opt_param-scheduler "
       "persistent-save-interval= phase-transition-iterations= pretrained-checkpoint= replication "
       "replication-factor= replication-jump= rerun-mode= save-interval= save= test-mode "
       "train-sync-interval= use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler "
       "use-dist-ckpt use-one-sent-docs use-persistent-ckpt-worker "},
      {Fate::irrelevant, "data and tokenizers",
       "allow-ambiguous-pad-tokens block-data-path= chat-template= data-args-path= data-cache-path= "
       "data-impl= data-parallel-random-init data-path+ data-per-class-fraction= "
       "dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-inter-document-masking "
       "dataloader-type= disable-pad-vocab-size disable-tokenizer-sentencepiece-ignore-extra-whitespaces "
       "disable-use-tokenizer-model-from-checkpoint-args embedding-path= eod-mask-loss evidence-data-path= "
       "fim-data fim-eod-token= fim-fragment-rate= fim-middle-token= fim-no-prefix= fim-pad-token= "
       "fim-prefix-token= fim-rate= fim-split-sample= fim-spm-rate= fim-suffix-token= full-validation "
       "indexer-batch-size= iter-per-epoch= legacy-tokenizer mask-factor= mask-prob= mask-type= merge-file= "
       "metadata-path= mid-level-dataset-surplus= mock-data multiple-validation-sets "
       "no-create-attention-mask-in-dataloader no-mmap-bin-files no-pad-vocab-size "
       "no-tokenizer-sentencepiece-ignore-extra-whitespaces no-use-tokenizer-model-from-checkpoint-args "
       "null-tokenizer-eod-id= null-tokenizer-pad-id= num-dataset-builder-threads= num-workers= "
       "per-dataset-sequences-path= per-split-data-args-path= query-in-block-prob= reset-attention-mask "
       "reset-position-ids retriever-report-topk-accuracies+ retriever-score-scaling sample-rate= sft "
       "sft-tokenizer-prompt-format= short-seq-prob= special-tokens+ split= test-data-path+ "
       "tiktoken-num-special-tokens= tiktoken-pattern= titles-data-path= "
       "tokenizer-hf-no-include-special-tokens tokenizer-hf-no-use-fast tokenizer-metadata= tokenizer-model= "
       "tokenizer-sentencepiece-legacy tokenizer-special-tokens+ train-data-path+ trust-remote-code "
       "use-gigatoken use-tokenizer-model-from-checkpoint-args valid-data-path+ validation-set-names+ "
       "vocab-file= "},
      {Fate::irrelevant, "printing, recording and profiling",
       "app-tag-run-name= app-tag-run-version= check-for-large-grads check-for-spiky-loss "
       "check-weight-hash-across-dp-replicas-interval= config-logger-dir= "
       "disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec "
       "disable-flight-recorder-include-only-active disable-log-loss-scale-to-tensorboard "
       "disable-straggler-on-startup dump-param-to-param-group-map= enable-experimental "
       "flight-recorder-dump-path= flight-recorder-include-stack-trace flight-recorder-trace-buffer-size= "
       "gpu-sniff-test-interval= indexer-log-interval= log-batch-size-to-tensorboard log-device-memory-used "
       "log-energy log-interval= log-learning-rate-to-tensorboard log-max-attention-logit "
       "log-memory-interval= log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress "
       "log-straggler log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard "
       "log-world-size-to-tensorboard logging-level= memory-snapshot-path= moe-per-layer-logging "
       "moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits "
       "moe-routing-trace-dump-weights moe-routing-trace-max-training-iters= moe-routing-trace-path= "
       "no-barrier-with-level-1-timing no-check-for-nan-in-loss-and-grad no-flight-recorder-dump-on-timeout "
       "no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active "
       "no-log-learnig-rate-to-tensorboard no-log-loss-scale-to-tensorboard no-one-logger nvtx-ranges "
       "one-logger-async one-logger-project= one-logger-run-name= otel-enabled otel-service-name= "
       "otel-span-groups= profile profile-ranks+ profile-step-end= profile-step-start= "
       "pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra pytorch-profiler-collect-shapes "
       "record-memory-history record-shapes result-rejected-tracker-filename= run-workload-inspector-server "
       "save-activations-interval= save-dgrads-interval= save-params-interval= save-retain-interval= "
       "save-tokens-per-expert-interval= save-wgrads-interval= straggler-ctrlr-port= straggler-minmax-count= "
       "tensorboard-dir= tensorboard-log-interval= tensorboard-queue-size= timing-log-level= "
       "timing-log-option= use-nsys-profiler= use-pytorch-profiler verify-integrity wandb-entity= "
       "wandb-exp-name= wandb-project= wandb-save-dir= "},
      {Fate::irrelevant, "starting the processes",
       "barrier-with-L1-time= cpu-offloading-retain-pinned-cpu-buffers cuda-graph-warmup-steps= "
       "delay-grad-reduce disable-align-grad-reduce disable-gloo-process-groups export-default-te-spec "
       "export-force-local-attention export-model-type= export-te-mcore-model fp8-e4m3 fp8-hybrid "
       "inference-rng-tracker lazy-mpu-init local-rank= megatron-fsdp-version= "
       "moe-hybridep-pad-uneven-dispatch-inputs moe-upcycling-granularity= no-align-grad-reduce "
       "no-align-param-gather no-async-tensor-model-parallel-allreduce no-contiguous-buffers-in-local-ddp "
       "no-delay-grad-reduce no-pin-cpu-grads no-pin-cpu-params no-scatter-gather-tensors-in-pipeline "
       "num-layers-at-end-in-bf16= num-layers-at-start-in-bf16= optimizer-offload-fraction= "
       "overlap-cpu-optimizer-d2h-h2d te-rng-tracker use-contiguous-buffers-in-ddp use-cpu-initialization= "
       "use-gloo-process-groups= use-mamba-mem-eff-path= use-mcore-models "
       "use-torch-optimizer-for-cpu-offload "},
      {Fate::irrelevant, "inference",
       "decode-only-cuda-graphs enable-chunked-prefill flash-decode inference-batch-times-seqlen-threshold= "
       "inference-coordinator-port= inference-cuda-graph-all-prefills inference-cuda-graph-max-tokens= "
       "inference-cuda-graph-scope= inference-disable-ep-consensus inference-disable-triton-nvls-kernels "
       "inference-dynamic-batching inference-dynamic-batching-async-sched-mode= "
       "inference-dynamic-batching-block-size= inference-dynamic-batching-buffer-size-gb= "
       "inference-dynamic-batching-cuda-graph-mixed-prefill-count= "
       "inference-dynamic-batching-cuda-graph-sizing-distribution= inference-dynamic-batching-logprobs-mode= "
       "inference-dynamic-batching-mamba-memory-ratio= inference-dynamic-batching-max-requests= "
       "inference-dynamic-batching-max-tokens= inference-dynamic-batching-num-cuda-graphs= "
       "inference-dynamic-batching-paused-buffer-size-gb= inference-dynamic-batching-prefix-caching "
       "inference-dynamic-batching-prefix-caching-coordinator-policy= "
       "inference-dynamic-batching-prefix-caching-eviction-policy= "
       "inference-dynamic-batching-prefix-caching-mamba-gb= "
       "inference-dynamic-batching-prefix-caching-routing-alpha= "
       "inference-dynamic-batching-sampling-backend= inference-dynamic-batching-track-generated-token-events "
       "inference-dynamic-batching-track-paused-request-events "
       "inference-dynamic-batching-unified-memory-level= inference-fuse-tp-communication "
       "inference-grouped-gemm-backend= inference-logging-step-interval= inference-max-requests= "
       "inference-max-seq-length= inference-moe-disable-fused-quant-kernels "
       "inference-moe-token-dispatcher-type= inference-shards= inference-text-gen-server-logging "
       "inference-use-synchronous-zmq-collectives inference-wandb-logging max-tokens-to-oom= "
       "mlp-chunks-for-prefill= mlp-chunks-for-training= moe-pad-experts-for-cuda-graph-inference "
       "nccl-all-reduce-for-prefill num-speculative-tokens= output-bert-embeddings use-legacy-static-engine "},
      {Fate::irrelevant, "routing of tokens: loads are balanced here unless measured",
       "moe-enable-routing-replay  "
       " moe-router-force-biased= moe-router-force-load-balancing "
       "moe-router-padding-for-fp8 moe-router-padding-for-quantization "
       "moe-router-quantile-balancing-ema=  "},
      {Fate::noted, "parameters are gathered in 16 bits here", "fp4-param-gather fp8-param-gather "},
      {Fate::noted, "only the order in time differs",
       "defer-embedding-wgrad-compute ep-overlap-early-attn-memory-release "
       "overlap-dispatch-backward-with-experts-wgrad overlap-p2p-comm-warmup-flush= "
       "overlap-p2p-communication-warmup-flush overlap-param-gather-with-optimizer-step "
       "wgrad-deferral-limit= "},
      {Fate::noted, "buffers registered with NCCL and priorities of streams are the library's own speed here",
       "ddp-pad-buckets-for-high-nccl-busbw disable-symmetric-registration fsdp-manual-registration "
       "high-priority-a2a-comm-stream high-priority-stream-groups+ moe-flex-dispatcher-num-sms= "
       "moe-hybridep-num-blocks-permute= moe-hybridep-num-blocks-unpermute= "
       "moe-hybridep-num-sms-preprocessing= moe-hybridep-num-sms= nccl-communicator-config-path= use-nccl-ub "},
      {Fate::noted, "which chunks and which GEMMs overlap is as overlap_tensor has it",
       "disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag "
       "disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs no-tp-comm-bulk-dgrad "
       "no-tp-comm-bulk-wgrad no-tp-comm-overlap-ag no-tp-comm-overlap-rs no-tp-comm-split-ag "
       "no-tp-comm-split-rs tp-comm-bootstrap-backend= tp-comm-overlap-cfg= tp-comm-overlap-disable-qkv "
       "tp-comm-overlap-rs-dgrad "},
      {Fate::noted, "the allocator is modelled as it is by default",
       "activation-offload-fraction= empty-unused-memory-level= "
       "fine-grained-offloading-max-inflight-offloads= fsdp-db-use-persist-buf-on-alloc-fail "
       "fsdp-double-buffer keep-fp8-transpose-cache megatron-fsdp-max-pool-double-buffer "
       "min-offloaded-tensor-size= reuse-grad-buf-for-mxfp8-param-ag "},
      {Fate::noted, "Transformer Engine fuses as its stack in the catalog does",
       "fused-residual-rmsnorm mla-down-proj-fusion moe-permute-fusion-into-hybridep moe-single-grouped-bias "
       "moe-single-grouped-weight moe-use-grouped-tensor use-fused-weighted-squared-relu "
       "use-te-activation-func use-transformer-engine-op-fuser "},
      {Fate::refused, "layers of this form are not modelled",
       "apply-residual-connection-post-layernorm attention-output-gate cache-mla-latents "
       "moe-apply-probs-on-input moe-expert-rank-capacity-factor= moe-extended-tp moe-latent-size= "
       "no-rope-freq= qk-clip qk-l2-norm use-grouped-gemm-for-dense-mlp "
       "use-grouped-gemm-for-shared-expert use-legacy-models "},
      {Fate::refused, "the order of ranks or the communication differs from what is simulated",
       "create-all-gather-group ddp-num-buckets= ddp-param-name-patterns-for-fp32-local-accumulation+ "
       "ddp-reduce-scatter-with-fp32-accumulation distribute-saved-activations enable-full-sharding-in-hsdp "
       "fake-process-group megatron-fsdp-enable-fine-grained-param-gather "
       "microbatch-group-size-per-vp-stage= moe-combine-bwd-dtype=bf16 moe-dispatch-fwd-dtype=bf16 "
       "moe-ncclep-zero-copy no-data-sharding num-layers-per-stage= outer-dp-sharding-strategy=no_shard "
       "pipeline-model-parallel-comm-backend=nccl sharp-enabled-group= skip-train "
       "suggested-communication-unit-size= symmetric-ar-type= torch-fsdp2-no-reshard-after-forward "
       "use-ring-exchange-p2p use-sharp "},
      {Fate::refused, "not a decoder of one kind of layers",
       "bert-embedder-type=megatron bert-load= bert-no-binary-head biencoder-projection-dim=0 "
       "biencoder-shared-query-context-model decoder-num-layers= decoder-seq-length= "
       "dino-bottleneck-size=256 dino-freeze-last-layer=1 dino-head-hidden-size=2048 "
       "dino-local-crops-number=10 dino-local-img-size=96 dino-norm-last-layer dino-teacher-temp=0.07 "
       "dino-warmup-teacher-temp-epochs=30 dino-warmup-teacher-temp=0.04 "
       "disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu disable-mamba-mem-eff-path "
       "dsa-indexer-head-dim= dsa-indexer-k-norm-epsilon= dsa-indexer-k-norm-fp32 dsa-indexer-loss-coeff= "
       "dsa-indexer-n-heads= dsa-indexer-rope-interleaved dsa-indexer-skip-topk-offset=0 "
       "dsa-indexer-topk-freq=1 dsa-indexer-topk= dsa-indexer-use-sparse-loss dsa-kernel-backend=none "
       "enable-mhc-connections encoder-num-layers= encoder-seq-length= experimental-attention-variant= "
       "freeze-all-layers gdp-cutedsl-kernel gdp-num-chunk-states-to-recompute=2 gdp-num-householder=3 "
       "heterogeneous-layers-config-encoded-json= heterogeneous-layers-config-path= hybrid-attention-ratio= "
       "hybrid-context-parallel hybrid-layer-pattern= hybrid-mlp-ratio= hybrid-override-pattern= "
       "ict-head-size= ict-load= img-h=224 img-w=224 is-hybrid-model kitchen-attention-backend=sdpa "
       "kitchen-config-file= kitchen-recipe-number= linear-attention-freq= linear-conv-kernel-dim=4 "
       "linear-key-head-dim=128 linear-num-key-heads=16 linear-num-value-heads=32 linear-value-head-dim=128 "
       "mamba-head-dim=64 mamba-inference-conv-states-dtype=bf16 mamba-inference-ssm-states-dtype=bf16 "
       "mamba-num-groups=8 mamba-num-heads= mamba-state-dim=128 mamba-training-ssm-states-dtype= "
       "mhc-init-gating-factor=0.01 mhc-num-residual-streams=4 mhc-recompute-layer-num= "
       "mhc-sinkhorn-iterations=20 no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu "
       "num-channels=3 num-classes=1000 patch-dim=16 retro-add-retriever retro-project-dir= spec+ "
       "swin-backbone-type=tiny use-kitchen-attention vision-backbone-type=vit vision-pretraining "
       "vision-pretraining-type=classify "},
      {Fate::refused, "offloading of whole layers is not modelled",
       "cpu-offloading-num-layers=0 delay-offload-until-cuda-graph delta-offload-bytes-across-pp-ranks=0 "
       "moe-paged-stash moe-paged-stash-buffer-size-factor-cpu=0.0 "
       "moe-paged-stash-buffer-size-factor-cuda=1.1 moe-paged-stash-page-size=64 "},
      {Fate::refused, "Megatron-DeepSpeed's engine and its experts are not modelled",
       "create-moe-param-group deepspeed deepspeed-activation-checkpointing deepspeed-config= "
       "deepspeed_config= disable-moe-token-dropping ds-inference ds-sequence-parallel-size= mlp-type= "
       "moe-eval-capacity-factor= moe-expert-parallel-size= moe-min-capacity= moe-train-capacity-factor= "
       "aml-data-download-path= checkpoint-in-cpu contigious-checkpointing cpu-optimizer cpu_torch_adam "
       "data-efficiency-curriculum-learning disable-mem-efficient-ln disable-moe-top2-2nd-expert-sampling "
       "distribute-checkpointed-activations ds-sequence-parallel-fpdt ds-sequence-parallel-fpdt-chunk-size= "
       "ds-sequence-parallel-fpdt-offloading ds_fused_adam embedding-weights-in-fp32 "
       "enable-expert-tensor-parallelism enable-zbh1-exact-semantics enable-zbh1-pipeline expert-interval= "
       "force-ds-sequence-parallel hidden-size-teacher= inference kd kd-alpha-ce= kd-beta-ce= kd-temp= "
       "kill-switch-file= "
       "load-tag= load-teacher= local_rank= log-optimizer-states-to-tensorboard memory-centric-tiled-linear "
       "mmap-warmup mos no-load-lr-state num-attention-heads-teacher= num-experts-switch= num-experts-teacher+ "
       "num-key-value-heads= overlap-p2p-communication partition-activations "
       "pipeline-model-parallel-split-rank= profile-backward profile_steps= random-ltd remote-device=none "
       "repeated-dataloader reset-iteration return-data-index rotary-position-embeddings-theta= "
       "scattered-embeddings split-transformers standalone-embedding-stage synchronize-each-layer tile-factor= "
       "train-data-exact-num-epochs= train-desc-path= train-doc-idx-path= train-idx-path= "
       "train-sample-idx-path= train-shuffle-idx-path= universal-checkpoint use-dataset-only= "
       "use-flash-attn-builder use-pin-memory use-tutel zero-allgather-bucket-size= zero-contigious-gradients "
       "zero-reduce-bucket-size= zero-reduce-scatter "
       "no-pipeline-parallel pp-partition-method= topk= use-flash-attn-triton use-flash-attn-v1 use-flash-attn-v2 "
       "zero-stage=0 "},
      {Fate::refused, "layers of two precisions are not modelled",
       "disable-fp8-wgrad first-last-layers-bf16 fp16-lm-cross-entropy fp32-residual-connection "
       "fp8-interval=1 fp8-output-proj no-fp8-wgrad "},
      {Fate::refused, "only Adam with states in 32 bits is modelled",
       "exp-avg-dtype=fp32 exp-avg-sq-dtype=fp32 main-grads-dtype=fp32 main-params-dtype=fp32 "
       "megatron-fsdp-main-grads-dtype=fp32/auto megatron-fsdp-main-params-dtype=fp32/auto "
       "no-use-layer-wise-param-layout optimizer-cpu-offload optimizer-cuda-graph optimizer=adam "
       "use-precision-aware-optimizer "},
      {Fate::refused, "weights that are sharded again inside a tensor-parallel group are not modelled",
       "expert-tensor-parallel-num-weight-shards= gtp-expert-remat-nccl-ub gtp-remat-nccl-ub "
       "gtp-remat-opt-in-modules+ gtp-remat-reduce-scatter-with-fp32-accumulation "
       "tensor-parallel-num-weight-shards= "},
      {Fate::refused, "reinforcement learning is not modelled",
       "grpo-clamp-eps-lower=0.01 grpo-clamp-eps-upper=0.01 grpo-entropy-term-weight=0.0 "
       "grpo-filter-groups-with-same-reward grpo-group-size=2 grpo-iterations=2 grpo-kl-beta=0.001 "
       "grpo-prompts-per-step=32 langrl-env-config= perform-rl-step refit-method=gloo "
       "rl-consumption-granularity=B rl-default-temperature=1.0 rl-default-top-k=-1 rl-default-top-p=0 "
       "rl-durable-rollout-bank rl-generation-lag= rl-importance-sampling-truncation-coef= "
       "rl-inference-expert-model-parallel-size= rl-inference-expert-tensor-model-parallel-size= "
       "rl-inference-logprobs-is-correction rl-inference-model-unified-memory-level=0 rl-inference-parsers+ "
       "rl-inference-pipeline-model-parallel-size= rl-inference-tensor-model-parallel-size= "
       "rl-kv-cache-management-mode=persist rl-max-inflight-requests= "
       "rl-offload-inference-model-weights-when-idle rl-offload-optimizer-during-inference "
       "rl-partial-rollouts rl-persist-cuda-graphs rl-profile rl-profile-dir= rl-prompts-per-eval=32 "
       "rl-rollout-bank-dir= rl-rollout-bank-max-bytes=0 rl-sequence-packing-algo=fifo "
       "rl-sequence-packing-max-sequences-per-bin=50 rl-skip-bos-token rl-submission-granularity=B "
       "rl-training-cuda-graphs rl-use-sequence-packing rl-verify-model-weights-swap "},
      {Fate::refused, "the exchange of context-parallel ranks in two levels is not modelled",
       "hierarchical-context-parallel-sizes+ max-seqlen-per-dp-cp-rank= "},
      {Fate::refused, "the model is taken from a checkpoint or a file that is not here",
       "moe-use-upcycling num-layers-teacher= te-precision-config-file= use-checkpoint-args "
       "use-mp-args-from-checkpoint-args yaml-cfg= "},
      {Fate::refused, "multi-token prediction has layers of its own like the model's last one, all of them trained",
       "mtp-detach-heads mtp-hsm mtp-hybrid-override-pattern= mtp-standalone mtp-use-repeated-layer "},
      {Fate::refused, "names of earlier versions whose meaning has changed",
       "batch-size= fp4= fp8= moe-layer-recompute warmup= "},
  };
}

}  // namespace manyworlds::experiments::jobs
