// Frozen weights in 4 bits (Dettmers et al. 2023, QLoRA, section 3): linear layers of attention and of feed-forward
// networks keep theirs as NF4, in blocks of 64 that have a constant each, of 8 bits, and blocks of 256 of these one in
// fp32 (double quantisation). Before every GEMM, forward and backward, a weight is written in 16 bits. Embedding, norms
// and head have 16 bits, as in bitsandbytes, which replaces linear layers but the last one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model/model.hpp"
#include "core/workload/operators/operator.hpp"

namespace manyworlds::core::workload {

/// Returns the bytes of a matrix of so many weights: 4.127 bits each.
std::int64_t four_bit_bytes(std::int64_t weights);

/// Whether some part of the model keeps its frozen weights so.
bool has_four_bit_weights(const Model& model);

/// Puts before each GEMM of the frozen linear layers from `first` on the kernels of bitsandbytes (functional.py,
/// dequantize_4bit()): constants to fp32, their offset added, and the weight in 16 bits. No gradient needs more than
/// that: layers save their compressed weight alone.
void dequantise_weights(std::vector<Operator>& operators, std::size_t first);

/// Weights in 4 bits among those of a layer's operators.
struct FourBitWeights {
  std::int64_t count = 0, bytes = 0;
  std::int64_t largest = 0;  // number of weights of the largest matrix
};
FourBitWeights four_bit_weights(const std::vector<Operator>& layer);

}  // namespace manyworlds::core::workload
