// What every reader of a sweep shares: configurations and objectives.
#include "experiments/experiment.hpp"

namespace manyworlds::experiments {

core::step::Configuration configure(const Experiment& experiment, GraphCache& graphs) {
  const World world = world_of(experiment.settings, experiment.inputs);
  core::step::Configuration made = world.configuration;
  made.graph = graphs.get(world);
  return made;
}

const std::vector<Objective>& objectives() {
  static const std::vector<Objective> all{
      {"tokens_per_s_per_gpu", true}, {"step_time_s", false}, {"mfu", true}, {"memory_peak_bytes", false}};
  return all;
}

}  // namespace manyworlds::experiments
