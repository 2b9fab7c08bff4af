// The critical batch as it was measured at some points of a training, linear between them and constant outside.
#pragma once

#include <vector>

#include "farm/ramp/critical_batch.hpp"

namespace manyworlds::farm::ramp {

struct MeasuredPoint {
  double tokens = 0;    // of the training in which it was measured
  double critical = 0;  // tokens
};

class MeasuredBatches final : public CriticalBatch {
 public:
  /// Of a training with batches of `batch` tokens, 0 for tiny ones. The points ascend in tokens, and their critical
  /// batches, all positive, do not fall. With t tokens trained, dS = dt / (r(t) + batch): logarithms where r is linear.
  explicit MeasuredBatches(const std::vector<MeasuredPoint>& points, double batch = 0);

  double at(double steps) const override;
  double tokens(double steps) const override;
  double steps_at(double critical) const override;

 private:
  struct Piece {
    double steps, tokens;    // where it begins
    double critical, slope;  // there, and by how much that grows with each token
  };
  const Piece& piece_at(double steps) const;
  double tokens_trained(double steps) const;

  double batch_;
  std::vector<Piece> pieces_;  // the last one is constant
};

}  // namespace manyworlds::farm::ramp
