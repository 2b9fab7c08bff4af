#include "core/workload/weights/sufficient_factors.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/workload/operators/operator_parts.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

bool is_gemm_of_weight(const WorkItem& work) {
  return work.computes_weight_gradient() && work.kernel()->shape.kernel_class == compute::KernelClass::gemm;
}
/// Whether the kernel adds what such a GEMM has written to the gradients of the weight.
bool accumulates_weight(const WorkItem& work) {
  return work.computes_weight_gradient() && work.kernel()->shape.name == "accumulate_gradient";
}

Modules weight_of(std::string_view linear) {
  constexpr std::array<std::pair<std::string_view, Modules>, 3> kBehindAttention{{
      {"attention_output", factor_weight::attn_proj},
      {"mlp_up", factor_weight::mlp_fc1},
      {"mlp_down", factor_weight::mlp_fc2},
  }};
  for (const auto& [name, weight] : kBehindAttention)
    if (name == linear) return weight;
  return factor_weight::qkv_linear;
}

/// Returns the GEMMs of an operator as one weight. A weight gradient is a GEMM of out x in over the tokens.
DenseWeight weight_of(const Operator& linear) {
  DenseWeight weight;
  for (const WorkItem& work : linear.backward) {
    if (!is_gemm_of_weight(work)) continue;
    const compute::Kernel& gemm = work.kernel()->shape;
    weight.in = gemm.n, weight.tokens = gemm.k;
    weight.out += gemm.m;
  }
  return weight;
}

bool exchanges_factors(const Strategy& strategy, const Operator& linear, const DenseWeight& weight) {
  if (strategy.gradient_exchange == GradientExchange::cheapest)
    return factors_take_fewer_bytes(weight, strategy.replicas(), gradient_bytes(strategy));
  return strategy.factor_weights == 0 || (strategy.factor_weights & weight_of(linear.name)) != 0;
}

/// Returns the kernels of the weight's gradient over the tokens of all replicas.
OpList gradient_of_all(const Operator& linear, std::int64_t replicas, const RankShapes& shapes) {
  OpList kernels;
  for (const WorkItem& work : linear.backward) {
    if (!is_gemm_of_weight(work)) continue;
    const compute::Kernel& own = work.kernel()->shape;
    add_weight_gradient(kernels, shapes, compute::weight_gradient(own.name, own.m, own.n, replicas * own.k, own.dtype));
  }
  return kernels;
}

}  // namespace

std::int64_t received_factor_bytes(const DenseWeight& weight, std::int64_t replicas) {
  return (replicas - 1) * kFactorBytes * weight.factor_elements();
}

double received_sum_bytes(const DenseWeight& weight, std::int64_t replicas, std::int64_t gradient_bytes) {
  const auto n = static_cast<double>(replicas);
  return 2 * (n - 1) / n * static_cast<double>(gradient_bytes * weight.parameters());
}

bool factors_take_fewer_bytes(const DenseWeight& weight, std::int64_t replicas, std::int64_t gradient_bytes) {
  return replicas * kFactorBytes * weight.factor_elements() < 2 * gradient_bytes * weight.parameters();
}

void exchange_factors(std::vector<Operator>& layer, const Strategy& strategy, const RankShapes& shapes) {
  const std::int64_t replicas = strategy.replicas();
  if (strategy.gradient_exchange == GradientExchange::sums || replicas == 1) return;
  for (Operator& each : layer) {
    if (std::none_of(each.backward.begin(), each.backward.end(), is_gemm_of_weight)) continue;
    const DenseWeight weight = weight_of(each);
    if (!exchanges_factors(strategy, each, weight)) continue;
    each.factors = WeightFactors{weight.parameters(), replicas * kFactorBytes * weight.factor_elements(),
                                 gradient_of_all(each, replicas, shapes)};
    std::erase_if(each.backward,
                  [](const WorkItem& work) { return is_gemm_of_weight(work) || accumulates_weight(work); });
  }
}

}  // namespace manyworlds::core::workload
