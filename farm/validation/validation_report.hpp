// The report of `validate`: accuracy by family, omitted rows with reasons, assumptions, constants, and each row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "farm/validation/validated_steps.hpp"

namespace manyworlds::farm {

// Titles of the kinds of measurements.
inline constexpr const char* kStepsTitle = "training steps";
inline constexpr const char* kHeldOutTitle = "training steps, each family with constants fitted to the others";
inline constexpr const char* kSwitchesTitle = "steps that differ in one thing: the time before over the time after";
inline constexpr const char* kCollectivesTitle = "collectives";
inline constexpr const char* kKernelsTitle = "kernels";
inline constexpr const char* kLeftOutGpusTitle = "kernels, each GPU with the constants of others";
inline constexpr const char* kLeftOutShapesTitle = "GEMMs from 50 us, left out of the measured shapes";
inline constexpr const char* kMemoryTitle = "memory peaks";

struct Validation {
  std::vector<experiments::measured::TrainingStep> steps;
  std::vector<std::pair<std::string, Comparison>> kinds;  // title and comparison of each kind
  std::vector<Constant> constants;
};

/// `every_row` adds one line for each row.
std::string validation_text(const Validation& validation, bool every_row);
nlohmann::ordered_json validation_json(const Validation& validation, bool every_row);

}  // namespace manyworlds::farm
