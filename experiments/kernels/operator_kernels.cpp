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
  /// Whether an input lies in memory without gaps, which is assumed where no strides are recorded.
  bool is_dense(std::size_t input) const {
    const Dims strides = dims_of(at("Input Strides", input)), sizes = dims(input);
    if (strides.size() != sizes.size()) return strides.empty();
    double expected = 1;
    for (std::size_t i = sizes.size(); i-- > 0; expected *= static_cast<double>(sizes[i]))
      if (sizes[i] > 1 && static_cast<double>(strides[i]) != expected) return false;
    return true;
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

/// Bytes of an element; 0 if the type is none of a tensor that kernels move.
std::int64_t bytes_of(const std::string& type) {
  if (is_16_bit(type)) return 2;
  return type == "float" ? 4 : 0;
}

void check_sizes(std::initializer_list<std::int64_t> sizes, double maximum = kMaxOperations) {
  double product = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) throw UnsupportedRow{"a size of its operator is not above 0", fmt::format("{}", size)};
    product *= static_cast<double>(size);
  }
  if (product > maximum) throw UnsupportedRow{"its operations are too many", fmt::format("{:.3g}", product)};
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

/// Operators on equally many elements of each tensor: they read these and write as many.
constexpr std::string_view kElementwise[] = {"aten::add",
                                             "aten::sub",
                                             "aten::mul",
                                             "aten::div",
                                             "aten::add_",
                                             "aten::mul_",
                                             "aten::silu",
                                             "aten::gelu",
                                             "aten::relu",
                                             "aten::sigmoid",
                                             "aten::silu_backward",
                                             "aten::gelu_backward",
                                             "aten::sigmoid_backward"};

std::int64_t elements_of(const Dims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t size : dims) {
    check_sizes({elements, size}, kMaxElements);
    elements *= size;
  }
  return elements;
}

Kernel elementwise_of(const Operator& op, bool copies) {
  const Dims first = op.dims(0);
  const std::int64_t elements = elements_of(first);
  std::int64_t moved = 0, widest = 0;
  for (std::size_t i = 0; i < op.inputs(); ++i) {
    const Dims dims = op.dims(i);
    if (dims.empty()) continue;  // a number
    if (dims != first || !op.is_dense(i))
      throw UnsupportedRow{"its tensors are not equally shaped and without gaps", op.name()};
    if (bytes_of(op.type(i)) == 0) throw UnsupportedRow{"elements of this type are not modelled", op.type(i)};
    moved += bytes_of(op.type(i));
    widest = std::max(widest, bytes_of(op.type(i)));
  }
  if (first.empty() || moved == 0) throw UnsupportedRow{kNoShape, op.name()};
  return memory_bound(kName, elements * (copies ? moved : moved + widest), widest == 2 ? Dtype::bf16 : Dtype::fp32);
}

/// A fused norm reads and writes a tensor once; backward it reads its input beside the gradient. What it keeps of each
/// row and the gradient of its weights are too small to count.
Kernel norm_of(const Operator& op, std::int64_t tensors) {
  const Dims first = op.dims(0);
  const std::int64_t bytes = bytes_of(op.type(0));
  if (first.empty() || bytes == 0) throw UnsupportedRow{kNoShape, op.name()};
  return memory_bound(kName, tensors * elements_of(first) * bytes, bytes == 2 ? Dtype::bf16 : Dtype::fp32);
}

}  // namespace

Kernel kernel_of_operator(const std::string& name, const json* arguments) {
  const Operator op(name, arguments);
  if (!op.has_shapes()) throw UnsupportedRow{kNoShape, op.name()};
  if (op.name() == "aten::mm") return product_of(op, 0, false);
  if (op.name() == "aten::addmm") return product_of(op, 1, false);
  if (op.name() == "aten::bmm") return product_of(op, 0, true);
  for (const AttentionInputs& inputs : kAttention)
    if (op.name() == inputs.name) return attention_of(op, inputs);
  if (op.name() == "aten::_fused_rms_norm") return norm_of(op, 2);
  if (op.name() == "aten::_fused_rms_norm_backward") return norm_of(op, 3);
  if (op.name() == "aten::copy_") return elementwise_of(op, true);
  if (std::find(std::begin(kElementwise), std::end(kElementwise), op.name()) != std::end(kElementwise))
    return elementwise_of(op, false);
  throw UnsupportedRow{kNotModelled, op.name()};
}

}  // namespace manyworlds::experiments::import
