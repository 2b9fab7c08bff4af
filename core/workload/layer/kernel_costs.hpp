// Costs of a part's kernels: the model's time, or the time that the GPU's table of measurements has for the kernel, for
// the submodule around it or for the layer around that. The coarsest level in the table wins, since it includes what
// finer levels leave out: the kernels inside keep their proportions and sum to the measured time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {

/// Everything that is known about the time of a kernel, a submodule or a layer.
struct CostSources {
  Time model_ps = 0;            // the model's time of all kernels inside
  Time finer_ps = 0;            // from finer measurements, and from the model where these are missing
  bool finer_measured = false;  // finer measurements cover all kernels
  compute::TimeBasis basis = compute::TimeBasis::modelled;  // of a kernel's model_ps
  std::optional<compute::MeasuredTime> measured;

  Time ps() const { return measured ? measured->time_ps : finer_ps; }
};
using KernelCosts = std::map<compute::MeasurementKey, CostSources>;

/// Returns the layer's name in tables: layer, expert_layer, windowed_layer, windowed_expert_layer, or that of its
/// block.
std::string_view layer_name(const Model& model, LayerKind kind);

/// Sets the cost of every kernel of an embedding, a layer or a head. `costs` may be null. Rows describe submodules and
/// layers whose weights are all trained: of others, which are not `all_trained`, only those of kernels apply.
void kernel_cost(std::string_view part, const RankShapes& shapes, const compute::Gpu& gpu,
                 std::vector<Operator>& operators, KernelCosts* costs, bool all_trained = true);

/// The largest difference between two sources of the same time, as a fraction of the measured time.
struct Disagreement {
  double share = 0;
  std::string at;  // empty: no time has two sources
};
/// Compares measured submodules and layers with finer measurements, where these cover all kernels.
Disagreement level_disagreement(const KernelCosts& costs);
/// Compares everything that is measured with the model.
Disagreement model_disagreement(const KernelCosts& costs);
/// Records the cost of a kernel outside every layer, and its sources.
void record_cost(KernelCosts& costs, const compute::Kernel& kernel, const compute::Gpu& gpu);

/// Returns how many rows of the table apply.
std::int64_t rows_used(const KernelCosts& costs);

}  // namespace manyworlds::core::workload
