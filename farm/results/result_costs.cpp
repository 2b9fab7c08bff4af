#include "farm/results/result_costs.hpp"

#include <algorithm>
#include <cmath>

namespace manyworlds::farm {

using experiments::Costs;

std::vector<io::Column> cost_columns(const std::vector<const RowCosts*>& rows, const std::string& objective) {
  struct Part {
    const char *name, *unit, *description;
    double Costs::*member;
  };
  static constexpr Part kParts[] = {
      {"gpu_energy_per_token_j", "J/token",
       "energy of the GPUs for each token: board power while kernels run, idle power while they wait, between "
       "them while they communicate; without hosts, network and cooling; NaN without figures of the GPU",
       &Costs::gpu_energy_per_token_j},
      {"host_energy_per_token_j", "J/token",
       "energy of the nodes without their GPUs for each token; NaN without host_power_w",
       &Costs::host_energy_per_token_j},
      {"network_energy_per_token_j", "J/token",
       "energy of the network's switches for each token; NaN without switch_port_power_w",
       &Costs::network_energy_per_token_j},
      {"energy_per_token_j", "J/token",
       "energy of the building for each token: the three before times pue; NaN without one of their figures",
       &Costs::energy_per_token_j},
      {"energy_per_step_j", "J", "the same for a whole step", &Costs::energy_per_step_j},
      {"usd_per_million_tokens", "USD",
       "price of the GPUs' time, or of capital and energy, for a million tokens of steps; NaN without a price",
       &Costs::usd_per_million_tokens},
      {"goodput", "", "share of a training run's time spent on work that is not lost; NaN without failure rates",
       &Costs::goodput},
      {"rework_share", "", "share of the same time: work lost to failures and repeated; NaN as goodput",
       &Costs::rework_share},
      {"checkpointing_share", "", "of the same: waiting for checkpoints; NaN as goodput", &Costs::checkpointing_share},
      {"restarting_share", "", "of the same: from failures to the next step; NaN as goodput", &Costs::restarting_share},
      {"goodput_first_order", "",
       "goodput by the formula most publications use; NaN without checkpoints, or where it gives no share",
       &Costs::goodput_first_order},
      {"checkpoint_block_s", "s", "time that training waits for one checkpoint; NaN without checkpoints",
       &Costs::checkpoint_block_s},
      {"checkpoint_interval_s", "s", "work between two checkpoints; NaN without them", &Costs::checkpoint_interval_s},
      {"checkpoints_per_stored", "", "checkpoints in memory for each that goes to storage; NaN without them",
       &Costs::checkpoints_per_persist},
      {"train_time_s", "s",
       "time to train training.tokens, or those of the budget, with failures and checkpoints where they are given; NaN "
       "without either",
       &Costs::train_time_s},
      {"train_energy_kwh", "kWh", "energy of the building in that time; NaN without a figure of it",
       &Costs::train_energy_kwh},
      {"train_usd", "USD", "price of that time, or of capital and that energy; NaN without a price", &Costs::train_usd},
      {"budget_tokens", "tokens",
       "tokens that the tightest of training.budget_gpu_days, budget_usd and budget_days trains, with failures and "
       "checkpoints where they are given; NaN without a budget",
       &Costs::budget_tokens},
      {"budget_loss", "nats",
       "loss after them by training.loss_e, loss_a, loss_b, loss_alpha and loss_beta (Hoffmann et al. 2022 unless "
       "given); NaN without a budget",
       &Costs::budget_loss},
  };
  std::vector<io::Column> result;
  for (const Part& part : kParts) {
    const bool wanted = part.name == objective || std::any_of(rows.begin(), rows.end(), [&](const RowCosts* row) {
                          return !std::isnan(row->costs.*part.member);
                        });
    if (!wanted) continue;
    std::vector<double> values;
    for (const RowCosts* row : rows) values.push_back(row->ran ? row->costs.*part.member : Costs::kNone);
    result.push_back(
        {part.name, part.unit, std::string(part.description) + "; NaN where it did not run", std::move(values)});
  }
  return result;
}

}  // namespace manyworlds::farm
