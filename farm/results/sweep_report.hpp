// The summary for people of a finished sweep.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Returns a screen of text for stderr: the outcomes of the experiments, what was shared, and what the run took.
std::string summary_text(const io::Results& results);
nlohmann::ordered_json summary_json(const io::Results& results);

}  // namespace manyworlds::farm
