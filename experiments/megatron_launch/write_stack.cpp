// The software's part of Megatron-LM's arguments: kernels, precision, what runs beside what.
#include "experiments/megatron_launch/writer.hpp"

namespace manyworlds::experiments::jobs {

using core::workload::AttentionKernel;
using core::workload::CudaGraphs;
using core::workload::Dispatcher;
using core::workload::LayerLibrary;
using core::workload::Precision;

void MegatronWriter::write_stack() {
  write_precision();
  write_reduction();
  if (!stack_.bias_activation_fusion)
    add_switch(model_.activation == core::workload::Activation::swiglu && !legacy_ ? "no-bias-swiglu-fusion"
                                                                                   : "no-bias-gelu-fusion",
               {"strategy.stack.bias_activation_fusion"});
  const bool local = legacy_ || stack_.layers == LayerLibrary::framework;
  if (local && stack_.attention == AttentionKernel::unfused && !stack_.masked_softmax_fusion)
    add_switch("no-masked-softmax-fusion", {"strategy.stack.masked_softmax_fusion"});
  if (legacy_) return add("DDP-impl", "local", {});
  write_attention();
  if (stack_.overlap_parameters && strategy_.zero > 0 && strategy_.overlap_grad_reduce)  // it asserts the latter
    add_switch("overlap-param-gather", {"strategy.stack.overlap_parameters"});
  if (stack_.overlap_tensor && strategy_.tp > 1 && strategy_.sequence_parallel)
    add_switch("tp-comm-overlap", {"strategy.stack.overlap_tensor"});
  write_graphs();
  if (model_.has_experts()) write_dispatcher();
}

void MegatronWriter::write_precision() {
  const std::vector<std::string> keys{"strategy.stack.precision"};
  add_switch(stack_.precision == Precision::fp16 ? "fp16" : "bf16", keys);
  const auto format = [&](const char* name, const char* value, const char* recipe_name, const char* recipe) {
    add(name, value, keys);
    add(recipe_name, recipe, keys);
  };
  if (stack_.precision == Precision::fp8) format("fp8-format", "hybrid", "fp8-recipe", "tensorwise");
  if (stack_.precision == Precision::mxfp8) format("fp8-format", "e4m3", "fp8-recipe", "mxfp8");
  if (stack_.precision == Precision::nvfp4) format("fp4-format", "e2m1", "fp4-recipe", "nvfp4");
}

void MegatronWriter::write_attention() {
  const bool engine = stack_.layers == LayerLibrary::transformer_engine;
  add("transformer-impl", engine ? "transformer_engine" : "local", {"strategy.stack.layers"});
  const std::vector<std::string> keys{"strategy.stack.attention"};
  if (!engine) {
    if (stack_.attention != AttentionKernel::unfused) add_switch("use-flash-attn", keys);
    return;
  }
  const bool flash = stack_.attention == AttentionKernel::flash || stack_.attention == AttentionKernel::flash2;
  const char* backend = flash ? "flash" : stack_.attention == AttentionKernel::cudnn ? "fused" : "unfused";
  add("attention-backend", backend, keys);
}

void MegatronWriter::write_reduction() {
  const std::vector<std::string> keys{"strategy.stack.reduce_in_16bit"};
  const bool half = stack_.precision == Precision::fp16;
  if (stack_.reduce_in_16bit && !half) add_switch("grad-reduce-in-bf16", keys);
  if (!stack_.reduce_in_16bit && half) add_switch("accumulate-allreduce-grads-in-fp32", keys);
}

void MegatronWriter::write_graphs() {
  const std::vector<std::string> keys{"strategy.stack.cuda_graphs"};
  if (stack_.cuda_graphs == CudaGraphs::none) return;
  if (stack_.cuda_graphs == CudaGraphs::all) {
    add("cuda-graph-impl", "full_iteration", keys);
    return add_switch("no-check-for-nan-in-loss-and-grad", {});
  }
  add("cuda-graph-impl", "transformer_engine", keys);
  if (model_.has_experts()) add_several("cuda-graph-modules", {"attn", "moe_router", "moe_preprocess"}, keys);
}

void MegatronWriter::write_dispatcher() {
  const std::vector<std::string> keys{"strategy.stack.dispatcher"};
  add_switch("moe-grouped-gemm", {"strategy.expert_gemm"});
  const bool flex = stack_.dispatcher != Dispatcher::all_to_all;
  add("moe-token-dispatcher-type", flex ? "flex" : "alltoall", keys);
  if (!flex) return;
  const bool deepep = stack_.dispatcher == Dispatcher::deepep;
  add("moe-flex-dispatcher-backend", deepep ? "deepep" : "hybridep", keys);
  if (deepep) add("moe-deepep-num-sms", stack_.dispatcher_sms, {"strategy.stack.dispatcher_sms"});
}

}  // namespace manyworlds::experiments::jobs
