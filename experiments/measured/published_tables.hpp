// Tables of training steps as their authors publish them, read as tables of this project: published_columns.csv tells
// which of our columns is which of theirs, or what it is in every row.
#pragma once

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Returns the table with the columns of training_steps.csv if it is known under its own, otherwise the table itself.
/// Lines stay those of the file.
import::CsvTable with_known_columns(const import::CsvTable& table);

}  // namespace manyworlds::experiments::measured
