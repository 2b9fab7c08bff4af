// A design study as text and JSON, and its GPU as an entry of the catalog.
#pragma once

#include <string>

#include "farm/design/design_study.hpp"

namespace manyworlds::farm::design {

std::string study_text(const Study& study, const DesignJob& job);
std::string study_json(const Study& study, const DesignJob& job);

/// Returns a catalog file, for --catalog of other commands, with the chosen GPU under the name of the design.
std::string catalog_text(const Study& study, const DesignJob& job);

}  // namespace manyworlds::farm::design
