// Cost of GPU-hours: rent, or capital and energy.
#include "experiments/costs/price.hpp"

#include <limits>

namespace manyworlds::experiments {

using core::option;

namespace {
constexpr double kHoursPerYear = 365.25 * 24;
}  // namespace

const core::OptionTable<Price>& price_options() {
  static const core::OptionTable<Price> table{
      option("usd_per_gpu", &Price::usd_per_gpu,
             "purchase price of one GPU, its share of hosts, network and building included; instead of "
             "usd_per_gpu_hour",
             {0.01, 1e9}, "USD"),
      option("lifetime_years", &Price::lifetime_years, "years after which what was bought is worth nothing",
             {0.01, 100}, "years"),
      option("utilisation", &Price::utilisation, "share of that lifetime in which GPUs train", {0.001, 1}, "share"),
      option("usd_per_kwh", &Price::usd_per_kwh, "price of energy, beside usd_per_gpu", {0, 1000}, "USD/kWh"),
  };
  return table;
}

double capital_usd_per_gpu_hour(const Price& price) {
  return price.usd_per_gpu / (price.lifetime_years * kHoursPerYear * price.utilisation);
}

double cost_usd(double usd_per_gpu_hour, const Price& price, double gpu_hours, double energy_j) {
  if (usd_per_gpu_hour > 0) return usd_per_gpu_hour * gpu_hours;
  if (!price.known()) return std::numeric_limits<double>::quiet_NaN();
  const double capital = capital_usd_per_gpu_hour(price) * gpu_hours;
  return price.usd_per_kwh == 0 ? capital : capital + price.usd_per_kwh * energy_j / kJoulesPerKwh;
}

}  // namespace manyworlds::experiments
