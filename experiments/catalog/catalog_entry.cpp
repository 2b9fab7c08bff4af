#include "experiments/catalog/catalog_entry.hpp"

#include <fmt/format.h>

#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {

std::optional<double> number_of(const core::OptionValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return std::nullopt;
}

std::string figure_text(const core::OptionValue& value, const std::optional<GuessedRange>& range) {
  const std::string text = import::value_text(value);
  return range ? fmt::format("{} ({:.6g} to {:.6g})", text, range->low, range->high) : text;
}

}  // namespace manyworlds::experiments
