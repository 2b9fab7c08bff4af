// Result columns on documents that samples are packed of.
#pragma once

#include <vector>

#include "farm/results/result_row.hpp"

namespace manyworlds::farm {

/// Adds what documents leave of attention, and how replicas that draw samples of their own would differ; nothing if
/// every sample of all experiments is one document.
void add_documents(std::vector<io::Column>& to, const Rows& rows);

}  // namespace manyworlds::farm
