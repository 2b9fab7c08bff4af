#include "experiments/kernels/operator_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::import {
namespace {

using nlohmann::json;
using namespace core::compute;

constexpr const char* kName = "traced";
constexpr double kMaxElements = 1e12, kMaxOperations = 1e17;
constexpr const char* kNoShape = "its operator's shapes are not in the trace (record_shapes=True)";
constexpr const char* kNotModelled = "its operator is not modelled";
using Dims = std::vector<std::int64_t>;

/// Returns a list of sizes; empty for what is none, such as a scalar or a list of tensors.
Dims dims_of(const json& value) {
  Dims dims;
  if (!value.is_array()) return dims;
  for (const json& one : value) {
    if (!one.is_number_integer()) return {};
    dims.push_back(one.get<std::int64_t>());
  }
  return dims;
}

constexpr const char* kScattered = "its tensors lie scattered in memory";
constexpr const char* kNotAlike = "its tensors are not equally shaped and without gaps";
constexpr const char* kNotAtFullRate = "its time does not show what the memory reaches";
constexpr std::int64_t kSectorBytes = 32;  // that a GPU reads at least

/// A tensor in memory.
struct Tensor {
  Dims dims;
  std::int64_t bytes = 0;  // that are read of it
  std::int64_t element_bytes = 0;
  bool is_dense = true;  // in the order of its dimensions, without gaps
};

/// Bytes of an element; 0 if the type is none of a tensor that kernels move.
std::int64_t bytes_of(const std::string& type) {
  constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
      {"c10::BFloat16", 2}, {"c10::Half", 2}, {"float", 4}, {"int", 4},
      {"long int", 8},      {"long", 8},      {"bool", 1},  {"unsigned char", 1}};
  for (const auto& [name, bytes] : kTypes)
    if (name == type) return bytes;
  return 0;
}

/// One operator: its inputs as the profiler recorded them.
class Operator {
 public:
  Operator(const std::string& name, const json* arguments) : name_(name), args_(arguments) {}

  const std::string& name() const { return name_; }
  bool has_shapes() const { return list("Input Dims") != nullptr; }
  std::size_t inputs() const { return has_shapes() ? list("Input Dims")->size() : 0; }
  Dims dims(std::size_t input) const { return dims_of(at("Input Dims", input)); }
  std::string type(std::size_t input) const { return string_at("Input type", input); }
  bool is_set(std::size_t input) const { return string_at("Concrete Inputs", input) == "True"; }
  /// What of an input is read; nothing for a number.
  Tensor tensor(std::size_t input) const;
  /// The integers of an input such as `[-1]` or `0`.
  Dims integers(std::size_t input) const {
    const json value = json::parse(string_at("Concrete Inputs", input), nullptr, false);
    return value.is_number_integer() ? Dims{value.get<std::int64_t>()} : dims_of(value);
  }

 private:
  const json* list(const char* name) const {
    if (args_ == nullptr) return nullptr;
    const auto found = args_->find(name);
    return found != args_->end() && found->is_array() ? &*found : nullptr;
  }
  const json& at(const char* name, std::size_t input) const {
    static const json nothing;
    const json* found = list(name);
    return found && input < found->size() ? (*found)[input] : nothing;
  }
  std::string string_at(const char* name, std::size_t input) const {
    const json& found = at(name, input);
    return found.is_string() ? found.get<std::string>() : std::string();
  }

  const std::string& name_;
  const json* args_;
};

bool is_16_bit(const std::string& type) {
  return type == "c10::BFloat16" || type == "c10::Half";
}

void check_sizes(std::initializer_list<std::int64_t> sizes, double maximum = kMaxOperations) {
  double product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) throw UnsupportedRow{"a size of its operator is not above 0", fmt::format("{}", size)};
    product *= static_cast<double>(size);
  }
  if (product > maximum) throw UnsupportedRow{"its operations are too many", fmt::format("{:.3g}", product)};
}

std::int64_t elements_of(const Dims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    check_sizes({elements, size}, kMaxElements);
    elements *= size;
  }
  return elements;
}

