// Operators of convolutional networks. A network's `hidden` are the channels and its `sequence` the positions, height x
// width, of what its parts deliver; a stride s means s x s as many positions before it. Tensors are 16 bits wide and
// have channels last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {

/// Names of vision parts, which bring norms of their own and their own sums with their input.
inline constexpr BranchNames kVisionNames{"vision_norm", "vision_residual", 0, 0};

/// Returns options of a part that is neither normalised nor added to its input by its place on the stream.
OptionSet alone_on_stream();

/// Returns the size that no ranks divide: channels and rows of images are whole on every rank.
std::vector<ShardedSize> undivided();

/// A convolution of square windows, or of one dimension, padded so that it delivers a `stride`-th of the rows and
/// columns, or of the positions.
struct ConvolutionShape {
  std::string_view name;
  std::int64_t inputs = 0, outputs = 0;  // channels
  std::int64_t kernel = 1;               // rows, and columns, of a window; in one dimension its positions
  std::int64_t stride = 1;
  std::int64_t groups = 1;     // of channels, which see only channels of their own group
  std::int64_t positions = 0;  // delivered, of a micro-batch
  bool bias = false;
  bool input_gradient = true;  // no gradient of images is needed
  bool is_1d = false;          // over one dimension

  std::int64_t window() const { return is_1d ? kernel : kernel * kernel; }
  std::int64_t input_positions() const { return positions * (is_1d ? stride : stride * stride); }
  std::int64_t weights() const { return outputs * (inputs / groups) * window(); }
  bool is_depthwise() const { return groups == inputs && groups > 1; }
};

/// Returns the convolution as cuDNN's implicit GEMM: M positions, N output channels, K input channels times the window,
/// one for each group. Windows are formed on the way to the compute units, so that memory is read once; with a stride
/// beyond the window, only where windows are. Gradients are GEMMs of the same three sizes in another order. Depthwise
/// convolutions are bound by memory, as they have few FLOPs per byte. A bias has a gradient of its own, and is added
/// inside the GEMM if the stack fuses it. Saved is the input.
Operator convolution(const RankShapes& shapes, const ConvolutionShape& shape);

/// What a batch norm normalises, and what is fused with it.
struct BatchNormShape {
  std::string_view name;
  std::int64_t channels = 0;
  std::int64_t positions = 0;  // of a micro-batch
  bool activate = false;       // ReLU behind it
  bool add = false;            // a second input is added before the ReLU
  bool summed_before = false;  // the convolution before it has added up its outputs and their squares
  std::int64_t replicas = 1;   // ranks that share mean and variance
};

/// Returns a batch norm (Ioffe and Szegedy 2015), whose input is saved. Forward it reads its input for the statistics,
/// unless the convolution before has taken them, reads it again and writes: 6 bytes an element, or 4. Backward it reads
/// input and gradient for two sums, reads both again and writes: 10. ReLU and a sum are in the same kernel if the stack
/// fuses them: reading the second input, and writing its gradient, takes 2 bytes each. Otherwise a sum is a kernel of 6
/// bytes, a ReLU one of 4, and of 6 backward. Among several replicas statistics are gathered, and sums of gradients are
/// all-reduced, both of 2 fp32 numbers per channel, between two kernels (PyTorch, torch/nn/modules/_functions.py,
/// SyncBatchNorm).
Operator batch_norm(const RankShapes& shapes, const BatchNormShape& shape);

/// Returns a ReLU in place, whose output the next operator saves: 4 bytes an element forward and 6 backward.
Operator relu(std::int64_t elements);

}  // namespace manyworlds::core::workload
