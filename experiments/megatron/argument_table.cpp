#include "experiments/megatron/argument_table.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr Takes kSwitch = Takes::nothing, kOne = Takes::one, kSeveral = Takes::several;

KnownName named(const char* name, Takes takes, const char* settings) {
  KnownName one{name, settings};
  one.takes = takes;
  return one;
}

/// An argument that is one setting.
KnownName direct(const char* name, Takes takes, const char* setting, const char* values = "", const char* absent = "") {
  KnownName one = named(name, takes, setting);
  one.values = values, one.absent = absent;
  return one;
}

KnownName read_by_code(const char* name, Takes takes, const char* settings, const char* why) {
  KnownName one = named(name, takes, settings);
  one.values = "*", one.why = why;
  return one;
}

std::vector<KnownName> direct_arguments() {
  return {
      direct("num-layers", kOne, "model.layers"),
      direct("hidden-size", kOne, "model.hidden"),
      direct("num-attention-heads", kOne, "model.heads"),
      direct("kv-channels", kOne, "model.head_dim", "", "0"),
      direct("seq-length", kOne, "model.sequence"),
      direct("normalization", kOne, "model.norm", "LayerNorm=layer_norm RMSNorm=rms_norm", "layer_norm"),
      direct("mtp-num-layers", kOne, "model.mtp_layers"),
      direct("untie-embeddings-and-output-weights", kSwitch, "model.tied_embeddings", "false", "true"),
      direct("disable-bias-linear", kSwitch, "model.biases", "false", "true"),
      direct("moe-router-topk", kOne, "model.experts_per_token", "", "2"),
      direct("moe-ffn-hidden-size", kOne, "model.expert_ffn_hidden", "", "0"),
      direct("moe-shared-expert-intermediate-size", kOne, "model.shared_ffn_hidden", "", "0"),
      direct("context-parallel-size", kOne, "strategy.cp", "", "1"),
      direct("cp-comm-type", kSeveral, "strategy.cp_comm", "p2p=ring all_gather=all_gather a2a=ulysses", "ring"),
      direct("micro-batch-size", kOne, "strategy.micro_batch", "", "1"),
      direct("overlap-grad-reduce", kSwitch, "strategy.overlap_grad_reduce", "true", "false"),
      direct("ddp-bucket-size", kOne, "strategy.bucket_parameters"),
      direct("moe-expert-capacity-factor", kOne, "strategy.capacity_factor", "", "0"),
      direct("moe-token-drop-policy", kOne, "strategy.token_drop", "probs=probs position=position"),
      direct("moe-pad-expert-input-to-capacity", kSwitch, "strategy.pad_to_capacity", "true", "false"),
      direct("deterministic-mode", kSwitch, "strategy.stack.deterministic", "true", "false"),
      direct("cross-entropy-loss-fusion", kSwitch, "strategy.stack.fused_loss", "true", "false"),
      direct("moe-permute-fusion", kSwitch, "strategy.stack.permute_fusion", "true", "false"),
      direct("moe-router-fusion", kSwitch, "strategy.stack.router_fusion", "true", "false"),
      direct("moe-shared-expert-overlap", kSwitch, "strategy.stack.overlap_shared_expert", "true", "false"),
      direct("overlap-moe-expert-parallel-comm", kSwitch, "strategy.stack.overlap_experts", "true", "false"),
      direct("delay-wgrad-compute", kSwitch, "strategy.stack.delay_expert_weights", "true", "false"),
      direct("no-bias-dropout-fusion", kSwitch, "strategy.stack.bias_dropout_fusion", "false", "true"),
      direct("no-rope-fusion", kSwitch, "strategy.stack.rope_fusion", "false", "true"),
      direct("no-gradient-accumulation-fusion", kSwitch, "strategy.stack.gradient_accumulation_fusion", "false",
             "true"),
      direct("use-tp-pp-dp-mapping", kSwitch, "placement.order", "tp-cp-ep-pp-dp"),
      direct("no-overlap-p2p-communication", kSwitch, "strategy.stack.overlap_transfers", "false"),
  };
}

