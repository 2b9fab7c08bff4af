// What samples that are packed of documents need of a layout.
#pragma once

#include <vector>

#include "experiments/rules/rule.hpp"

namespace manyworlds::experiments {

/// Rules about samples that are packed of documents.
std::vector<Rule> document_rules();

}  // namespace manyworlds::experiments
