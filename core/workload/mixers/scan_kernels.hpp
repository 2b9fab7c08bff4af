// The kernels of Mamba-2's scan and of the gated delta rule, both by chunks of tokens, with the FLOPs and the bytes
// that their source code asks for (docs/facts/scans.md, section 2, which names the sources).
#pragma once

#include <cstdint>

#include "core/workload/operators/operator.hpp"

namespace manyworlds::core::workload {

/// Sizes of Mamba-2's scan on one rank.
struct StateSpaceSizes {
  std::int64_t tokens = 0;    // of all samples
  std::int64_t chunks = 0;    // of all samples
  std::int64_t chunk = 0;     // tokens that a kernel takes at once
  std::int64_t heads = 0;     // on this rank
  std::int64_t groups = 0;    // of heads that share B and C
  std::int64_t head_dim = 0;  // width of a head
  std::int64_t state = 0;     // width of its state, for each element of the head

  /// Elements of the states, one for every chunk and head.
  std::int64_t states() const { return chunks * heads * head_dim * state; }
};

/// Returns the kernels of mamba_ssm's chunked scan (ops/triton/ssd_combined.py) in their order. Inputs, outputs, B and
/// C have 16 bits; step sizes, decays, states of chunks and products of B and C have fp32. The backward pass computes
/// all but the scan itself again first.
OpList state_space_forward(const StateSpaceSizes& sizes);
OpList state_space_backward(const StateSpaceSizes& sizes);

/// Sizes of the gated delta rule on one rank.
struct DeltaRuleSizes {
  std::int64_t tokens = 0;         // of all samples
  std::int64_t chunks = 0;         // of all samples
  std::int64_t serial_chunks = 0;  // of one sample: each needs the state of the one before it
  std::int64_t chunk = 0;          // tokens that a kernel takes at once
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_dim = 0, value_dim = 0;

  /// Chunks of all value heads, and elements of their states.
  std::int64_t chunks_of_heads() const { return chunks * value_heads; }
  std::int64_t states() const { return chunks_of_heads() * key_dim * value_dim; }
};

/// Returns the kernels of flash-linear-attention's chunk_gated_delta_rule (fla/ops/gated_delta_rule/chunk.py) in their
/// order. All tensors have 16 bits, but decays, steps, and the matrix of each chunk before its inverse, which have
/// fp32.
OpList delta_rule_forward(const DeltaRuleSizes& sizes);
OpList delta_rule_backward(const DeltaRuleSizes& sizes);

}  // namespace manyworlds::core::workload