std::vector<KnownName> model_arguments() {
  return {
      read_by_code("ffn-hidden-size", kOne, "model.ffn_hidden",
                   "without it 4 x hidden, or two thirds of that in whole 64 with swiglu"),
      read_by_code("group-query-attention", kSwitch, "model.kv_heads", "as many as num-query-groups"),
      read_by_code("num-query-groups", kOne, "model.kv_heads", "with group-query-attention; 1"),
      read_by_code("vocab-size", kOne, "model.vocabulary", "in whole make-vocab-size-divisible-by x tp"),
      read_by_code("padded-vocab-size", kOne, "model.vocabulary", "as it is"),
      read_by_code("vocab-extra-ids", kOne, "model.vocabulary", "beside the others"),
      read_by_code("make-vocab-size-divisible-by", kOne, "model.vocabulary", "128"),
      read_by_code("tokenizer-type", kOne, "model.vocabulary", "the tokenizer's, if no size is given"),
      read_by_code("swiglu", kSwitch, "model.activation", "swiglu"),
      read_by_code("quick-geglu", kSwitch, "model.activation", "swiglu: a gate matrix too"),
      read_by_code("squared-relu", kSwitch, "model.activation", "gelu, which costs the same"),
      read_by_code("openai-gelu", kSwitch, "model.activation", "gelu"),
      read_by_code("position-embedding-type", kOne, "model.position", "learned_absolute, rope or yarn"),
      read_by_code("use-rotary-position-embeddings", kSwitch, "model.position", "rotary"),
      read_by_code("attention-dropout", kOne, "model.dropout", "0.1; both dropouts or none"),
      read_by_code("hidden-dropout", kOne, "model.dropout", "0.1; both dropouts or none"),
      read_by_code("qk-layernorm", kSwitch, "model.query_key_norm", "latent attention has its norms anyway"),
      read_by_code("window-size", kOne, "model.window", "LEFT,0 is LEFT + 1 tokens"),
      read_by_code("window-attn-skip-freq", kOne, "model.window_every", "2; without it every layer has the window"),
      read_by_code("num-experts", kOne, "model.experts", "other arguments of experts count only with it"),
      read_by_code("moe-layer-freq", kOne, "model.dense_layers", "1, or ([0]*A+[1]*B)"),
      read_by_code("moe-router-num-groups", kOne, "model.expert_groups", "counts with moe-router-group-topk; 1"),
      read_by_code("moe-router-group-topk", kOne, "model.groups_per_token", "with moe-router-num-groups; all groups"),
      read_by_code("moe-router-topk-limited-devices", kOne, "model.groups_per_token",
                   "without moe-router-group-topk; the groups are the experts of a rank"),
      read_by_code("multi-latent-attention", kSwitch, "model.attention", "latent"),
      read_by_code("q-lora-rank", kOne, "model.query_rank", "with multi-latent-attention; not compressed"),
      read_by_code("kv-lora-rank", kOne, "model.kv_rank", "with multi-latent-attention; 32"),
      read_by_code("qk-head-dim", kOne, "model.head_dim", "with multi-latent-attention; 128"),
      read_by_code("qk-pos-emb-head-dim", kOne, "model.rotary_dim", "with multi-latent-attention; 64"),
      read_by_code("v-head-dim", kOne, "model.value_dim", "with multi-latent-attention; 128"),
  };
}

