// Which rules of a user choose the collectives of a step (core/collective/library/tuner_rules.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/step/layout/configuration.hpp"

namespace manyworlds::core::step {

/// An operation of a step that rules are asked about, and what decides: a line, or a file; neither of them: the
/// library.
struct TunerChoice {
  collective::Kind kind = collective::Kind::all_reduce;
  std::int64_t bytes = 0;
  std::uint32_t members = 0, nodes = 0;
  int line = 0;
  std::string file = {};
  auto operator<=>(const TunerChoice&) const = default;
};

/// Returns the distinct ones of a configuration, which has its graph, ascending. Sends have no rules; all-to-alls are
/// among them where a rule decides, as NCCL's tuner is not asked about them.
std::vector<TunerChoice> tuner_choices(const Configuration& configuration);

}  // namespace manyworlds::core::step
