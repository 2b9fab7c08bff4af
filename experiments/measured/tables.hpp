// Published measurements as tables that are compiled in from measured/*.csv; README.md there names their sources.
#pragma once

#include <string>
#include <vector>

namespace manyworlds::experiments::measured {

struct CompiledTable {
  const char* name;  // name of the file without .csv
  const char* text;
};

/// Returns the tables, sorted by name.
const std::vector<CompiledTable>& compiled_tables();

/// Returns the text of the table `name`, which must exist.
std::string compiled_table(const std::string& name);

}  // namespace manyworlds::experiments::measured
