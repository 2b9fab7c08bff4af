// What the training software does with a parallel configuration: named choices, and the time that its host takes to
// launch. The catalog holds those behind published measurements as stack profiles, with their sources.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/compute/host.hpp"
#include "core/compute/precision.hpp"

namespace manyworlds::core::workload {

/// unfused: batched GEMMs, softmax and dropout as separate kernels; flash: the first fused kernels (FlashAttention 1,
/// Triton; Dao et al. 2022); flash2: FlashAttention 2 (Dao 2023), which was written for A100; cudnn: kernels written
/// for the GPU, which are cuDNN's as Transformer Engine calls them, and FlashAttention 3 on Hopper.
enum class AttentionKernel : std::uint8_t { unfused, flash, flash2, cudnn };

/// Precision of the layers' GEMMs. Below 16 bits, separate kernels quantise the inputs; attention core and head keep 16
/// bits.
using compute::Precision;

/// Implementation of the layers: the framework's own, or Transformer Engine's, which has a workspace of its own.
enum class LayerLibrary : std::uint8_t { framework, transformer_engine };

/// How tokens are sent to their experts. all_to_all: the communication library sends one copy for each expert;
/// hybrid_ep and deepep: one copy to each rank, and one to each node, that holds some of a token's experts, by the
/// kernels of HybridEP or by DeepEP's normal ones.
enum class Dispatcher : std::uint8_t { all_to_all, hybrid_ep, deepep };

/// What CUDA graphs launch: nothing; all but experts and their exchange, whose sizes the host must know first;
/// everything.
enum class CudaGraphs : std::uint8_t { none, all_but_experts, all };

/// What moves the bytes of collectives. calibrated: the communication library's kernels, which slow concurrent kernels
/// by a fitted factor (Gpu::communication_slowdown); sm: kernels that occupy a given number of compute units and have
/// no other effect; copy: copy engines of the GPU and of the NIC, which occupy no compute units except for reductions.
enum class CommunicationEngine : std::uint8_t { calibrated, sm, copy };

struct Stack {
  AttentionKernel attention = AttentionKernel::unfused;
  Precision precision = Precision::bf16;
  bool overlap_input_gradient = false;  // a linear layer's input gradient is reduced during its weight gradient's GEMM
  bool overlap_tensor = false;          // collectives of sequence parallelism run in chunks during the adjacent GEMM
  std::int64_t tensor_chunks = 0;       // number of these chunks; 0: one for each step of the collective's ring
  bool overlap_parameters = false;      // ZeRO 1 and 2: parameters are gathered during the next forward pass
  bool reduce_in_16bit = false;         // gradients are reduced over replicas in 16 bits
  LayerLibrary layers = LayerLibrary::framework;
  bool deterministic = false;  // kernels give the same bits every time; only the memory that this costs is modelled
  double fragmentation = 0;    // memory between tensors that the allocator cannot use, as a share of theirs
  bool fused_loss = false;     // the compiler fuses the loss's kernels, which adds a copy of the logits
  CudaGraphs cuda_graphs = CudaGraphs::none;  // kernels in a graph do not wait for the host
  Dispatcher dispatcher = Dispatcher::all_to_all;
  std::int64_t dispatcher_sms = 20;  // compute units of DeepEP's kernels (Megatron-LM's moe_deepep_num_sms)
  bool overlap_transfers = true;     // kernels continue while a pipeline rank's outputs are sent
  bool scatter_transfers = false;    // tensor ranks send a share each of the same outputs, and the receivers gather it
  bool post_validation = false;      // no rank waits for others before its optimizer (Qi et al. 2024, section 4)
  CommunicationEngine communication_engine = CommunicationEngine::calibrated;
  std::int64_t communication_sms = 0;  // compute units of a collective that reduces or that kernels run
  bool overlap_shared_expert = false;  // the shared expert computes during the token exchange of the other experts
  bool delay_expert_weights = false;   // weight gradients of the experts are computed during the exchange of gradients
  // Kernel fusions, under their names in Megatron-LM; without one, a chain of kernels goes through memory.
  bool bias_activation_fusion = true;
  bool bias_dropout_fusion = true;
  bool masked_softmax_fusion = true;  // of unfused attention
  bool norm_fusion = true;            // RMSNorm is one kernel; layer norms always are
  bool rope_fusion = true;
  bool grouped_query_fusion = true;  // attention reads shared keys and values directly
  bool projection_fusion = true;     // queries, keys and values are one GEMM, and both halves of SwiGLU
  bool cross_entropy_fusion = true;  // the loss goes through the logits twice forward and once backward
  std::int64_t loss_chunks = 1;      // parts of the tokens that go through head and loss, and back, one after another
  bool optimizer_fusion = true;      // Adam is one kernel
  bool permute_fusion = true;
  bool router_fusion = true;
  bool gradient_accumulation_fusion = true;  // GEMMs accumulate weight gradients of micro-batches
  bool sequence_first = true;                // collectives of sequence parallelism write what GEMMs read
  bool recompute_unused = true;              // recomputation runs kernels whose results nobody reads, too
  bool overlap_experts = false;              // tokens are exchanged during the kernels of another micro-batch's pass
  double host_kernel_us = 15;                // host time to launch a kernel, with what the framework does around it
  double host_collective_us = 15;            // and a collective of tensor, context or expert parallelism

  compute::LaunchTimes launch_times() const { return {host_kernel_us, host_collective_us}; }
};

const OptionTable<Stack>& stack_options();

}  // namespace manyworlds::core::workload
