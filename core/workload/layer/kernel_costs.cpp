#include "core/workload/layer/kernel_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/workload/model/architecture.hpp"
#include "core/workload/model/multi_token_prediction.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::CostLevel;
using compute::Direction;
using compute::KernelClass;
using compute::MeasurementKey;
using compute::TimeBasis;

/// Ranks kernel classes: fused attention and scans, which no operator has both of, above GEMMs above everything else.
int class_priority(KernelClass kernel_class) {
  if (kernel_class == KernelClass::memory_bound) return 0;
  return kernel_class == KernelClass::gemm ? 1 : 2;
}

/// Kernels that may be measured as a whole, as pointers into the operators' lists.
using Group = std::vector<KernelWork*>;

Group kernels_of(OpList& ops) {
  Group group;
  for (WorkItem& work : ops)
    if (KernelWork* kernel = work.kernel()) group.push_back(kernel);
  return group;
}

MeasurementKey measurable_group(CostLevel level, std::string_view name, Direction direction, const RankShapes& shapes,
                                const Group& group) {
  MeasurementKey result;
  result.level = level;
  result.name = name;
  result.direction = direction;
  result.m = shapes.tokens;
  result.n = shapes.keys;
  result.k = shapes.hidden;
  result.batch = shapes.samples;
  for (const KernelWork* kernel : group) {
    const compute::Kernel& shape = kernel->shape;
    if (class_priority(shape.kernel_class) > class_priority(result.kernel_class))
      result.kernel_class = shape.kernel_class;
    result.dtype = std::max(result.dtype, shape.dtype);  // the narrowest; no group mixes fp32 with others
    result.bytes += shape.bytes;
    result.flops += shape.flops;
  }
  return result;
}

/// Gives every kernel its share of `whole_ps`, with cumulative rounding: the shares sum to it, and change nothing if it
/// is the kernels' sum.
void distribute(const Group& group, Time sum_ps, Time whole_ps, CostLevel level) {
  Time before = 0, given = 0;
  for (KernelWork* kernel : group) {
    before += kernel->cost.ps;
    const Time up_to =
        sum_ps > 0 ? static_cast<Time>((static_cast<Int128>(before) * whole_ps + sum_ps / 2) / sum_ps) : whole_ps;
    kernel->cost = {up_to - given, level, TimeBasis::measured};
    given = up_to;
  }
}

class PartCoster {
 public:
  PartCoster(const RankShapes& shapes, const compute::Gpu& gpu, KernelCosts* costs, bool all_trained)
      : shapes_(shapes), gpu_(gpu), costs_(costs), all_trained_(all_trained) {}

  void part(std::string_view name, std::vector<Operator>& operators) {
    for (Operator& each : operators)
      for (KernelWork* kernel : kernels_of(each.recompute)) cost_kernel(*kernel);
    for (Operator& each : operators)
      if (each.factors)
        for (KernelWork* kernel : kernels_of(each.factors->gradient)) cost_kernel(*kernel);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      // No row describes a backward pass without gradients of weights.
      const auto is_partial = [&](const Operator& one) { return direction == Direction::backward && one.factors; };
      Group all;
      for (Operator& each : operators) {
        const Group group = kernels_of(direction == Direction::forward ? each.forward : each.backward);
        for (KernelWork* kernel : group) {
          cost_kernel(*kernel);
          // Gradients of inputs have another layout than the GEMMs that the GPU's shapes were measured with.
          if (direction == Direction::backward && kernel->cost.level == CostLevel::model)
            kernel->cost.basis = std::min(kernel->cost.basis, TimeBasis::interpolated);
        }
        if (!is_partial(each)) cost_group(CostLevel::submodule, each.name, direction, group);
        all.insert(all.end(), group.begin(), group.end());
      }
      if (std::none_of(operators.begin(), operators.end(), is_partial))
        cost_group(CostLevel::layer, name, direction, all);
    }
  }

 private:
  void cost_kernel(KernelWork& kernel) const {
    kernel.cost = compute::kernel_cost(kernel.shape, gpu_);
    if (costs_) record_cost(*costs_, kernel.shape, gpu_);
  }

  void cost_group(CostLevel level, std::string_view name, Direction direction, const Group& group) const {
    if (group.empty() || !all_trained_ || (!gpu_.measured && !costs_)) return;
    // No row describes what depends on the experts of one rank and layer.
    if (std::any_of(group.begin(), group.end(), [](const KernelWork* one) { return one->depends_on_load; })) return;
    const MeasurementKey what = measurable_group(level, name, direction, shapes_, group);
    CostSources sources;
    sources.finer_measured = true;
    for (const KernelWork* kernel : group) {
      sources.finer_ps += kernel->cost.ps;
      sources.finer_measured &= kernel->cost.level != CostLevel::model;
    }
    if (gpu_.measured)
      if (const auto* found = gpu_.measured->find(what)) sources.measured = *found;
    if (costs_) {
      for (const KernelWork* kernel : group) sources.model_ps += compute::estimated_cost(kernel->shape, gpu_).ps;
      costs_->try_emplace(what, sources);
    }
    if (sources.measured) distribute(group, sources.finer_ps, sources.measured->time_ps, level);
  }

  const RankShapes& shapes_;
  const compute::Gpu& gpu_;
  KernelCosts* costs_;
  const bool all_trained_;
};

