// Which figures of an experiment nobody measured or published: those that the catalog calls guesses, and what they are
// worth in the time of a step.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/measured.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

/// Returns, by kind of kernel, whether the rate of its model is a guess on a GPU of the experiment: the catalog's,
/// which the settings left as it is, or the general value of a GPU for which nobody gave one.
std::array<bool, core::compute::kKernelKinds> guessed_kinds(const Settings& settings, const Catalog& catalog);

struct Guess {
  std::string key;  // "cluster.gpu.memory_gb_per_s"
  core::OptionValue value;
  std::optional<GuessedRange> range;  // none: nobody says how far off the value may be
  std::string file;                   // that has it: "catalog/gpus/metax_c500.yaml"
};

/// Returns the guesses of the catalog that the settings left as they are, of GPUs, library, stack and cluster.
std::vector<Guess> guesses_of(const Settings& settings, const Catalog& catalog);

/// Returns those on which the answer rests: with another value, the step's time by closed forms differs, or whether it
/// fits into memory. `config` must be config_of(settings).
std::vector<Guess> guesses_in_use(const Settings& settings, const ExperimentConfig& config, const Catalog& catalog);

/// What the guesses with ranges are worth: factors of the step's time with each figure at the end of its range that is
/// fast, and with each at the end that is slow, by closed forms.
struct GuessedTime {
  double low = 1, high = 1;  // at most 1 and at least 1
  std::string figures;       // names, values and ranges, and which have none; empty if no figure has a range
};
GuessedTime guessed_time(const Settings& settings, const ExperimentConfig& config, const Catalog& catalog);

}  // namespace manyworlds::experiments
