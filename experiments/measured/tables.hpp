// Published measurements as tables that are compiled in from measured/*.csv. README.md there tells where they are from.
#pragma once

#include <string>
#include <vector>

namespace manyworlds::experiments::measured {

struct CompiledTable {
  const char* name;  // of the file, without .csv
  const char* text;
};

/// Sorted by name.
const std::vector<CompiledTable>& compiled_tables();

/// The text of the one called `name`, which must exist.
std::string compiled_table(const std::string& name);

}  // namespace manyworlds::experiments::measured
