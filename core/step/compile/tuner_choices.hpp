// Which rules of a user's table choose the collectives of a step (core/collective/library/tuner_rules.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// An operation of a step that a tuner is asked about, and the line that decides; 0: none, so that the library does.
struct TunerChoice {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int64_t bytes = 0;
  std::uint32_t members = 0, nodes = 0;
  int line = 0;
  auto operator<=>(const TunerChoice&) const = default;
};

/// Returns the distinct ones of a configuration, which has its graph, ascending. Sends and all-to-alls have no tuner.
std::vector<TunerChoice> tuner_choices(const Configuration& configuration);

}  // namespace manyworlds::core::step
