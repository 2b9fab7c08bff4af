#include "experiments/cudnn_graphs/attention.hpp"

#include <algorithm>

namespace manyworlds::experiments::cudnn_graphs {
namespace {

using core::compute::KernelClass;
using programs::AttentionShape;

constexpr std::size_t kForwardProducts = 2, kBackwardProducts = 5;

/// Which operations are before which, through tensors.
class Order {
 public:
  explicit Order(const OperationGraph& graph) : graph_(graph), before_(graph.operations.size()) {
    for (std::size_t i = 0; i < before_.size(); ++i) collect(i, before_[i]);
  }
  /// Whether an operation takes, by whatever way, what another writes.
  bool is_behind(std::size_t operation, std::size_t other) const { return before_[operation][other]; }
  template <typename Fits>
  bool is_behind_any(std::size_t operation, Fits fits) const {
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (before_[operation][i] && fits(i)) return true;
    return false;
  }

 private:
  void collect(std::size_t operation, std::vector<bool>& found) const {
    found.resize(graph_.operations.size());
    std::vector<std::size_t> open{operation};
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      for (const Part& one : graph_.operations[next].inputs) {
        const std::ptrdiff_t writer = graph_.writer_of(one.tensor);
        if (writer < 0 || found[static_cast<std::size_t>(writer)]) continue;
        found[static_cast<std::size_t>(writer)] = true;
        open.push_back(static_cast<std::size_t>(writer));
      }
    }
  }

  const OperationGraph& graph_;
  std::vector<std::vector<bool>> before_;  // by operation
};

std::int64_t product_of_leading(const Tensor& tensor) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i + 2 < tensor.dimensions.size(); ++i) product *= tensor.dimensions[i];
  return product;
}

std::int64_t from_end(const Tensor& tensor, std::size_t places) {
  return tensor.dimensions[tensor.dimensions.size() - places];
}

/// A width with which `total` products of one width have as many operations as those of keys' and of values' have.
std::int64_t common_width(std::int64_t of_keys, std::int64_t of_values, std::int64_t products_of_keys,
                          std::int64_t total) {
  return (of_keys * products_of_keys + of_values * (total - products_of_keys) + total - 1) / total;
}

std::string name_of(const OperationGraph& graph, std::size_t operation) {
  return graph.operations[operation].name;
}

/// A comparison of indices of rows with those of columns is a mask by position. One that keeps what is not behind the
/// diagonal is causal.
void find_mask(const OperationGraph& graph, const Order& order, FoundAttention& found) {
  std::vector<std::string> comparisons;
  for (const Operation& one : graph.operations) {
    if (!one.name.starts_with("cmp_") || one.inputs.size() < 2) continue;
    const bool is_of_indices = std::all_of(one.inputs.begin(), one.inputs.end(), [&](const Part& part) {
      const std::ptrdiff_t writer = graph.writer_of(part.tensor);
      if (writer < 0) return false;
      const auto of = static_cast<std::size_t>(writer);
      return name_of(graph, of) == "gen_index" ||
             order.is_behind_any(of, [&](std::size_t i) { return name_of(graph, i) == "gen_index"; });
    });
    if (is_of_indices) comparisons.push_back(one.name);
  }
  found.shape.is_causal = !comparisons.empty();
  const bool is_causal_alone = comparisons.size() == 1 && (comparisons[0] == "cmp_ge" || comparisons[0] == "cmp_le");
  if (!comparisons.empty() && !is_causal_alone) found.mask = "with a window";
}

/// Extents of the product of queries and keys, C[.., queries, keys] = A B.
FoundAttention of_scores(const OperationGraph& graph, const Operation& scores) {
  FoundAttention found;
  const Tensor &keys = *graph.input(scores, "b"), &product = *graph.output(scores, "c");
  found.shape.queries = from_end(product, 2), found.shape.keys = from_end(product, 1);
  found.shape.batch = product_of_leading(product), found.shape.key_batch = product_of_leading(keys);
  found.dtype = stored_type(graph, scores.inputs.front().tensor);
  return found;
}

std::optional<FoundAttention> forward(const OperationGraph& graph, const std::vector<std::size_t>& products,
                                      const Order& order, const std::vector<std::size_t>& exponentials) {
  const bool is_second_behind = order.is_behind(products[1], products[0]);
  const std::size_t first = products[is_second_behind ? 0 : 1], second = products[is_second_behind ? 1 : 0];
  const bool is_through = std::any_of(exponentials.begin(), exponentials.end(), [&](std::size_t one) {
    return order.is_behind(second, one) && order.is_behind(one, first);
  });
  if (!is_through) return std::nullopt;
  const Operation &scores = graph.operations[first], &values = graph.operations[second];
  FoundAttention found = of_scores(graph, scores);
  found.shape.kernel_class = KernelClass::cudnn_forward;
  found.shape.width =
      common_width(from_end(*graph.input(scores, "a"), 1), from_end(*graph.output(values, "c"), 1), 1, 2);
  return found;
}

std::optional<FoundAttention> backward(const OperationGraph& graph, const std::vector<std::size_t>& products,
                                       const Order& order, const std::vector<std::size_t>& exponentials) {
  std::vector<std::size_t> roots, others;
  const auto is_product = [&](std::size_t i) { return name_of(graph, i) == "matmul"; };
  for (const std::size_t one : products) (order.is_behind_any(one, is_product) ? others : roots).push_back(one);
  if (roots.size() != 2) return std::nullopt;
  const auto feeds_exponential = [&](std::size_t root) {
    return std::any_of(exponentials.begin(), exponentials.end(),
                       [&](std::size_t one) { return order.is_behind(one, root); });
  };
  if (feeds_exponential(roots[0]) == feeds_exponential(roots[1])) return std::nullopt;
  if (!feeds_exponential(roots[0])) std::swap(roots[0], roots[1]);
  const auto behind = [&](std::size_t root) {
    return std::count_if(others.begin(), others.end(), [&](std::size_t one) { return order.is_behind(one, root); });
  };
  if (behind(roots[0]) != 3 || behind(roots[1]) != 2) return std::nullopt;
  const Operation &scores = graph.operations[roots[0]], &gradients = graph.operations[roots[1]];
  FoundAttention found = of_scores(graph, scores);
  found.shape.kernel_class = KernelClass::cudnn_backward;
  found.shape.width =
      common_width(from_end(*graph.input(scores, "a"), 1), from_end(*graph.input(gradients, "a"), 1), 3, 5);
  return found;
}

/// Q[.., queries, width], K[.., keys, width] and V[.., keys, width] of an operation that is all of attention.
std::optional<FoundAttention> of_one(const OperationGraph& graph, const Operation& operation) {
  const bool is_forward = operation.name == "sdpa_forward";
  const Tensor *q = graph.input(operation, "q"), *k = graph.input(operation, "k"), *v = graph.input(operation, "v");
  if (q == nullptr || k == nullptr || v == nullptr) return std::nullopt;
  for (const Tensor* one : {q, k, v})
    if (one->dimensions.size() < 2) return std::nullopt;
  FoundAttention found;
  AttentionShape& shape = found.shape;
  shape.kernel_class = is_forward ? KernelClass::cudnn_forward : KernelClass::cudnn_backward;
  shape.queries = from_end(*q, 2), shape.keys = from_end(*k, 2);
  shape.batch = product_of_leading(*q), shape.key_batch = product_of_leading(*k);
  shape.width = is_forward ? common_width(from_end(*q, 1), from_end(*v, 1), 1, 2)
                           : common_width(from_end(*q, 1), from_end(*v, 1), 3, 5);
  shape.is_causal = false;
  found.dtype = stored_type(graph, operation.inputs.front().tensor);
  if (graph.input(operation, "block_mask") != nullptr) found.mask = "with a mask of blocks";
  if (graph.input(operation, "page_table_k") != nullptr) found.mask = "with pages of keys";
  return found;
}

bool has_parts(const OperationGraph& graph, const Operation& matmul) {
  for (const Tensor* one : {graph.input(matmul, "a"), graph.input(matmul, "b"), graph.output(matmul, "c")})
    if (one == nullptr || one->dimensions.size() < 2) return false;
  return true;
}

}  // namespace

std::string stored_type(const OperationGraph& graph, std::size_t tensor) {
  for (std::size_t steps = 0; graph.tensors[tensor].is_virtual && steps < graph.operations.size(); ++steps) {
    const std::ptrdiff_t writer = graph.writer_of(tensor);
    if (writer < 0 || graph.operations[static_cast<std::size_t>(writer)].inputs.empty()) break;
    tensor = graph.operations[static_cast<std::size_t>(writer)].inputs.front().tensor;
  }
  return graph.tensors[tensor].dtype;
}

std::optional<FoundAttention> find_attention(const OperationGraph& graph) {
  std::vector<std::size_t> products, exponentials;
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    const Operation& one = graph.operations[i];
    if (one.name == "sdpa_forward" || one.name == "sdpa_backward")
      return graph.operations.size() == 1 ? of_one(graph, one) : std::nullopt;
    if (one.name == "exp") exponentials.push_back(i);
    if (one.name != "matmul") continue;
    if (!has_parts(graph, one)) return std::nullopt;
    products.push_back(i);
  }
  if (products.size() != kForwardProducts && products.size() != kBackwardProducts) return std::nullopt;
  const Order order(graph);
  auto found = products.size() == kForwardProducts ? forward(graph, products, order, exponentials)
                                                   : backward(graph, products, order, exponentials);
  if (found) find_mask(graph, order, *found);
  return found;
}

}  // namespace manyworlds::experiments::cudnn_graphs