/// Returns the elements of a tensor that are distinct, for those along a stride of 0 are one. Throws UnsupportedRow if
/// fewer than a sector of them lie side by side.
std::int64_t distinct_elements(const Dims& sizes, const Dims& strides, std::int64_t element_bytes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && strides[i] != 0) by_stride.emplace_back(strides[i], sizes[i]);
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t elements = 1, side_by_side = 1;
  for (const auto& [stride, size] : by_stride) {
    check_sizes({elements, size}, kMaxElements);
    if (stride == elements && side_by_side == elements) side_by_side *= size;
    elements *= size;
  }
  if (side_by_side < elements && side_by_side * element_bytes < kSectorBytes)
    throw UnsupportedRow{kScattered, fmt::format("{} B side by side", side_by_side * element_bytes)};
  return elements;
}

Tensor Operator::tensor(std::size_t input) const {
  Tensor result;
  result.dims = dims(input);
  if (result.dims.empty()) return result;
  result.element_bytes = bytes_of(type(input));
  if (result.element_bytes == 0) throw UnsupportedRow{"elements of this type are not modelled", type(input)};
  const Dims strides = dims_of(at("Input Strides", input));
  std::int64_t elements = elements_of(result.dims);
  result.is_dense = strides.empty();  // assumed where none are recorded
  if (strides.size() == result.dims.size()) {
    result.is_dense = true;
    double expected = 1;
    for (std::size_t i = strides.size(); i-- > 0; expected *= static_cast<double>(result.dims[i]))
      result.is_dense &= result.dims[i] <= 1 || static_cast<double>(strides[i]) == expected;
    if (!result.is_dense) elements = distinct_elements(result.dims, strides, result.element_bytes);
  }
  result.bytes = elements * result.element_bytes;
  return result;
}

/// A matrix product of inputs `left` and `left` + 1; with `batch`, of matrices in three dimensions.
Kernel product_of(const Operator& op, std::size_t left, bool batch) {
  const Dims a = op.dims(left), b = op.dims(left + 1);
  if (!is_16_bit(op.type(left))) throw UnsupportedRow{"GEMMs of this type are not modelled", op.type(left)};
  if (a.size() != (batch ? 3 : 2) || b.size() != a.size()) throw UnsupportedRow{kNoShape, op.name()};
  const std::int64_t m = a[a.size() - 2], k = a.back(), n = b.back(), count = batch ? a.front() : 1;
  check_sizes({8, m, n, k, count});
  if (b[b.size() - 2] != k) throw UnsupportedRow{"its operands do not fit", op.name()};
  return count > 1 ? batched_gemm(kName, m, n, k, count) : gemm(kName, m, n, k);
}

