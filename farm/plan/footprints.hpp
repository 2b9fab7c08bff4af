// Memory footprints of experiments.
#pragma once

#include <string>
#include <unordered_map>

#include "core/step/layout/memory_requirement.hpp"

namespace manyworlds::farm {

/// A cache of memory footprints, keyed by everything they depend on; experiments that differ only in fabric or
/// transport have the same footprint. Not thread-safe.
class Footprints {
 public:
  core::step::MemoryRequirement requirement_of(const core::step::Configuration& configuration);

 private:
  std::unordered_map<std::string, core::memory::Footprint> known_;
};

}  // namespace manyworlds::farm
