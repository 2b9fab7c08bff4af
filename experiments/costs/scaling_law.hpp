// Loss of a language model after its training, as a function of its parameters and of the tokens that it was trained on
// (Hoffmann et al., "Training compute-optimal large language models", arXiv 2203.15556, approach 3).
#pragma once

namespace manyworlds::experiments {

/// L(N, D) = e + a / N^alpha + b / D^beta, in nats a token. Defaults are the fit of Hoffmann et al. (section D.2,
/// equation 10), of dense transformers of 44 M to 16 G parameters, all of which count. Besiroglu et al. ("Chinchilla
/// scaling: a replication attempt", arXiv 2404.10102) fit the same runs to 1.8172, 482.01, 2085.43, 0.3478 and 0.3658.
struct ScalingLaw {
  double e = 1.69;
  double a = 406.4, b = 410.7;
  double alpha = 0.34, beta = 0.28;
};

/// Returns L(parameters, tokens), both above 0. Infinitely many tokens leave e + a / N^alpha.
double predicted_loss(const ScalingLaw& law, double parameters, double tokens);

/// Returns base^exponent for a base above 0, bit-identical on every machine, unlike libm's pow(), and within 1e-14 of
/// it while the result is between 1e-12 and 1e12.
double power(double base, double exponent);

}  // namespace manyworlds::experiments
