#include "experiments/bridge/bridge.hpp"

#include "experiments/megatron/megatron.hpp"

namespace manyworlds::experiments::jobs {

Job read_bridge_script(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(bridge_arguments(file, options), options, catalog);
}

}  // namespace manyworlds::experiments::jobs
