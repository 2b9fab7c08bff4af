// What a search by moves found: the best before and after the moves, and how far from both the proven bound is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "farm/moves/walk.hpp"

namespace manyworlds::farm {

/// A point that was simulated.
struct SimulatedPoint {
  double value = 0;  // of the objective, as its column has it
  double step_s = 0;
  std::string run;              // directory
  std::int64_t experiment = 0;  // its id there
};

enum class MovesEnd : std::uint8_t {
  proven,   // nothing else is better by more than the gap
  moves,    // all were drawn
  stuck,    // no neighbour is left
  listed,   // the sweep has all valid points
  stopped,  // on request
};

struct MoveFindings {
  std::string name, objective, unit;
  SimulatedPoint before, best;
  std::string best_axes;                   // "tp=8 pp=16 …"
  std::vector<std::string> run_arguments;  // of `manyworlds run SPEC.yaml`, for the best alone
  std::optional<double> bound;             // no point of the space has a better objective; nullopt: not proven
  double gap = 0;                          // share by which another may be better
  WalkLimits limits;
  MoveCounts counts;
  std::size_t rounds = 0;
  MovesEnd end = MovesEnd::moves;

  /// Returns by what share of a value, at most, another point is better; nullopt without a bound.
  std::optional<double> gap_of(const SimulatedPoint& point) const;
  /// Returns by what share the best is better than the best before the moves.
  double gain() const;
  /// Whether no point is better than the best by more than the gap.
  bool proven() const;
};

/// `run_line` are the words of `manyworlds run` before the arguments that are the best's.
std::string moves_text(const MoveFindings& findings, std::vector<std::string> run_line);
nlohmann::ordered_json moves_json(const MoveFindings& findings);

}  // namespace manyworlds::farm
