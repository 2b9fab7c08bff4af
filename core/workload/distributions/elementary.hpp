// Elementary functions of + - x / alone, which have the same bits on every machine.
#pragma once

namespace manyworlds::core::workload {

inline constexpr double kLn2 = 0.693147180559945309;

/// Returns ln(value) for a value of at least 1: halvings until it is below 2, then the series of artanh.
inline double logarithm(double value) {
  double halvings = 0;
  for (; value >= 2; value /= 2) ++halvings;
  const double ratio = (value - 1) / (value + 1), square = ratio * ratio;
  double sum = 0, power = ratio;
  for (int term = 1; term < 60; term += 2) sum += power / term, power *= square;
  return halvings * kLn2 + 2 * sum;
}

/// Returns e^-x for x >= 0: one halving for every ln 2, then Taylor's series.
inline double exponential_of_minus(double x) {
  double halved = 1;
  for (; x >= kLn2; x -= kLn2) halved /= 2;
  double sum = 1, power = 1;
  for (int term = 1; term < 30; ++term) power *= -x / term, sum += power;
  return halved * sum;
}

inline double exponential(double x) {
  return x < 0 ? exponential_of_minus(-x) : 1 / exponential_of_minus(x);
}

}  // namespace manyworlds::core::workload
