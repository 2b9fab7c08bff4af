#include "experiments/costs/scaling_law.hpp"

#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kSqrtHalf = 0.707106781186547524401;

/// The natural logarithm of a finite x > 0: of its exponent, and of its mantissa as 2 artanh((m - 1) / (m + 1)).
double logarithm(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < kSqrtHalf) mantissa *= 2, --exponent;
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;  // square < 0.03
  double sum = 0;
  for (int n = 25; n > 0; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * kLn2 + 2 * s * sum;
}

/// e^x: 2^k e^r with |r| at most half of ln 2.
double exponential(double x) {
  if (x > 709) return std::numeric_limits<double>::infinity();
  if (x < -708) return 0;
  const double k = std::floor(x / kLn2 + 0.5), r = x - k * kLn2;
  double sum = 1;
  for (int n = 18; n > 0; --n) sum = 1 + r * sum / n;
  return std::ldexp(sum, static_cast<int>(k));  // exact
}

}  // namespace

double power(double base, double exponent) {
  MANYWORLDS_CHECK(base > 0, "{} to the power of {}", base, exponent);
  if (std::isinf(base)) return exponent > 0 ? base : exponent < 0 ? 0 : 1;
  return exponential(exponent * logarithm(base));
}

double predicted_loss(const ScalingLaw& law, double parameters, double tokens) {
  return law.e + law.a * power(parameters, -law.alpha) + law.b * power(tokens, -law.beta);
}

}  // namespace manyworlds::experiments