/// Returns the largest deviation of the `other` time among measured entries for which `is_relevant` holds, the first of
/// equals.
template <class Relevant>
Disagreement largest_disagreement(const KernelCosts& costs, Time CostSources::*other, const Relevant& is_relevant) {
  Disagreement result;
  for (const auto& [what, sources] : costs) {
    if (!sources.measured || !is_relevant(sources)) continue;
    const auto measured = static_cast<double>(sources.measured->time_ps);
    const double share = static_cast<double>(sources.*other) / measured - 1;
    if (!result.at.empty() && std::abs(share) <= std::abs(result.share)) continue;
    result = {share, fmt::format("{}: {:.3f} us measured, {:.3f} us otherwise", compute::describe(what),
                                 measured * 1e-6, static_cast<double>(sources.*other) * 1e-6)};
  }
  return result;
}

}  // namespace

void record_cost(KernelCosts& costs, const compute::Kernel& kernel, const compute::Gpu& gpu) {
  if (!compute::is_measurable(kernel)) return;
  const auto [entry, is_new] = costs.try_emplace(compute::measurement_key(kernel));
  if (!is_new) return;
  const compute::KernelCost estimated = compute::estimated_cost(kernel, gpu);
  entry->second.model_ps = entry->second.finer_ps = estimated.ps;
  entry->second.basis = estimated.basis;
  if (gpu.measured)
    if (const auto* found = gpu.measured->find(entry->first)) entry->second.measured = *found;
}

std::string_view layer_name(const Model& model, LayerKind kind) {
  if (is_mtp(kind)) return "mtp_layer";
  if (model.architecture) return model.architecture->block_of(kind).name;
  if (kind.windowed) return kind.experts ? "windowed_expert_layer" : "windowed_layer";
  return kind.experts ? "expert_layer" : "layer";
}

void kernel_cost(std::string_view part, const RankShapes& shapes, const compute::Gpu& gpu,
                 std::vector<Operator>& operators, KernelCosts* costs, bool all_trained) {
  PartCoster(shapes, gpu, costs, all_trained).part(part, operators);
}

Disagreement level_disagreement(const KernelCosts& costs) {
  return largest_disagreement(costs, &CostSources::finer_ps, [](const CostSources& one) { return one.finer_measured; });
}

Disagreement model_disagreement(const KernelCosts& costs) {
  return largest_disagreement(costs, &CostSources::model_ps, [](const CostSources&) { return true; });
}

std::int64_t rows_used(const KernelCosts& costs) {
  std::set<int> rows;
  for (const auto& [what, sources] : costs)
    if (sources.measured) rows.insert(sources.measured->row);
  return static_cast<std::int64_t>(rows.size());
}

}  // namespace manyworlds::core::workload