/// Where an attention operator has its queries and its switch for a causal mask, and the order of its dimensions.
struct AttentionInputs {
  const char* name;
  KernelClass kernel_class;
  std::size_t query, causal;
  bool heads_before_tokens;
};
constexpr AttentionInputs kAttention[] = {
    {"aten::_flash_attention_forward", KernelClass::flash2_forward, 0, 8, false},
    {"aten::_flash_attention_backward", KernelClass::flash2_backward, 1, 11, false},
    {"aten::_scaled_dot_product_cudnn_attention", KernelClass::cudnn_forward, 0, 6, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", KernelClass::cudnn_backward, 1, 14, true},
    {"aten::_cudnn_attention_forward", KernelClass::cudnn_forward, 0, 10,
     true},  // PyTorch 2.9 and later launch in these
    {"aten::_cudnn_attention_backward", KernelClass::cudnn_backward, 1, 14, true},
};

Kernel attention_of(const Operator& op, const AttentionInputs& inputs) {
  const Dims q = op.dims(inputs.query), k = op.dims(inputs.query + 1), v = op.dims(inputs.query + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) throw UnsupportedRow{kNoShape, op.name()};
  if (!is_16_bit(op.type(inputs.query)))
    throw UnsupportedRow{"attention of this type is not modelled", op.type(inputs.query)};
  const std::size_t heads = inputs.heads_before_tokens ? 1 : 2, tokens = 3 - heads;
  AttentionShape shape;
  shape.queries = q[tokens], shape.keys = k[tokens], shape.width = q[3], shape.value_width = v[3];
  check_sizes({20, q[0], q[heads], q[tokens], k[tokens], q[3] + v[3]});
  check_sizes({k[0], k[heads]}, kMaxElements);
  if (k[0] != q[0] || q[heads] % k[heads] != 0) throw UnsupportedRow{"its operands do not fit", op.name()};
  shape.batch = q[0] * q[heads], shape.key_batch = k[0] * k[heads];
  shape.cut_by_mask = op.is_set(inputs.causal);
  shape.pairs = shape.queries * shape.keys / (shape.cut_by_mask ? 2 : 1);
  return fused_attention(kName, inputs.kernel_class, shape);
}

/// Operators on the elements of their tensors, one by one: they read these and write as many as the largest has.
constexpr std::string_view kElementwise[] = {"aten::add",
                                             "aten::sub",
                                             "aten::mul",
                                             "aten::div",
                                             "aten::add_",
                                             "aten::sub_",
                                             "aten::mul_",
                                             "aten::div_",
                                             "aten::silu",
                                             "aten::gelu",
                                             "aten::relu",
                                             "aten::sigmoid",
                                             "aten::tanh",
                                             "aten::neg",
                                             "aten::abs",
                                             "aten::reciprocal",
                                             "aten::pow",
                                             "aten::sqrt",
                                             "aten::rsqrt",
                                             "aten::exp",
                                             "aten::cos",
                                             "aten::sin",
                                             "aten::clamp_min",
                                             "aten::clamp_min_",
                                             "aten::addcmul_",
                                             "aten::addcdiv_",
                                             "aten::silu_backward",
                                             "aten::gelu_backward",
                                             "aten::lerp_",
                                             "aten::tanh_backward",
                                             "aten::relu_",
                                             "aten::sigmoid_backward",
                                             "aten::where",
                                             "aten::masked_fill_",
                                             "aten::threshold_backward",
                                             "aten::native_dropout_backward"};

Dtype dtype_of(std::int64_t element_bytes) {
  return element_bytes == 2 ? Dtype::bf16 : Dtype::fp32;
}

OperatorKernel elementwise_of(const Operator& op, bool copies) {
  Dims all;  // of the result, the last dimension first
  std::vector<Tensor> tensors;
  std::int64_t moved = 0, widest = 0;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const Tensor tensor = op.tensor(i);
    if (tensor.dims.empty()) continue;  // a number
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
      const std::int64_t size = tensor.dims[tensor.dims.size() - 1 - d];
      if (d == all.size()) all.push_back(size);
      if (all[d] != size && all[d] != 1 && size != 1) throw UnsupportedRow{"its operands do not fit", op.name()};
      all[d] = std::max(all[d], size);
    }
    moved += tensor.bytes;
    widest = std::max(widest, tensor.element_bytes);
    tensors.push_back(tensor);
  }
  if (moved == 0) throw UnsupportedRow{kNoShape, op.name()};
  const Dims& first = tensors.front().dims;
  const bool are_alike =
      std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& one) { return one.is_dense && one.dims == first; });
  // A copy has what it writes among its tensors.
  return {memory_bound(kName, copies ? moved : moved + elements_of(all) * widest, dtype_of(widest)),
          are_alike ? nullptr : kNotAlike};
}

/// Operators that read or write a tensor as large as their first so many times, and little else.
struct Passes {
  const char* name;
  std::int64_t tensors;
};
constexpr Passes kPasses[] = {{"aten::_softmax", 2},
                              {"aten::_log_softmax", 2},
                              {"aten::_softmax_backward_data", 3},
                              {"aten::_log_softmax_backward_data", 3},
                              {"aten::native_layer_norm", 2},
                              {"aten::native_layer_norm_backward", 3},
                              {"aten::fill_", 1}};

/// Operators that add up a tensor, along some of its dimensions or all.
constexpr std::string_view kSums[] = {"aten::sum", "aten::mean"};

