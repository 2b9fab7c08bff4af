#include "experiments/cudnn_graphs/graph_kernel.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "experiments/cudnn_graphs/attention.hpp"

namespace manyworlds::experiments::cudnn_graphs {
namespace {

using core::InputError;
using core::compute::Dtype;
using core::compute::KernelClass;
using programs::GemmShape;

constexpr double kMaxOperations = 1e18;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

bool is_convolution(const std::string& name) {
  return name.starts_with("convolution_");
}
/// Operations whose cost does not follow from the bytes of their tensors.
bool is_beyond_bytes(const std::string& name) {
  return name == "matmul" || is_convolution(name) || name.starts_with("sdpa_") || name == "moe_grouped_matmul" ||
         name == "paged_cache_load" || name.starts_with("number ");
}

std::string joined_names(const OperationGraph& graph) {
  std::string text;
  for (const Operation& one : graph.operations) text += (text.empty() ? "cudnn " : ", ") + one.name;
  return text;
}

/// The type of products at which GPUs have a rate; those in fp16 are timed as in bf16.
std::optional<Dtype> rate_of(const std::string& dtype) {
  if (dtype == "fp32") return Dtype::fp32;
  if (dtype == "bf16" || dtype == "fp16") return Dtype::bf16;
  if (dtype == "fp8" || dtype == "fp8_e5m2") return Dtype::fp8;
  if (dtype == "fp4") return Dtype::fp4;
  return std::nullopt;
}

/// What is read and written in memory; 0 if the type of one of its tensors is not known.
std::int64_t bytes_in_memory(const OperationGraph& graph) {
  std::set<std::size_t> counted;
  std::int64_t bytes = 0;
  for (const Operation& one : graph.operations)
    for (const std::vector<Part>* parts : {&one.inputs, &one.outputs})
      for (const Part& part : *parts) {
        const Tensor& tensor = graph.tensors[part.tensor];
        if (tensor.is_virtual || tensor.is_by_value || !counted.insert(part.tensor).second) continue;
        if (bits_of(tensor.dtype) == 0) return 0;
        bytes += bytes_of(tensor);
        if (bytes > kMaxBytes) throw InputError("is a kernel that moves more than 2^50 bytes");
      }
  return bytes;
}

std::int64_t product_from(const std::vector<std::int64_t>& extents, std::size_t first) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < extents.size(); ++i) product *= extents[i];
  return product;
}

/// C[.., m, n] = A[.., m, k] B[.., k, n].
std::optional<GemmShape> product_of(const OperationGraph& graph, const Operation& of) {
  const Tensor *a = graph.input(of, "a"), *c = graph.output(of, "c");
  if (a == nullptr || c == nullptr || a->dimensions.size() < 2 || c->dimensions.size() < 2) return std::nullopt;
  const std::size_t rank = c->dimensions.size();
  GemmShape shape{c->dimensions[rank - 2], c->dimensions[rank - 1], a->dimensions.back(), 1, Dtype::bf16};
  for (std::size_t i = 0; i + 2 < rank; ++i) shape.batch *= c->dimensions[i];
  return shape;
}

/// The image, the filter [K, C / groups, R, S, ..] and the result [N, K, OH, OW, ..] of a convolution, or their
/// gradients.
struct Convolved {
  const Tensor *x, *w, *y;
};

Convolved tensors_of(const OperationGraph& graph, const Operation& of) {
  if (of.name == "convolution_forward") return {graph.input(of, "x"), graph.input(of, "w"), graph.output(of, "y")};
  if (of.name == "convolution_data_gradient")
    return {graph.output(of, "dx"), graph.input(of, "w"), graph.input(of, "dy")};
  if (of.name == "convolution_weight_gradient")
    return {graph.input(of, "x"), graph.output(of, "dw"), graph.input(of, "dy")};
  return {nullptr, nullptr, nullptr};
}

/// A convolution as a product for each group (Chetlur et al. 2014, section 3): results by filters forward, inputs by
/// channels for the gradient of data, filters by their elements for that of weights.
std::optional<GemmShape> convolution_of(const OperationGraph& graph, const Operation& of) {
  const auto [x, w, y] = tensors_of(graph, of);
  if (x == nullptr || w == nullptr || y == nullptr) return std::nullopt;
  const std::size_t rank = w->dimensions.size();
  if (rank < 3 || x->dimensions.size() != rank || y->dimensions.size() != rank) return std::nullopt;
  const std::int64_t groups = x->dimensions[1] / w->dimensions[1];
  if (groups < 1 || w->dimensions[0] % groups != 0) return std::nullopt;
  const std::int64_t results = y->dimensions[0] * product_from(y->dimensions, 2);
  const std::int64_t filters = w->dimensions[0] / groups, channels = w->dimensions[1];
  const std::int64_t places = product_from(w->dimensions, 2);
  if (of.name == "convolution_forward") return GemmShape{results, filters, channels * places, groups, Dtype::bf16};
  if (of.name == "convolution_data_gradient")
    return GemmShape{results, channels, filters * places, groups, Dtype::bf16};
  return GemmShape{filters, channels * places, results, groups, Dtype::bf16};
}

void check_operations(double operations) {
  if (operations > kMaxOperations) throw InputError("is a kernel of more than 1e18 operations");
}

GraphKernel attention_kernel(const FoundAttention& found) {
  const bool is_forward = found.shape.kernel_class == KernelClass::cudnn_forward;
  GraphKernel kernel{is_forward ? "cudnn attention_forward" : "cudnn attention_backward", found.dtype, {}};
  if (!found.mask.empty()) kernel.name += " " + found.mask;
  const auto& shape = found.shape;
  check_operations(10.0 * static_cast<double>(shape.queries) * static_cast<double>(shape.keys) *
                   static_cast<double>(shape.width) * static_cast<double>(shape.batch));
  const auto rate = rate_of(found.dtype);
  if (!rate || !found.mask.empty() || shape.key_batch < 1 || shape.batch % shape.key_batch != 0) return kernel;
  kernel.work.shape.attention = shape;
  kernel.work.shape.attention->dtype = *rate;
  return kernel;
}

}  // namespace

GraphKernel graph_kernel(const OperationGraph& graph) {
  if (const auto attention = find_attention(graph)) return attention_kernel(*attention);
  GraphKernel kernel{joined_names(graph), "", {}};
  std::vector<const Operation*> special;
  for (const Operation& one : graph.operations)
    if (is_beyond_bytes(one.name)) special.push_back(&one);
  if (special.size() > 1) return kernel;
  const std::int64_t bytes = bytes_in_memory(graph);
  if (special.empty()) {
    kernel.work.shape.bytes = bytes;
    return kernel;
  }
  const Operation& product = *special.front();
  const auto shape = product.name == "matmul"       ? product_of(graph, product)
                     : is_convolution(product.name) ? convolution_of(graph, product)
                                                    : std::nullopt;
  if (!shape) return kernel;
  check_operations(2.0 * static_cast<double>(shape->m) * static_cast<double>(shape->n) * static_cast<double>(shape->k) *
                   static_cast<double>(shape->batch));
  kernel.dtype = stored_type(graph, product.inputs.front().tensor);
  const auto rate = rate_of(kernel.dtype);
  if (!rate) return kernel;
  kernel.work.shape.gemm = shape;
  kernel.work.shape.gemm->dtype = *rate;
  kernel.work.shape.bytes = bytes;
  return kernel;
}

}  // namespace manyworlds::experiments::cudnn_graphs
