// A checked run as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "farm/check/checked_run.hpp"

namespace manyworlds::farm {

std::string check_text(const CheckedRun& run);
nlohmann::ordered_json check_json(const CheckedRun& run);

}  // namespace manyworlds::farm