std::vector<KnownName> layout_arguments() {
  const char* stages = "strategy.virtual_stages, strategy.schedule";
  const char* layers = "strategy.split, strategy.stage_layers";
  const char* recompute = "strategy.recompute, strategy.recompute_modules";
  return {
      read_by_code("tensor-model-parallel-size", kOne, "strategy.tp", "1"),
      read_by_code("model-parallel-size", kOne, "strategy.tp", "the name of 2020"),
      read_by_code("pipeline-model-parallel-size", kOne, "strategy.pp", "1"),
      read_by_code("expert-model-parallel-size", kOne, "strategy.ep", "1"),
      read_by_code("expert-tensor-parallel-size", kOne, "strategy.etp", "as tp"),
      read_by_code("sequence-parallel", kSwitch, "strategy.sequence_parallel", "off without tensor parallelism"),
      read_by_code("num-layers-per-virtual-pipeline-stage", kOne, stages, "layers / pp / this"),
      read_by_code("num-virtual-stages-per-pipeline-rank", kOne, stages, "more than one: interleaved"),
      read_by_code("microbatch-group-size-per-virtual-pipeline-stage", kOne, stages, "only pp, its default"),
      read_by_code("pipeline-model-parallel-layout", kOne, "strategy.stage_layers", "E, t, m and L by stage"),
      read_by_code("decoder-first-pipeline-num-layers", kOne, "strategy.stage_layers", "the others evenly"),
      read_by_code("decoder-last-pipeline-num-layers", kOne, "strategy.stage_layers", "the others evenly"),
      read_by_code("account-for-embedding-in-pipeline-split", kSwitch, layers, "the embedding counts as a layer"),
      read_by_code("account-for-loss-in-pipeline-split", kSwitch, layers, "the loss counts as a layer"),
      read_by_code("global-batch-size", kOne, "strategy.global_batch", "without it micro-batch x data-parallel size"),
      read_by_code("step-batch-size-schedule", kSeveral, "strategy.global_batch", "its last step, if no size is given"),
      read_by_code("recompute-activations", kSwitch, recompute, "selective"),
      read_by_code("recompute-granularity", kOne, recompute, "full or selective"),
      read_by_code("recompute-method", kOne, "strategy.recompute_layers", "uniform of one layer, or block"),
      read_by_code("recompute-num-layers", kOne, "strategy.recompute_layers", "with the block method"),
      read_by_code("recompute-modules", kSeveral, recompute, "core_attn alone is selective"),
      read_by_code("fine-grained-activation-offloading", kSwitch, "strategy.offload_modules", "of offload-modules"),
      read_by_code("offload-modules", kSeveral, "strategy.offload_modules", "with fine-grained-activation-offloading"),
      read_by_code("use-distributed-optimizer", kSwitch, "strategy.zero", "1, if there are replicas"),
      read_by_code("use-megatron-fsdp", kSwitch, "strategy.zero", "by data-parallel-sharding-strategy"),
      read_by_code("use-torch-fsdp2", kSwitch, "strategy.zero", "3"),
      read_by_code("data-parallel-sharding-strategy", kOne, "strategy.zero",
                   "no_shard 0, optim 1, optim_grads 2, "
                   "optim_grads_params 3"),
      read_by_code("num-distributed-optimizer-instances", kOne, "strategy.zero_group", "replicas / this"),
  };
}

