// What `validate` tells: figures by family, what was left out and why, what was assumed, the constants, every row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "farm/validation/validated_steps.hpp"

namespace manyworlds::farm {

// What sorts of measurements there are.
inline constexpr const char* kStepsTitle = "training steps";
inline constexpr const char* kLeftOutTitle = "training steps, each family with constants fitted to the others";
inline constexpr const char* kCollectivesTitle = "collectives";
inline constexpr const char* kMemoryTitle = "peaks of memory";

struct Validation {
  std::vector<experiments::measured::TrainingStep> steps;
  std::vector<std::pair<std::string, Comparison>> kinds;  // what sort of measurements, and how they compare
  std::vector<Constant> constants;
};

/// `every_row`: one line for each row besides.
std::string validation_text(const Validation& validation, bool every_row);
nlohmann::ordered_json validation_json(const Validation& validation, bool every_row);

}  // namespace manyworlds::farm
