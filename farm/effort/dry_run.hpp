// The dry run of a sweep: what it would compute, without simulating it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/sweep/experiment.hpp"
#include "farm/effort/pilot.hpp"
#include "farm/plan/shard.hpp"

namespace manyworlds::farm {

/// What a sweep would compute: experiments, exclusions per rule, and the keys that are known before it runs.
struct Forecast {
  struct Count {
    std::uint64_t unique = 0, naive = 0;  // with and without sharing
  };
  std::size_t experiments = 0, out_of_memory = 0;
  Count steps, kernels, collectives;
  /// Of a sweep that asks for its best: experiments that are not compiled, and the range of the sums that bound their
  /// steps. Their kernels and collectives are not counted.
  struct Bounded {
    std::uint64_t experiments = 0;
    core::Time least_ps = 0, greatest_ps = 0;
  };
  Bounded bounded;
  Shard shard;
  double cost_share = 1;            // share of the whole sweep's expected work
  std::optional<Pilot> pilot = {};  // none was asked for, or none is possible
};
Forecast forecast(const experiments::Sweep& sweep, const Shard& shard = {});

/// `ranks` would compute the sweep.
std::string dry_run_text(const experiments::Sweep& sweep, const Forecast& forecast, int ranks);
nlohmann::ordered_json dry_run_json(const experiments::Sweep& sweep, const Forecast& forecast);

}  // namespace manyworlds::farm
