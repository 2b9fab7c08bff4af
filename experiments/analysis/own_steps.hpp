// A user's own measured steps: a table of training steps as `validate` reads it, with what was predicted for each.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments {

struct OwnStep {
  std::string id, source;
  std::string experiment;         // digest of its settings: rows of one experiment are one observation
  std::string chip, kind, stack;  // as Interval has them, and the name of the software
  std::string predicted_by;       // prediction_mark() at that time
  double measured_s = 0, predicted_s = 0;
};

/// Returns a digest of what predictions depend on besides an experiment: the program's models and the catalog.
std::string prediction_mark();

/// Returns a digest of the settings of an experiment.
std::string experiment_digest(const Settings& settings);

/// Returns the rows of a user's table. Throws InputError with file and line for what is none.
std::vector<OwnStep> read_own_steps(const import::CsvTable& table);

/// Returns the text of a table with a row for `step` of an experiment; a row with its id is replaced. `table` is the
/// text before, or empty; `name` is its name in messages. Throws InputError if it is none.
std::string with_own_step(const std::string& table, const std::string& name, const OwnStep& step,
                          const Settings& settings, const ExperimentConfig& config);

}  // namespace manyworlds::experiments
