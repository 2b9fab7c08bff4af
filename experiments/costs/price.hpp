// Cost of GPUs: rented by the hour, or bought, with the energy that they use.
#pragma once

#include "core/base/options.hpp"

namespace manyworlds::experiments {

inline constexpr double kJoulesPerKwh = 3.6e6;

/// Capital and energy, used if no price per hour is given (Cluster::usd_per_gpu_hour). Defaults mean "not given".
struct Price {
  double usd_per_gpu = 0;     // one GPU with its share of hosts, network and building, USD
  double lifetime_years = 0;  // time until it is worth nothing
  double utilisation = 0;     // share of the lifetime spent on training
  double usd_per_kwh = -1;    // price of energy; 0: paid by somebody else; below 0: not given

  bool known() const { return usd_per_gpu > 0 && lifetime_years > 0 && utilisation > 0 && usd_per_kwh >= 0; }
};

const core::OptionTable<Price>& price_options();

/// Returns the capital cost of one GPU-hour of training, USD: linear over the hours of the lifetime that are used.
double capital_usd_per_gpu_hour(const Price& price);

/// Returns the cost of so many GPU-hours, USD: at usd_per_gpu_hour if it is above 0, otherwise capital and energy, with
/// `energy_j` at the building's meter. NaN if neither is known, or if energy has a price and is not known.
double cost_usd(double usd_per_gpu_hour, const Price& price, double gpu_hours, double energy_j);

}  // namespace manyworlds::experiments
