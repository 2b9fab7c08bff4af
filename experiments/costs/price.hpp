// What GPUs cost: rented by the hour, or bought, with the energy that they take.
#pragma once

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// Capital and energy, where no price of an hour is given (Cluster::usd_per_gpu_hour). Absent until given.
struct Price {
  double usd_per_gpu = 0;     // of one GPU with its share of hosts, network and building, USD
  double lifetime_years = 0;  // after which it is worth nothing
  double utilisation = 0;     // share of that in which it trains
  double usd_per_kwh = -1;    // of energy; 0: paid by somebody else

  bool known() const { return usd_per_gpu > 0 && lifetime_years > 0 && utilisation > 0 && usd_per_kwh >= 0; }
};

const core::OptionTable<Price>& price_options();

/// Capital for one GPU's hour of training, USD: linear over the hours of its lifetime that are used.
double capital_usd_per_gpu_hour(const Price& price);

/// USD for so many GPU-hours and joules (the building's): those hours at usd_per_gpu_hour where it is above 0, else
/// capital and energy; NaN where neither is known, or the energy is not and has a price.
double usd(double usd_per_gpu_hour, const Price& price, double gpu_hours, double energy_j);

}  // namespace manyworlds::experiments
