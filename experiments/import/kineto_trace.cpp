#include "experiments/import/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/import/unsupported_row.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using nlohmann::json;
using namespace core::compute;

constexpr const char* kName = "traced";
constexpr double kMaxElements = 1e12, kMaxOperations = 1e17;
constexpr const char* kNoShape = "its operator's shapes are not in the trace (record_shapes=True)";
constexpr const char* kNotModelled = "its operator is not modelled";
using Dims = std::vector<std::int64_t>;

/// Returns a member of an object, or null.
const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const json& object, const char* name) {
  const json* found = member(object, name);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> integer_of(const json& object, const char* name) {
  const json* found = member(object, name);
  if (!found || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

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
  explicit Operator(const json& event) : name_(text_of(event, "name")), args_(member(event, "args")) {}

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
    const json* found = args_ ? member(*args_, name) : nullptr;
    return found && found->is_array() ? found : nullptr;
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

  std::string name_;
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

Kernel kernel_of(const Operator& op) {
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

/// The kernels of one operator, in the order in which they first appear.
struct Launched {
  const json* op = nullptr;
  double us = 0;
};

class Trace {
 public:
  Trace(const json& document, const std::string& file) : file_(file) {
    const json* events = member(document, "traceEvents");
    if (!events) events = &document;  // the other form that Chrome's trace format allows
    if (!events->is_array()) throw InputError("is no trace of the PyTorch profiler: it has no list traceEvents", file);
    if (const json* devices = member(document, "deviceProperties"); devices && devices->is_array() && !devices->empty())
      device_ = text_of(devices->front(), "name");
    for (const json& event : *events)
      if (text_of(event, "cat") == "cpu_op") add_operator(event);
    for (const json& event : *events)
      if (text_of(event, "cat") == "kernel") add_kernel(event);
    if (launched_.empty() && without_operator_ == 0)
      throw InputError("its trace has no kernel (events of category \"kernel\"); profile with ProfilerActivity.CUDA",
                       file);
  }

  std::vector<KernelSample> samples() const {
    std::vector<KernelSample> samples;
    for (const Launched& one : launched_) samples.push_back(sample_of(one));
    for (std::size_t i = 0; i < without_operator_; ++i) {
      samples.push_back(empty_sample());
      samples.back().unsupported = "no operator of the trace launched it";
    }
    return samples;
  }

 private:
  static std::optional<std::int64_t> external_id(const json& event) {
    const json* args = member(event, "args");
    return args ? integer_of(*args, "External id") : std::nullopt;
  }

  void add_operator(const json& event) {
    if (const auto id = external_id(event)) operators_.emplace(*id, &event);
  }

  void add_kernel(const json& event) {
    const auto id = external_id(event);
    const auto found = id ? operators_.find(*id) : operators_.end();
    const json* duration = member(event, "dur");
    if (found == operators_.end() || !duration || !duration->is_number()) {
      ++without_operator_;
      return;
    }
    const auto [slot, is_new] = slots_.try_emplace(*id, launched_.size());
    if (is_new) launched_.push_back({found->second, 0});
    launched_[slot->second].us += duration->get<double>();
  }

  KernelSample empty_sample() const {
    KernelSample sample;
    sample.id = file_;
    sample.device = device_;
    sample.power = PowerState::sustained;
    sample.with_launch = false;
    return sample;
  }

  KernelSample sample_of(const Launched& launched) const {
    KernelSample sample = empty_sample();
    const Operator op(*launched.op);
    sample.measured_us = launched.us;
    read_supported(sample, [&] {
      if (!(launched.us > 0) || !std::isfinite(launched.us)) throw UnsupportedRow{"its time is not above 0", op.name()};
      sample.kernel = kernel_of(op);
      sample.kind = sample_kind(sample.kernel) + " in a step";
    });
    return sample;
  }

  const std::string& file_;
  std::string device_;
  std::map<std::int64_t, const json*> operators_;
  std::map<std::int64_t, std::size_t> slots_;
  std::vector<Launched> launched_;
  std::size_t without_operator_ = 0;
};

}  // namespace

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

std::vector<KernelSample> parse_kineto_trace(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name, kMaxTableBytes);
  return Trace(document, name).samples();
}

}  // namespace manyworlds::experiments::import
