// Tables of measurements as their authors publish them, read as tables of this project: published_columns.csv tells of
// training steps which of our columns is which of theirs, or what it is in every row.
#pragma once

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// Parses a table of measurements: a CSV file, or what nccl-tests prints or NCCL's Inspector writes, which becomes a
/// table of collectives, of the GPU `gpu` where they do not name it. A table of training steps that is known under its
/// own columns gets those of training_steps.csv. Lines stay those of the file.
import::CsvTable parse_measurements(std::string_view text, const std::string& name, const std::string& gpu = {});

}  // namespace manyworlds::experiments::measured
