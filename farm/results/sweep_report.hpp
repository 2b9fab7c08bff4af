// The summaries for people of a finished sweep and of a dry run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "farm/plan/shard.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm {

/// Returns a screen of text for stderr: the outcomes of the experiments, what was shared, and what the run took.
std::string summary_text(const io::Results& results);
nlohmann::ordered_json summary_json(const io::Results& results);

/// What a sweep would compute: experiments, exclusions per rule, and the keys that are known before it runs.
struct Forecast {
  struct Count {
    std::uint64_t unique = 0, naive = 0;  // with and without sharing
  };
  std::size_t experiments = 0, out_of_memory = 0;
  Count steps, kernels, collectives;
  Shard shard;
  double cost_share = 1;  // share of the whole sweep's expected work
};
Forecast forecast(const experiments::Sweep& sweep, const Shard& shard = {});

std::string dry_run_text(const experiments::Sweep& sweep, const Forecast& forecast);
nlohmann::ordered_json dry_run_json(const experiments::Sweep& sweep, const Forecast& forecast);

}  // namespace manyworlds::farm
