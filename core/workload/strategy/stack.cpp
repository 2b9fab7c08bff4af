// The option table of a software stack.
#include "core/workload/strategy/stack.hpp"

namespace manyworlds::core::workload {

const OptionTable<Stack>& stack_options() {
  static const OptionTable<Stack> table{
      choice("attention", &Stack::attention, {"unfused", "flash", "flash2", "cudnn"},
             "attention kernels: unfused GEMMs, softmax and dropout; flash: the first fused ones (FlashAttention 1, "
             "Triton); flash2: FlashAttention 2; cudnn: those written for the GPU (cuDNN, FlashAttention 3)"),
      choice("precision", &Stack::precision, compute::precision_names(),
             "precision of the layers' GEMMs, by default bf16, or fp16 if the GPU has no bf16; below 16 bits separate "
             "kernels quantise the inputs"),
      option("overlap_input_gradient", &Stack::overlap_input_gradient,
             "the collective of a layer's input gradient runs beside the GEMM of its weight gradient"),
      option("overlap_tensor", &Stack::overlap_tensor,
             "collectives of sequence parallelism run in chunks during the GEMM that produces or consumes their data"),
      option("tensor_chunks", &Stack::tensor_chunks,
             "chunks of tokens into which overlap_tensor divides a GEMM and its collective; 0: one per step of the "
             "collective's ring (tp)",
             {0, 1'024}),
      choice("cuda_graphs", &Stack::cuda_graphs, {"none", "all_but_experts", "all"},
             "what CUDA graphs launch, without host overhead: nothing, everything except experts and their exchange, "
             "everything"),
      choice("dispatcher", &Stack::dispatcher, {"all_to_all", "hybrid_ep", "deepep"},
             "how tokens go to their experts: all_to_all: a copy for each; hybrid_ep, deepep: once to each rank and "
             "node that holds some of them, by the kernels of HybridEP or DeepEP"),
      option("dispatcher_sms", &Stack::dispatcher_sms,
             "deepep: compute units that its kernels run on (Megatron-LM's moe_deepep_num_sms)", {1, 1'024}, "units"),
      option("overlap_experts", &Stack::overlap_experts,
             "tokens are sent to their experts and back during the kernels of another micro-batch (Megatron-Core's "
             "overlap_moe_expert_parallel_comm)"),
      option("overlap_shared_expert", &Stack::overlap_shared_expert,
             "the shared expert's forward pass overlaps with the dispatch of tokens to the other experts, its backward "
             "pass with the dispatch of gradients (Megatron-LM's moe_shared_expert_overlap)"),
      option("delay_expert_weights", &Stack::delay_expert_weights,
             "weight gradients of the experts are computed during the exchange of token gradients (Megatron-LM's "
             "delay_wgrad_compute)"),
      option("bias_activation_fusion", &Stack::bias_activation_fusion,
             "bias and activation function, or both halves of SwiGLU, are one kernel (bias_gelu_fusion, "
             "bias_swiglu_fusion)"),
      option("bias_dropout_fusion", &Stack::bias_dropout_fusion, "bias, dropout and residual are one kernel"),
      option(
          "masked_softmax_fusion", &Stack::masked_softmax_fusion,
          "scale, mask and softmax of unfused attention are one kernel (masked_softmax_fusion); else PyTorch's, one by "
          "one, in fp32"),
      option(
          "norm_fusion", &Stack::norm_fusion,
          "RMSNorm is one kernel each way (Transformer Engine, Apex, Triton, a compiler); else PyTorch's kernels, one "
          "by one"),
      option("rope_fusion", &Stack::rope_fusion, "rotary positions are one kernel (apply_rope_fusion)"),
      option("grouped_query_fusion", &Stack::grouped_query_fusion,
             "attention reads keys and values that heads share; else they are repeated for every head first"),
      option("projection_fusion", &Stack::projection_fusion,
             "queries, keys and values are one GEMM, and so are both halves of SwiGLU; else each weight has its own, "
             "and the gradients of their input are added"),
      option("cross_entropy_fusion", &Stack::cross_entropy_fusion,
             "the loss is Megatron-LM's fused one (cross_entropy_loss_fusion); else PyTorch's kernels, one by one"),
      option("loss_chunks", &Stack::loss_chunks,
             "chunks of tokens that go through vocabulary layer and loss one after another, each followed by its "
             "backward pass, so that the logits of one are in memory (torchtitan's ChunkedLossWrapper)",
             {1, 1'024}),
      option("optimizer_fusion", &Stack::optimizer_fusion,
             "Adam is one kernel; else one for each of its operations (PyTorch's foreach)"),
      option("sequence_first", &Stack::sequence_first,
             "the sequence is the first dimension of tensors (Megatron-LM), so that collectives of sequence "
             "parallelism write what GEMMs read; else it is copied (PyTorch's DTensor), unless overlap_tensor"),
      option("permute_fusion", &Stack::permute_fusion,
             "tokens are put in the order of their experts, and back, by one kernel (moe_permute_fusion)"),
      option("router_fusion", &Stack::router_fusion, "31 kernels of the router instead of 72 (moe_router_fusion)"),
      option(
          "gradient_accumulation_fusion", &Stack::gradient_accumulation_fusion,
          "GEMMs add gradients of weights to those of earlier micro-batches; else they write 16 bits, which a kernel "
          "adds"),
      option(
          "recompute_unused", &Stack::recompute_unused,
          "recomputation runs all kernels of its modules (PyTorch's checkpoint()); else not the output projection of "
          "a dense feed-forward layer, whose result no backward pass reads (XLA)"),
      option("overlap_transfers", &Stack::overlap_transfers,
             "kernels continue while activations and gradients are sent to other pipeline ranks (Megatron-LM's "
             "overlap_p2p_comm); otherwise the next pass waits until they are sent"),
      option(
          "scatter_transfers", &Stack::scatter_transfers,
          "without sequence parallelism, each tensor rank sends its share of a pipeline transfer, which the receivers "
          "gather (Megatron-LM's scatter_gather_tensors_in_pipeline of 2021 to 2023; Narayanan et al. 2021, section "
          "4.1); else each sends all of it"),
      option(
          "post_validation", &Stack::post_validation,
          "the optimizer runs as soon as a rank has its gradients, whose norm is checked afterwards (Qi et al. 2024, "
          "section 4): a rank's step lasts from its own first kernel to its own end"),
      option("overlap_parameters", &Stack::overlap_parameters,
             "zero 1 and 2: parameters are gathered during the next forward pass"),
      option("reduce_in_16bit", &Stack::reduce_in_16bit, "gradients are reduced over replicas in 16 bits"),
      choice(
          "communication_engine", &Stack::communication_engine, {"calibrated", "sm", "copy"},
          "what moves the bytes of collectives: kernels that slow others by the GPU's communication_slowdown, kernels "
          "that take communication_sms compute units each, or copy engines that take none (SDMA)"),
      option("communication_sms", &Stack::communication_sms,
             "compute units that a collective occupies while it runs; sm: every collective; copy: only collectives "
             "that reduce, which copy engines cannot",
             {0, 100'000}, "units"),
      choice("layers", &Stack::layers, {"framework", "transformer_engine"},
             "whose layers run: transformer_engine has a workspace of its own, framework one buffer of scores if "
             "attention is unfused"),
      option("fragmentation", &Stack::fragmentation,
             "memory that the allocator holds between tensors of different sizes, as a share of the tensors'", {0, 1},
             "share"),
      option("deterministic", &Stack::deterministic,
             "kernels give the same bits every time: matrix multiplications take 32 MiB of workspace per thread"),
      option("host_kernel_us", &Stack::host_kernel_us,
             "host time to launch a kernel, with all that the framework does around it", {0, 1e6}, "us"),
      option("host_collective_us", &Stack::host_collective_us,
             "host time to launch a collective of tensor, context or expert parallelism", {0, 1e6}, "us"),
      option(
          "fused_loss", &Stack::fused_loss,
          "the loss's kernels are fused by the compiler (Megatron-LM's native fusion): one more fp32 copy of logits"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
