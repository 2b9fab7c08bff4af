// How far training has come, whatever its batches: counted in steps that an infinite batch would need, S, and in tokens
// that a tiny batch would need, E. Where the critical batch is r tokens, dE = r dS, and a batch of B tokens needs
// dS + dE/B steps and dE + B dS tokens for it (McCandlish et al. 2018, "An Empirical Model of Large-Batch Training",
// arXiv 1812.06162, equation D.1; Kaplan et al. 2020, arXiv 2001.08361, equations 5.1 and 5.2).
#pragma once

namespace manyworlds::farm::ramp {

class CriticalBatch {
 public:
  virtual ~CriticalBatch() = default;

  /// Returns the critical batch, in tokens, after `steps` of an infinite batch; it never falls.
  virtual double at(double steps) const = 0;
  /// Returns the tokens that a tiny batch needs to come as far.
  virtual double tokens(double steps) const = 0;
  /// Returns the first steps at which the critical batch is `critical` or more; infinity if it never is.
  virtual double steps_at(double critical) const = 0;

  /// Returns how far `more` tokens in batches of `batch` tokens bring a training from `from`, both in steps of an
  /// infinite batch. Solved by Newton's method, which comes from above here, as E is convex in S; to a relative 1e-15.
  double steps_after(double from, double batch, double more) const;
};

}  // namespace manyworlds::farm::ramp
