// The result of a collective task. The result of a step task is core::step::StepResult, which carries its own effort.
#pragma once

#include <string>
#include <string_view>

#include "core/network/engine/link_hops.hpp"
#include "core/step/network/isolated.hpp"

namespace manyworlds::farm {

/// The work that a task took; never part of the reproducible results.
struct Effort {
  core::network::LinkHops link_hops;
  double cpu_s = 0;
};

struct CollectiveResult {
  core::step::IsolatedResult result;
  Effort effort;
};
std::string encode(const CollectiveResult& result);
/// Throws InternalError for bytes that encode() did not make.
CollectiveResult decode_collective(std::string_view bytes);

}  // namespace manyworlds::farm
