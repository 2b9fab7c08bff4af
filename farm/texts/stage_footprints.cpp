#include "farm/texts/stage_footprints.hpp"

#include "core/step/layout/memory_requirement.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::farm {

std::vector<core::memory::Footprint> stage_footprints(const core::step::Configuration& configuration) {
  if (configuration.programs) return {core::step::memory_requirement_of(configuration).required};
  std::vector<core::memory::Footprint> stages(static_cast<std::size_t>(configuration.strategy.pp));
  for (const auto& [one, ranks] : core::step::classes_of(core::step::parallel_config_of(configuration))) {
    core::memory::Footprint& largest = stages[static_cast<std::size_t>(one.stage)];
    const auto other =
        core::memory::footprint(configuration.model, configuration.strategy, configuration.gpu_of(one), one);
    if (other.total() > largest.total()) largest = other;
  }
  return stages;
}

}  // namespace manyworlds::farm
