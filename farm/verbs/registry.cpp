// The list of verbs. A new verb is a new file here and a line below.
#include "farm/cli/command.hpp"
#include "farm/verbs/verbs.hpp"

namespace manyworlds::farm::commands {

const std::vector<Command>& registry() {
  static const std::vector<Command> commands{
      {"sweep", "runs every experiment of a sweep and ranks them", run_sweep, true},
      {"resume", "continues an interrupted sweep", run_resume, true},
      {"merge", "joins runs of shards of a sweep", run_merge},
      {"run", "one experiment, with its breakdown", run_run},
      {"net", "the network alone: flows or a collective on a topology", run_net},
      {"stragglers", "finds slow ranks of one experiment from its simulated measurements", run_stragglers},
      {"status", "shows the status of a run", run_status},
      {"serve", "a live page of a run", run_serve},
      {"top", "the best experiments of a run", run_top},
      {"compare", "two experiments of a run side by side", run_compare},
      {"explain", "why a layout is refused, or what each of its keys costs", run_explain},
      {"search", "the layouts of a model on a cluster, priced and ranked", run_search, true},
      {"report", "a run as one self-contained HTML page", run_report},
      {"export", "a table of a run's results, for programs that do not read HDF5", run_export},
      {"diff", "compares the results of two runs", run_diff},
      {"store", "statistics, verification and pruning of the result store", run_store},
      {"validate", "predicted against published measurements", run_validate, true},
      {"slurm", "batch scripts for a sweep", run_slurm},
      {"list", "lists gpus, models, clusters, topologies and everything else a sweep may name", run_list},
      {"schema", "JSON Schema of a sweep, for editors", run_schema},
  };
  return commands;
}

}  // namespace manyworlds::farm::commands
