#include "farm/ramp/measured_batches.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace manyworlds::farm::ramp {

MeasuredBatches::MeasuredBatches(const std::vector<MeasuredPoint>& points, double batch) : batch_(batch) {
  pieces_.push_back({0, 0, points.front().critical, 0});
  const auto end_piece = [&](const MeasuredPoint& end) {
    const Piece& last = pieces_.back();
    const double more = end.tokens - last.tokens, growth = last.slope * more / (last.critical + batch_);
    const double steps = more / (last.critical + batch_) * (growth > 0 ? std::log1p(growth) / growth : 1);
    pieces_.push_back({last.steps + steps, end.tokens, end.critical, 0});
  };
  for (const MeasuredPoint& point : points) {
    Piece& last = pieces_.back();
    if (point.tokens <= last.tokens) continue;
    last.slope = (point.critical - last.critical) / (point.tokens - last.tokens);
    end_piece(point);
  }
}

const MeasuredBatches::Piece& MeasuredBatches::piece_at(double steps) const {
  const auto after = std::upper_bound(pieces_.begin() + 1, pieces_.end(), steps,
                                      [](double value, const Piece& piece) { return value < piece.steps; });
  return *(after - 1);
}

double MeasuredBatches::tokens_trained(double steps) const {
  const Piece& piece = piece_at(steps);
  const double more = steps - piece.steps, growth = piece.slope * more;
  return piece.tokens + (piece.critical + batch_) * more * (growth > 0 ? std::expm1(growth) / growth : 1);
}

double MeasuredBatches::at(double steps) const {
  const Piece& piece = piece_at(steps);
  return piece.critical + piece.slope * (tokens_trained(steps) - piece.tokens);
}

double MeasuredBatches::tokens(double steps) const {
  return tokens_trained(steps) - batch_ * steps;
}

double MeasuredBatches::steps_at(double critical) const {
  if (critical <= pieces_.front().critical) return 0;
  for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.slope > 0 && critical <= pieces_[i + 1].critical)
      return piece.steps + std::log1p((critical - piece.critical) / (piece.critical + batch_)) / piece.slope;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace manyworlds::farm::ramp
