// The software's part of Megatron-LM's arguments: kernels, precision, what runs beside what.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/megatron/reader.hpp"

namespace manyworlds::experiments::jobs {

/// Arguments that only Megatron-LM of 2021 has tell which software it is, unless the kind of file does.
void MegatronReader::read_software() {
  if (!arguments_.stack.empty()) {
    legacy_ = true;
    job_.stack = arguments_.stack;
    return;
  }
  const Argument* old = first_of({"DDP-impl", "activations-checkpoint-method", "checkpoint-activations",
                                  "no-contiguous-buffers-in-local-ddp", "use-contiguous-buffers-in-ddp"});
  legacy_ = old != nullptr;
  job_.stack = legacy_ ? "megatron-2021" : "megatron-core";
  if (legacy_) note(fmt::format("assumed: Megatron-LM of 2021, which --{} is an argument of", old->name));
  if (legacy_ && text("DDP-impl") == "torch")
    note("assumed: gradients are reduced after the backward pass, as with --DDP-impl local");
}

/// Transformer Engine's kernel of the loss keeps no further copy of the logits, as the compiler's fusion does.
void MegatronReader::read_loss() {
  const char* kernel = "cross-entropy-fusion-impl";
  const std::string whose = text(kernel, "native");
  if (whose != "native" && whose != "te")
    fail(kernel, fmt::format(" {} is not modelled; known are native and te", whose));
  if (whose == "native" || !given("cross-entropy-loss-fusion")) return;
  std::erase_if(job_.settings, [](const JobSetting& one) { return one.key == "strategy.stack.fused_loss"; });
  set("strategy.stack.fused_loss", "false", kernel);
}

void MegatronReader::read_stack() {
  read_loss();
  read_precision();
  read_attention();
  read_reduction();
  read_overlap();
  if (!legacy_) read_graphs();
  const bool gated = given("swiglu");
  const char* fusion = gated ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion";
  set("strategy.stack.bias_activation_fusion", given(fusion) ? "false" : "true", fusion);
}

void MegatronReader::read_attention() {
  const std::string layers = text("transformer-impl", legacy_ ? "local" : "transformer_engine");
  if (layers != "transformer_engine" && layers != "local")
    fail("transformer-impl", fmt::format(" {} is not modelled", layers));
  const bool engine = layers == "transformer_engine";
  const std::string backend = text("attention-backend", "auto");
  const std::string kernel = translated("auto=cudnn fused=cudnn flash=flash2 unfused=unfused local=unfused", backend);
  if (kernel.empty()) fail("attention-backend", fmt::format(" {} is not modelled", backend));
  const bool flash = given("use-flash-attn");
  const std::string attention = engine ? kernel : flash ? "flash2" : "unfused";
  fused_ = attention != "unfused";
  if (!legacy_) set("strategy.stack.layers", engine ? "transformer_engine" : "framework", "transformer-impl");
  set("strategy.stack.attention", attention,
      given("attention-backend") ? "attention-backend"
      : engine                   ? "transformer-impl"
                                 : "use-flash-attn");
  if (given("no-masked-softmax-fusion") && !fused_) read_unfused_softmax(engine);
}

/// Megatron-LM's own layers have scale, mask and softmax kernel by kernel then, and between casts if the softmax is in
/// fp32; Transformer Engine's ask a variable of the environment (transformer_engine/pytorch/softmax.py).
void MegatronReader::read_unfused_softmax(bool engine) {
  const char* name = "no-masked-softmax-fusion";
  if (engine)
    return note(
        "--no-masked-softmax-fusion changes nothing: Transformer Engine fuses its softmax unless "
        "NVTE_MASKED_SOFTMAX_FUSION=0 is set where the job runs, which is not looked at");
  set("strategy.stack.masked_softmax_fusion", "false", name);
  const bool in_fp32 = given("attention-softmax-in-fp32") || given("apply-query-key-layer-scaling") ||
                       (legacy_ && !given("no-query-key-layer-scaling"));
  if (!in_fp32)
    note(
        "--no-masked-softmax-fusion is modelled with the casts of a softmax in fp32; without "
        "--attention-softmax-in-fp32 it takes less time");
}

void MegatronReader::read_precision() {
  if (given("fp16") && given("bf16")) fail("fp16", " and --bf16 exclude one another");
  if (!given("fp16") && !given("bf16"))
    fail_at(arguments_.arguments.front().place, "training in 32 bits, without --bf16 or --fp16, is not modelled");
  if (given("fp4-format")) return set("strategy.stack.precision", "nvfp4", "fp4-format");
  if (given("fp8-format") && text("fp8-format") != "None") {
    const std::string recipe = text("fp8-recipe", "delayed");
    const std::string precision = translated("delayed=fp8 tensorwise=fp8 mxfp8=mxfp8", recipe);
    if (precision.empty())
      fail("fp8-recipe", fmt::format(" {} is not modelled; known are delayed, tensorwise, mxfp8", recipe));
    return set("strategy.stack.precision", precision, "fp8-format");
  }
  set("strategy.stack.precision", given("fp16") ? "fp16" : "bf16", given("fp16") ? "fp16" : "bf16");
}

void MegatronReader::read_reduction() {
  const std::string communicated = text("megatron-fsdp-grad-comm-dtype");
  bool narrow = given("grad-reduce-in-bf16") || (given("use-megatron-fsdp") && communicated == "bf16");
  if (given("fp16") && !given("accumulate-allreduce-grads-in-fp32")) narrow = true;
  set("strategy.stack.reduce_in_16bit", narrow ? "true" : "false",
      given("grad-reduce-in-bf16") ? "grad-reduce-in-bf16" : "accumulate-allreduce-grads-in-fp32");
}

void MegatronReader::read_overlap() {
  const bool sharded = zero_ == 1 || zero_ == 2;
  set("strategy.stack.overlap_parameters", given("overlap-param-gather") && sharded ? "true" : "false",
      "overlap-param-gather");
  const bool chunks = given("tp-comm-overlap") && given("sequence-parallel") && tp_ > 1;
  set("strategy.stack.overlap_tensor", chunks ? "true" : "false", "tp-comm-overlap");
  if (given("tp-comm-overlap") && !given("sequence-parallel") && tp_ > 1)
    fail("tp-comm-overlap", " needs --sequence-parallel");
}

/// Modules of experts are launched by the host unless a graph has the whole step.
void MegatronReader::read_graphs() {
  std::string how = text("cuda-graph-impl", "none");
  std::string because = "cuda-graph-impl";
  for (const char* name : {"enable-cuda-graph", "external-cuda-graph"})
    if (given(name)) how = "local", because = name;
  if (how == "none" || how == "None") return set("strategy.stack.cuda_graphs", "none", because);
  std::vector<std::string> scope = words("cuda-graph-scope");
  for (const std::string& word : words("cuda-graph-modules")) scope.push_back(word);
  const auto has = [&](const char* word) { return std::find(scope.begin(), scope.end(), word) != scope.end(); };
  if (has("full_iteration") || how == "full_iteration" || (!experts_ && (scope.empty() || has("full"))))
    return set("strategy.stack.cuda_graphs", "all", because);
  if (!experts_ && has("attn") && has("mlp")) return set("strategy.stack.cuda_graphs", "all", because);
  if (experts_ && has("attn") && !has("moe")) return set("strategy.stack.cuda_graphs", "all_but_experts", because);
  fail(because,
       ": graphs of these modules are not modelled; known are full_iteration, of dense models whole layers, of "
       "others attn without moe");
}

}  // namespace manyworlds::experiments::jobs
