#include "io/results/table.hpp"

#include <fmt/format.h>

namespace manyworlds::io {

std::string Column::text_at(std::size_t row) const {
  return std::visit([row](const auto& all) { return fmt::format("{}", all[row]); }, values);
}

std::string Table::text_at(std::string_view column, std::size_t row) const {
  const Column* found = find(column);
  return found ? found->text_at(row) : std::string();
}

std::map<std::string, std::size_t> Table::counts_of(std::string_view column) const {
  std::map<std::string, std::size_t> counts;
  for (std::size_t row = 0; row < rows(); ++row) ++counts[text_at(column, row)];
  return counts;
}

}  // namespace manyworlds::io
