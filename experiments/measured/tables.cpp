#include "experiments/measured/tables.hpp"

#include "core/base/error.hpp"

namespace manyworlds::experiments::measured {

std::string compiled_table(const std::string& name) {
  for (const CompiledTable& table : compiled_tables())
    if (table.name == name) return table.text;
  MANYWORLDS_CHECK(false, "no table '{}' is compiled in", name);
}

}  // namespace manyworlds::experiments::measured
