#include "io/results/known_value.hpp"

#include <cmath>

namespace manyworlds::io {

bool is_known(const Column& column, std::size_t row) {
  const double value = column.number_at(row);
  return !std::isnan(value) && (value != 0 || column.name != "memory_peak_bytes");
}

}  // namespace manyworlds::io
