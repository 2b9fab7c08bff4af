// Measured training steps: each row of a table becomes the experiment that was measured, or a reason why it cannot be
// simulated. README.md describes the columns and what is assumed if a row lacks one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/measured/rank_memory.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct TrainingStep {
  std::string id, source, family;
  int line = 0;                       // line in the file
  double measured_s = 0;              // one step, or one layer
  double weight = 1;                  // in means over its family
  bool excluded_from_family = false;  // excluded from its family's statistics
  std::string exclusion_reason;       // if it is excluded
  std::string gpu;                    // name in the catalog
  std::string comparison_group;       // model, machines and batch: the same in rows that a user would choose among
  std::string choice;                 // a name for that group
  std::string layout;                 // what the user would choose: the strategy

  std::vector<std::string> assumed;  // columns that the row lacks and whose values were assumed
  std::string unsupported;           // why it cannot be simulated; empty if it can
  std::string detail;                // of that reason, for this row
  std::optional<bool> ran;           // whether it ran when it was tried, if the table tells and it can be simulated
  bool fits_memory = true;           // into the GPU's memory, by the memory model; false if its software refuses it
  RankMemory rank_memory;            // measured besides, if the table has it

  /// One experiment, or two if one layer was measured: a model of two layers and one of one, whose difference is
  /// compared.
  std::vector<Settings> experiments;
  bool one_layer() const { return experiments.size() == 2; }
};

/// Returns whether a header has the columns of such a table.
bool is_training_steps_table(const import::CsvHeader& header);

/// Returns all rows in order. Throws InputError for errors of the table only; errors of a row are stored in
/// `unsupported`.
std::vector<TrainingStep> read_training_steps(const import::CsvTable& table, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured
