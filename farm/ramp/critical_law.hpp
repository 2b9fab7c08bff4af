// The critical batch by a law of the loss: r(L) = B* / L^(1/alpha_B), and L(N, S) = (N_c/N)^alpha_N + (S_c/S)^alpha_S
// for a model of N parameters after S steps of an infinite batch (Kaplan et al. 2020, "Scaling Laws for Neural Language
// Models", arXiv 2001.08361, equations 5.3 and 5.6, constants of tables 3 and 4).
#pragma once

#include <vector>

#include "farm/ramp/critical_batch.hpp"

namespace manyworlds::farm::ramp {

/// Losses are in nats a token; parameters are those without embeddings.
struct LawConstants {
  double b_star = 2.1e8;  // tokens
  double alpha_b = 0.21;
  double n_c = 6.5e13;  // parameters
  double alpha_n = 0.077;
  double s_c = 2.1e3;  // steps
  double alpha_s = 0.76;
};

class CriticalLaw final : public CriticalBatch {
 public:
  /// Of a model with `parameters`, for trainings of at most `steps_limit` steps of an infinite batch. All constants are
  /// positive, and alpha_s / alpha_b is at most 20.
  CriticalLaw(const LawConstants& constants, double parameters, double steps_limit);

  double at(double steps) const override;
  /// E(S) = the integral of r from 0 to S, by eight points of Gauss and Legendre on each of many short pieces of ln S:
  /// to a relative 1e-12.
  double tokens(double steps) const override;
  double steps_at(double critical) const override;

  /// Returns the loss after so many steps of an infinite batch, in nats a token.
  double loss(double steps) const;

 private:
  double tokens_between(double low, double high) const;  // both ln S

  LawConstants constants_;
  double least_loss_;           // of an endless training
  double first_, width_;        // of the pieces, in ln S
  std::vector<double> before_;  // tokens up to each piece
};

}  // namespace manyworlds::farm::ramp
