// The catalog file of a calibrated machine: a GPU with all values of the one it began with, and a communication
// library.
#pragma once

#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "farm/calibration/calibrated_part.hpp"
#include "farm/calibration/measured_files.hpp"

namespace manyworlds::farm {

struct CalibratedMachine {
  std::string name, base;  // of the new entry, and the GPU of the catalog that it began with
  CalibratedPart kernels, collectives, steps;
  MeasuredFiles files;
};

/// Returns the name of the library's entry.
std::string library_name(const CalibratedMachine& machine);

/// Returns the file that --catalog reads: constants that are taken are "fitted" to the user's files, all others have
/// the source and certainty that they had. The same measurements give the same bytes.
std::string catalog_file(const CalibratedMachine& machine, const experiments::Catalog& catalog);

/// Returns what was read, how far off each kind is before and after, what changed, what stays, and what was left out.
std::string calibration_text(const CalibratedMachine& machine);

}  // namespace manyworlds::farm