OperatorKernel sum_of(const Operator& op) {
  const Tensor summed = op.tensor(0);
  if (summed.dims.empty()) throw UnsupportedRow{kNoShape, op.name()};
  Dims left = summed.dims;
  for (std::int64_t dim : op.integers(1)) {
    dim += dim < 0 ? std::ssize(left) : 0;
    if (dim < 0 || dim >= std::ssize(left)) throw UnsupportedRow{"its operands do not fit", op.name()};
    left[static_cast<std::size_t>(dim)] = 1;
  }
  const std::int64_t written = op.integers(1).empty() ? 1 : elements_of(left);
  return {memory_bound(kName, summed.bytes + written * summed.element_bytes, dtype_of(summed.element_bytes)),
          kNotAtFullRate};
}

/// Rows of a table that are read and written, as many as an index has.
OperatorKernel rows_of(const Operator& op, std::size_t index) {
  const Tensor table = op.tensor(0), rows = op.tensor(index);
  if (table.dims.size() != 2 || rows.dims.empty()) throw UnsupportedRow{kNoShape, op.name()};
  const std::int64_t row_bytes = table.dims[1] * table.element_bytes, count = elements_of(rows.dims);
  check_sizes({2, row_bytes, count}, kMaxElements);
  return {memory_bound(kName, rows.bytes + 2 * row_bytes * count, dtype_of(table.element_bytes)), kNotAtFullRate};
}

/// A kernel that Inductor made of operators on elements, or of these and sums of rows that it holds: every tensor among
/// its inputs and outputs once.
OperatorKernel fused_of(const Operator& op) {
  std::int64_t moved = 0, widest = 0;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const Tensor tensor = op.tensor(i);
    moved += tensor.bytes;
    widest = std::max(widest, tensor.element_bytes);
  }
  if (moved == 0) throw UnsupportedRow{kNoShape, op.name()};
  return {memory_bound(kName, moved, dtype_of(widest)), kNotAtFullRate};
}

/// A fused norm reads and writes a tensor once; backward it reads its input beside the gradient. What it keeps of each
/// row and the gradient of its weights are too small to count.
Kernel norm_of(const Operator& op, std::int64_t tensors) {
  const Dims first = op.dims(0);
  const std::int64_t bytes = bytes_of(op.type(0));
  if (first.empty() || bytes == 0) throw UnsupportedRow{kNoShape, op.name()};
  check_sizes({elements_of(first), tensors * bytes}, kMaxElements);
  return memory_bound(kName, tensors * elements_of(first) * bytes, dtype_of(bytes));
}

template <class Names>
bool is_in(const Names& names, const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

OperatorKernel kernel_of_operator(const std::string& name, const json* arguments) {
  const Operator op(name, arguments);
  if (!op.has_shapes()) throw UnsupportedRow{kNoShape, op.name()};
  if (name == "aten::mm") return {product_of(op, 0, false)};
  if (name == "aten::addmm") return {product_of(op, 1, false)};
  if (name == "aten::bmm") return {product_of(op, 0, true)};
  for (const AttentionInputs& inputs : kAttention)
    if (name == inputs.name) return {attention_of(op, inputs)};
  if (name == "aten::_fused_rms_norm") return {norm_of(op, 2)};
  if (name == "aten::_fused_rms_norm_backward") return {norm_of(op, 3)};
  for (const Passes& passes : kPasses)
    if (name == passes.name) return {norm_of(op, passes.tensors), kNotAtFullRate};
  if (name == "aten::copy_") return elementwise_of(op, true);
  if (is_in(kElementwise, name)) return elementwise_of(op, false);
  if (is_in(kSums, name)) return sum_of(op);
  if (name == "aten::embedding") return rows_of(op, 1);
  if (name == "aten::index_select" && op.integers(1) == Dims{0}) return rows_of(op, 2);
  if (name.starts_with("triton_poi_") || name.starts_with("triton_per_")) return fused_of(op);
  throw UnsupportedRow{kNotModelled, op.name()};
}

}  // namespace manyworlds::experiments::import
