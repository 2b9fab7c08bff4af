// What the training software does with a layout: named choices, no numbers. The catalog has those of published
// measurements as stack profiles, with their sources.
#pragma once

#include <cstdint>

#include "core/base/options.hpp"
#include "core/compute/precision.hpp"

namespace manyworlds::core::workload {

/// unfused: batched GEMMs, softmax and dropout as kernels of their own; flash: the first fused kernels (FlashAttention
/// 1, Triton; Dao et al. 2022); cudnn: those of FlashAttention 2 and 3 and of cuDNN as Transformer Engine calls them.
enum class AttentionKernel : std::uint8_t { unfused, flash, cudnn };

/// Of the layers' GEMMs. Below 16 bits inputs are quantised by kernels of their own; attention core and head stay.
using compute::Precision;

/// Whose layers run: the framework's own, or Transformer Engine's, which brings a workspace of its own.
enum class LayerLibrary : std::uint8_t { framework, transformer_engine };

/// How tokens go to their experts. all_to_all: copied, one for each expert, and sent by the communication library;
/// hybrid_ep: once to each rank, and once to each node, that holds some of a token's experts (DeepEP, HybridEP).
enum class Dispatcher : std::uint8_t { all_to_all, hybrid_ep };

/// What CUDA graphs launch: nothing; all but experts and their exchange, whose sizes the host learns first; everything.
enum class CudaGraphs : std::uint8_t { none, but_experts, all };

/// What moves the bytes of collectives. calibrated: the communication library's kernels, beside which others are slower
/// by what was fitted (Gpu::communication_slowdown); sm: kernels that take so many compute units and nothing else;
/// copy: the GPU's copy engines, and the NIC's, that take none, but for what adds up.
enum class CommunicationEngine : std::uint8_t { calibrated, sm, copy };

struct Stack {
  AttentionKernel attention = AttentionKernel::unfused;
  Precision precision = Precision::bf16;
  bool overlap_input_gradient =
      false;                        // a linear layer's input gradient is exchanged beside its weight gradient's GEMM
  bool overlap_tensor = false;      // collectives of sequence parallelism run in pieces beside the GEMM next to them
  std::int64_t tensor_chunks = 0;   // in so many pieces; 0: as many as the collective's ring has steps
  bool overlap_parameters = false;  // ZeRO 1 and 2: parameters are gathered beside the next forward pass
  bool reduce_in_16bit = false;     // gradients are added up over replicas in 16 bits
  LayerLibrary layers = LayerLibrary::framework;
  bool deterministic = false;  // kernels that give the same bits every time; of their cost only the memory is known
  bool fused_loss = false;     // the loss's kernels are fused by the compiler, which holds one more copy of logits
  CudaGraphs cuda_graphs = CudaGraphs::none;  // what a graph launches waits for no host
  Dispatcher dispatcher = Dispatcher::all_to_all;
  bool overlap_transfers = true;  // kernels go on while a pipeline rank's results are sent
  bool post_validation = false;   // no rank waits for others before its optimizer (Qi et al. 2024, section 4)
  CommunicationEngine communication_engine = CommunicationEngine::calibrated;
  std::int64_t communication_sms = 0;  // compute units that a collective takes which adds up, or is run by kernels
  bool overlap_shared_expert = false;  // the shared expert runs beside tokens that travel to the others, and back
  bool delay_expert_weights = false;   // gradients of experts' weights are made beside gradients that travel
  // Kernels that are fused, each with its own name in Megatron-LM; off, they are chains of kernels through memory.
  bool bias_activation_fusion = true;
  bool bias_dropout_fusion = true;
  bool rope_fusion = true;
  bool grouped_query_fusion = true;  // attention takes shared keys and values as they are
  bool permute_fusion = true;
  bool router_fusion = true;
  bool gradient_accumulation_fusion = true;  // GEMMs add gradients of weights to those of earlier micro-batches
  bool overlap_experts = false;              // tokens travel beside the kernels of another micro-batch's pass
};

const OptionTable<Stack>& stack_options();

}  // namespace manyworlds::core::workload
