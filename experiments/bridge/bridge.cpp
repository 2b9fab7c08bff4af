#include "experiments/bridge/bridge.hpp"

#include "experiments/megatron/megatron.hpp"

namespace manyworlds::experiments::jobs {

Job read_bridge_script(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  BridgeLaunch launch = bridge_launch(file, options);
  if (!launch.model.empty()) launch.arguments.model = settings_of_model({launch.model, {}}, catalog);
  for (JobSetting& one : launch.arguments.model)
    if (one.key == "model.sequence" && !launch.sequence.empty()) one.value = launch.sequence;
  Job job = megatron_job(launch.arguments, options, catalog);
  put_pairs(job, launch.pairs, ModuleNames::megatron);
  return job;
}

}  // namespace manyworlds::experiments::jobs
