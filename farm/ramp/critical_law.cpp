#include "farm/ramp/critical_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace manyworlds::farm::ramp {
namespace {

/// What comes before e^-40 of the limit is below 1e-17 of E, as the critical batch never falls.
constexpr double kPieces_ln = 40;

/// Nodes and weights on [-1, 1], for both signs (Abramowitz and Stegun, table 25.4).
constexpr std::array<std::pair<double, double>, 4> kGauss{{{0.1834346424956498, 0.3626837833783620},
                                                           {0.5255324099163290, 0.3137066458778873},
                                                           {0.7966664774136267, 0.2223810344533745},
                                                           {0.9602898564975363, 0.1012285362903763}}};

}  // namespace

CriticalLaw::CriticalLaw(const LawConstants& constants, double parameters, double steps_limit)
    : constants_(constants), least_loss_(std::pow(constants.n_c / parameters, constants.alpha_n)) {
  width_ = 0.5 / (1 + constants.alpha_s / constants.alpha_b);
  const auto pieces = static_cast<std::size_t>(std::ceil(kPieces_ln / width_));
  first_ = std::log(steps_limit) - static_cast<double>(pieces) * width_;
  before_.push_back(at(std::exp(first_)) * std::exp(first_) / (1 + constants.alpha_s / constants.alpha_b));
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    const double low = first_ + static_cast<double>(piece) * width_;
    before_.push_back(before_.back() + tokens_between(low, low + width_));
  }
}

double CriticalLaw::loss(double steps) const {
  return least_loss_ + std::pow(constants_.s_c / steps, constants_.alpha_s);
}

double CriticalLaw::at(double steps) const {
  return steps > 0 ? constants_.b_star * std::pow(loss(steps), -1 / constants_.alpha_b) : 0;
}

double CriticalLaw::steps_at(double critical) const {
  if (critical <= 0) return 0;
  const double excess = std::pow(constants_.b_star / critical, constants_.alpha_b) - least_loss_;
  if (excess <= 0) return std::numeric_limits<double>::infinity();
  return constants_.s_c * std::pow(excess, -1 / constants_.alpha_s);
}

double CriticalLaw::tokens_between(double low, double high) const {
  const double middle = (low + high) / 2, half = (high - low) / 2;
  const auto density = [&](double ln_steps) {
    const double steps = std::exp(ln_steps);
    return at(steps) * steps;
  };
  double sum = 0;
  for (const auto& [node, weight] : kGauss)
    sum += weight * (density(middle - half * node) + density(middle + half * node));
  return sum * half;
}

double CriticalLaw::tokens(double steps) const {
  const double ln_steps = steps > 0 ? std::log(steps) : -std::numeric_limits<double>::infinity();
  if (ln_steps <= first_) return at(steps) * steps / (1 + constants_.alpha_s / constants_.alpha_b);
  const auto last = static_cast<double>(before_.size() - 2);
  const double piece = std::min(std::floor((ln_steps - first_) / width_), last);
  return before_[static_cast<std::size_t>(piece)] + tokens_between(first_ + piece * width_, ln_steps);
}

}  // namespace manyworlds::farm::ramp
