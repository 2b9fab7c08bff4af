// Architectures other than decoder-only transformers, by what tells them in a table of Megatron-LM's tests.
#pragma once

#include <optional>
#include <string>

#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

/// An architecture, and the word or column of a row that tells it.
struct Architecture {
  std::string name, shown_by;
};

/// Returns the architecture of a row's model if it is one that is not modelled. Words are those of `test_case`, which
/// Megatron-LM files by architecture; columns are arguments that only such models have.
std::optional<Architecture> other_architecture(const import::CsvRow& row);

}  // namespace manyworlds::experiments::measured
