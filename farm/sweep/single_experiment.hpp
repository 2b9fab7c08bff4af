// The one experiment of a sweep that `run`, `net` and the Python package simulate.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Returns `sweep`, which was read from `file`, reduced to one experiment with id 0: the one with this `id`, or the
/// only one. Throws core::InputError, which says how to pin axes, if there are several. If refused experiments are
/// kept, the only one may be in Sweep::refused and none in Sweep::experiments.
experiments::Sweep single_experiment(experiments::Sweep sweep, std::optional<std::int64_t> id, const std::string& file);

/// Returns every column of the results of that experiment, and how far off a measurement of it is.
nlohmann::ordered_json experiment_json(const experiments::Sweep& sweep, const io::Results& results);

}  // namespace manyworlds::farm