std::vector<KnownName> stack_arguments() {
  const char* graphs = "strategy.stack.cuda_graphs";
  const char* old = "strategy.stack, strategy.recompute";
  return {
      read_by_code("overlap-param-gather", kSwitch, "strategy.stack.overlap_parameters", "if the optimizer is sharded"),
      read_by_code("grad-reduce-in-bf16", kSwitch, "strategy.stack.reduce_in_16bit", "true"),
      read_by_code("accumulate-allreduce-grads-in-fp32", kSwitch, "strategy.stack.reduce_in_16bit",
                   "false; fp16 without it: true"),
      read_by_code("megatron-fsdp-grad-comm-dtype", kOne, "strategy.stack.reduce_in_16bit", "bf16 or fp32"),
      read_by_code("tp-comm-overlap", kSwitch, "strategy.stack.overlap_tensor", "with sequence parallelism"),
      read_by_code("bf16", kSwitch, "strategy.stack.precision", "bf16"),
      read_by_code("fp16", kSwitch, "strategy.stack.precision", "fp16"),
      read_by_code("fp8-format", kOne, "strategy.stack.precision", "fp8, or mxfp8 by fp8-recipe"),
      read_by_code("fp8-recipe", kOne, "strategy.stack.precision", "delayed, tensorwise or mxfp8"),
      read_by_code("fp4-format", kOne, "strategy.stack.precision", "nvfp4"),
      read_by_code("transformer-impl", kOne, "strategy.stack.layers, strategy.stack.attention",
                   "transformer_engine; local: attention is unfused"),
      read_by_code("attention-backend", kOne, "strategy.stack.attention",
                   "auto, fused: cudnn; flash: flash2; unfused, local: unfused"),
      read_by_code("use-flash-attn", kSwitch, "strategy.stack.attention",
                   "nothing with Transformer Engine, which chooses; with local layers flash2"),
      read_by_code("cuda-graph-impl", kOne, graphs, "none, or by cuda-graph-scope"),
      read_by_code("cuda-graph-scope", kSeveral, graphs, "full: all; without experts' modules: all_but_experts"),
      read_by_code("cuda-graph-modules", kSeveral, graphs, "as cuda-graph-scope"),
      read_by_code("enable-cuda-graph", kSwitch, graphs, "as cuda-graph-impl local"),
      read_by_code("external-cuda-graph", kSwitch, graphs, "as cuda-graph-impl transformer_engine"),
      read_by_code("moe-token-dispatcher-type", kOne, "strategy.stack.dispatcher",
                   "alltoall; flex: by its backend; allgather is not modelled over several ranks"),
      read_by_code("moe-flex-dispatcher-backend", kOne, "strategy.stack.dispatcher", "deepep or hybridep"),
      read_by_code("moe-enable-deepep", kSwitch, "strategy.stack.dispatcher", "deepep"),
      read_by_code("moe-deepep-num-sms", kOne, "strategy.stack.dispatcher_sms", "of the deepep backend"),
      read_by_code("moe-grouped-gemm", kSwitch, "strategy.expert_gemm", "experts need it"),
      read_by_code("no-bias-gelu-fusion", kSwitch, "strategy.stack.bias_activation_fusion", "false without swiglu"),
      read_by_code("no-bias-swiglu-fusion", kSwitch, "strategy.stack.bias_activation_fusion", "false with swiglu"),
      read_by_code("no-masked-softmax-fusion", kSwitch, "strategy.stack.masked_softmax_fusion",
                   "false with unfused attention of local layers; nothing with other"),
      read_by_code("cross-entropy-fusion-impl", kOne, "strategy.stack.fused_loss", "native; te: false, its own kernel"),
      read_by_code("DDP-impl", kOne, "strategy.stack", "Megatron-LM of 2021"),
      read_by_code("activations-checkpoint-method", kOne, old, "Megatron-LM of 2021; full"),
      read_by_code("activations-checkpoint-num-layers", kOne, "strategy.recompute_layers", "as recompute-num-layers"),
      read_by_code("checkpoint-activations", kSwitch, old, "Megatron-LM of 2021; full"),
      read_by_code("checkpoint-num-layers", kOne, old, "1"),
  };
}

std::vector<KnownName> mapped_arguments() {
  std::vector<KnownName> all;
  for (auto& part : {direct_arguments(), model_arguments(), layout_arguments(), stack_arguments()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

const KnownNames& megatron_arguments() {
  static const KnownNames arguments("Megatron-LM", NameKind::argument, mapped_arguments(), other_arguments());
  return arguments;
}

const KnownName* find_argument(const std::string& name) {
  return megatron_arguments().find(name);
}

bool is_of_experts(const KnownName& known) {
  return known.name.starts_with("moe-") || known.name == "overlap-moe-expert-parallel-comm" ||
         known.name == "delay-wgrad-compute";
}

}  // namespace manyworlds::experiments::jobs
