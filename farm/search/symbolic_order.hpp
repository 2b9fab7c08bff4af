// An order of layouts that reads no hardware: by what each computes and sends (core/step/estimate/volumes.hpp).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/step/estimate/volumes.hpp"
#include "experiments/sweep/experiment.hpp"

namespace manyworlds::farm {

struct WeighedLayout {
  std::size_t experiment = 0;  // index in the sweep
  core::step::StepVolumes volumes;
  /// Bytes of the tensors of the rank that needs most, without what libraries and drivers take.
  std::int64_t tensor_bytes = 0;
};

struct SymbolicOrder {
  core::step::Balance balance;
  std::int64_t gpus_per_node = 8;
  std::vector<WeighedLayout> layouts;        // the lightest first; equal ones in the order of the sweep
  std::optional<std::int64_t> memory_bytes;  // of a GPU, if given
  std::size_t too_large = 0;                 // layouts left out, whose tensors take more
};

/// Weighs the experiments of a sweep. Neither their GPU nor their fabric is read. `memory_bytes`: leaves out layouts
/// whose tensors take more.
SymbolicOrder symbolic_order(const experiments::Sweep& sweep, const core::step::Balance& balance,
                             std::optional<std::int64_t> memory_bytes);

/// Returns the first `k` layouts as a table, with the rule of the order below it, or as JSON.
std::string symbolic_text(const experiments::Sweep& sweep, const SymbolicOrder& order, std::size_t k);
nlohmann::ordered_json symbolic_json(const experiments::Sweep& sweep, const SymbolicOrder& order, std::size_t k);

}  // namespace manyworlds::farm
