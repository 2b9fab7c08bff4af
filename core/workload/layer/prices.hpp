// What the kernels of a part cost: the model's time, or what the GPU's table of measured times says of the kernel, of
// the submodule around it or of the layer around that. The coarsest that the table has counts, since it includes what
// the finer ones leave out: the kernels inside keep their shares and add up to what was measured.
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
#include "core/workload/strategy/cut.hpp"

namespace manyworlds::core::workload {

/// What there is to know of the time of a kernel, a submodule or a layer.
struct PriceSources {
  Time model_ps = 0;            // the model's, of all kernels inside
  Time finer_ps = 0;            // by finer measurements, and by the model where they lack something
  bool finer_measured = false;  // they lack nothing
  std::optional<compute::MeasuredTime> measured;

  Time ps() const { return measured ? measured->time_ps : finer_ps; }
};
using Prices = std::map<compute::Measurable, PriceSources>;

/// Of a layer in tables: layer, expert_layer, windowed_layer, windowed_expert_layer.
std::string_view name_of(LayerKind kind);

/// Prices every kernel of an embedding, a layer or a head. `prices` may be null.
void price(std::string_view part, const Cut& rank, const compute::Gpu& gpu, std::vector<Operator>& operators,
           Prices* prices);

/// The largest difference between what two sources say of one thing, as a share of its measured time.
struct Disagreement {
  double share = 0;
  std::string at;  // empty: nothing is known by two sources
};
/// Of submodules and layers that are measured, and whose kernels all are at finer levels too.
Disagreement levels_disagree(const Prices& prices);
/// Of everything that is measured and the model.
Disagreement model_disagrees(const Prices& prices);
/// Notes what a kernel outside every layer costs, and what says so.
void note(Prices& prices, const compute::Kernel& kernel, const compute::Gpu& gpu);

/// Rows of the table that fit something.
std::int64_t rows_used(const Prices& prices);

}  // namespace manyworlds::core::workload
