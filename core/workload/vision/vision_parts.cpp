#include "core/workload/vision/vision_parts.hpp"

#include <algorithm>

namespace manyworlds::core::workload {

using collective::Kind;
using compute::Kernel;
using compute::memory_bound;

OptionSet alone_on_stream() {
  return {{"norms", "none"}, {"residual", false}};
}

std::vector<ShardedSize> undivided() {
  return {{"tensor-parallel shares", 1}};
}

namespace {

/// Elements of the tensors of a convolution.
struct ConvolutionTensors {
  std::int64_t read;   // of the input, which windows cover
  std::int64_t input;  // all of it
  std::int64_t output;

  explicit ConvolutionTensors(const ConvolutionShape& shape)
      : read(shape.inputs * std::min(shape.input_positions(), shape.positions * shape.window())),
        input(shape.inputs * shape.input_positions()),
        output(shape.outputs * shape.positions) {}
};

/// A kernel with the sizes of one of the three GEMMs of a convolution, and `elements` of tensors in memory. Weights, or
/// their gradients, are beside these.
Kernel implicit_gemm(const ConvolutionShape& shape, std::int64_t m, std::int64_t n, std::int64_t k,
                     std::int64_t elements) {
  Kernel result = compute::batched_gemm(shape.name, m, n, k, shape.groups);
  result.bytes = 2 * (elements + shape.weights());
  if (!shape.is_depthwise()) return result;
  Kernel direct = memory_bound(shape.name, result.bytes);
  direct.flops = result.flops;
  return direct;
}

/// The gradient of the weights, added to an fp32 one.
void add_filter_gradient(OpList& ops, const RankShapes& shapes, const ConvolutionShape& shape, std::int64_t elements) {
  const std::int64_t window = shape.window() * (shape.inputs / shape.groups);
  Kernel gradient = compute::grouped_weight_gradient(shape.name, shape.outputs / shape.groups, window, shape.positions,
                                                     shape.groups, compute::Dtype::bf16);
  gradient.one_by_one = false;
  gradient.bytes = 2 * elements + 8 * shape.weights();
  if (shape.is_depthwise()) {
    Kernel direct = memory_bound(shape.name, gradient.bytes);
    direct.flops = gradient.flops;
    ops.push_back(weight_gradient_kernel(direct));
  } else {
    add_weight_gradient(ops, shapes, gradient);
  }
}

}  // namespace

Operator convolution(const RankShapes& shapes, const ConvolutionShape& shape) {
  const ConvolutionTensors tensors(shape);
  const std::int64_t window = shape.window();
  const std::int64_t in = shape.inputs / shape.groups, out = shape.outputs / shape.groups;
  Operator result;
  result.name = shape.name;
  result.saved_bytes = 2 * tensors.input;
  result.weight_gradient_input_bytes = 2 * (tensors.input + tensors.output);
  result.forward.push_back(
      kernel(implicit_gemm(shape, shape.positions, out, in * window, tensors.read + tensors.output)));
  if (shape.bias && !shapes.stack.bias_activation_fusion)
    result.forward.push_back(kernel(memory_bound("bias", 4 * tensors.output)));
  if (shape.bias) result.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * tensors.output)));
  if (shape.input_gradient)
    result.backward.push_back(
        kernel(implicit_gemm(shape, shape.positions, in, out * window, tensors.input + tensors.output)));
  add_filter_gradient(result.backward, shapes, shape, tensors.read + tensors.output);
  return result;
}

namespace {

/// Adds the kernels of a batch norm in one direction: of `sums` bytes an element before its statistics are known, and
/// of `rest` behind; among replicas a collective is between them.
void add_norm_kernels(OpList& ops, const RankShapes& shapes, const BatchNormShape& shape, std::int64_t sums,
                      std::int64_t rest, Kind kind, std::int64_t statistics_bytes) {
  const std::int64_t elements = shape.channels * shape.positions;
  if (shape.replicas == 1 && shapes.stack.norm_fusion) {
    ops.push_back(kernel(memory_bound(shape.name, (sums + rest) * elements)));
    return;
  }
  if (sums > 0) ops.push_back(kernel(memory_bound(shape.name, sums * elements)));
  if (shape.replicas > 1) block_on(ops, shape.name, kind, statistics_bytes, Role::data);
  ops.push_back(kernel(memory_bound(shape.name, rest * elements)));
}

}  // namespace

Operator batch_norm(const RankShapes& shapes, const BatchNormShape& shape) {
  const std::int64_t elements = shape.channels * shape.positions;
  const bool adds_inside = shape.add && shapes.stack.bias_activation_fusion;
  const std::int64_t sum_bytes = adds_inside ? 2 : 0, statistics = 4 * 2 * shape.channels;
  Operator result;
  result.name = shape.name;
  result.saved_bytes = 2 * elements;
  const std::int64_t read_for_sums = shape.summed_before ? 0 : 2;
  add_norm_kernels(result.forward, shapes, shape, read_for_sums, 4 + sum_bytes, Kind::all_gather,
                   shape.replicas * statistics);
  if (!shapes.stack.bias_activation_fusion) {
    if (shape.add) result.forward.push_back(kernel(memory_bound("sum", 6 * elements)));
    if (shape.activate) {
      const Operator separate = relu(elements);
      append(result.forward, separate.forward);
      append(result.backward, separate.backward);
    }
  }
  add_norm_kernels(result.backward, shapes, shape, 4, 6 + sum_bytes, Kind::all_reduce, statistics);
  return result;
}

Operator relu(std::int64_t elements) {
  return elementwise("relu", elements, 4, 6, 0);
}

}  // namespace manyworlds::core::workload
