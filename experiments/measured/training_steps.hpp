// Measured training steps: each row of a table becomes the experiment that it was, or a reason why it cannot be one.
// README.md has the columns, and what is assumed where a row does not say.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/world.hpp"
#include "experiments/settings/catalog.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

struct TrainingStep {
  std::string id, source, family;
  int line = 0;               // of the file
  double measured_s = 0;      // of one step, or of one layer
  double weight = 1;          // in means over its family
  bool apart = false;         // kept out of its family's figures
  std::string apart_because;  // of one that is
  std::string gpu;            // in the catalog
  std::string choice;         // the same in rows among which somebody would choose: model, machines and batch
  std::string layout;         // what they would choose: the strategy

  std::vector<std::string> assumed;  // what the row does not say and was assumed, by names of columns
  std::string left_out;              // why it cannot be simulated; empty where it can
  std::string detail;                // of that reason, in this row
  bool fits = true;                  // into the memory that its GPU has, by our own account

  /// One experiment; or two, where one layer was measured: with two layers and with one, of which the difference
  /// counts.
  std::vector<Settings> experiments;
  bool one_layer() const { return experiments.size() == 2; }
};

/// Does this header name the columns of such a table?
bool is_training_steps(const import::CsvHeader& header);

/// All rows in their order. Throws InputError only for what is wrong with the table, never for what a row says: that
/// ends in left_out.
std::vector<TrainingStep> read_training_steps(const import::CsvTable& table, const Catalog& catalog);

}  // namespace manyworlds::experiments::measured
