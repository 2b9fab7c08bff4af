#include "core/workload/mixers/mixer_parts.hpp"

#include "core/workload/mixers/token_exchange.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;

WorkItem moves(std::string_view name, KernelClass kernel_class, std::int64_t bytes) {
  return kernel(kernel_class == KernelClass::memory_bound ? compute::memory_bound(name, bytes)
                                                          : compute::chunked_scan(name, kernel_class, bytes, 0));
}

}  // namespace

void add_mixer_input(std::vector<Operator>& operators, const PartOnRank& on, std::int64_t columns) {
  operators.push_back(column_parallel(on.shapes, {"mixer_in", on.shapes.hidden, columns, false, on.dtype()}));
  mark_input_from(operators.back(), recompute::layernorm);
}

void add_traded_input(std::vector<Operator>& operators, const PartOnRank& on, std::int64_t columns) {
  add_mixer_input(operators, on, columns);
  if (on.strategy.cp > 1) operators.push_back(tokens_to_heads(on.shapes.tokens, {{columns}}, true));
}

Operator mixer_output(const PartOnRank& on, std::int64_t width) {
  return row_parallel(on.shapes, {"mixer_out", width, on.shapes.hidden, false, on.dtype()});
}

void convolve(OpList& ops, KernelClass kernel_class, std::int64_t elements) {
  ops.push_back(moves("mixer_convolution", kernel_class, 4 * elements));
}

void convolve_backward(OpList& ops, KernelClass kernel_class, std::int64_t elements) {
  ops.push_back(moves("mixer_convolution_gradient", kernel_class, 6 * elements));
}

Operator gated_norm(KernelClass kernel_class, std::int64_t elements) {
  Operator result;
  result.name = "mixer_gated_norm";
  result.saved_bytes = 2 * elements;
  result.forward.push_back(moves(result.name, kernel_class, 6 * elements));
  result.backward.push_back(moves(result.name, kernel_class, 10 * elements));
  return result;
}

}  // namespace manyworlds::core::workload
