// Points of a space as moves see them, and their neighbours: one axis has a neighbouring value, some layers are with
// another rank of the pipeline, or a rank recomputes some layers more or fewer.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/step/estimate/best_stages.hpp"
#include "core/step/layout/configuration.hpp"
#include "experiments/sweep/space.hpp"
#include "farm/moves/draws.hpp"
#include "farm/search/point_bounds.hpp"

namespace manyworlds::farm {

/// A point of a space, none of which is open.
struct Position {
  experiments::Space::Point axes;  // of each factor the index of its value; kOpen for one that may be any
  /// By rank of the pipeline, which deals them out to its chunks (core::step::StageChoices); empty if the space does
  /// not choose them, or if nothing recomputes.
  std::vector<std::int64_t> layers, recomputed;

  auto operator<=>(const Position&) const = default;
};

/// Why a point is none to be simulated.
enum class Refusal : std::uint8_t {
  none,
  excluded,  // by a rule or by `where`
  memory,    // it does not fit
};

struct Neighbour {
  Position position;  // where the refusal is none
  Refusal refusal = Refusal::none;
};

class Neighbourhood {
 public:
  /// The space is prepared, and outlives it.
  explicit Neighbourhood(experiments::Space& space);

  /// Returns the position of a point and of its experiment, whose settings have what factors that may be any got.
  Position position_of(experiments::Space::Point point, const experiments::Experiment& experiment);
  /// Returns the point at a position, of which `space` gets the values that it does not have yet; it is the space of
  /// this neighbourhood, or another of the same document.
  experiments::Space::Point point_of(const Position& position, experiments::Space& space);
  /// Draws a neighbour; nullopt if a position has none. Where an axis moves, layers stay with the ranks if these can
  /// have them, and otherwise are chosen by the bound; what recomputes is as little as fits. A neighbour may have been
  /// met before, need not be valid, and need not fit, unless its refusal says so already.
  std::optional<Neighbour> neighbour(const Position& from, Draws& draws);

 private:
  /// What the axes of a position say of its stages.
  struct Stages {
    core::workload::Strategy strategy;
    std::int64_t layers = 0;  // of the model
    bool recomputes = false;
    std::vector<core::step::LayerRange> ranges;  // by rank
  };
  enum class Kind : std::uint8_t { axis, layers, recomputed };

  const std::optional<Stages>& stages_of(const experiments::Space::Point& axes);
  std::vector<Kind> kinds_of(const Position& from);
  Neighbour with_other_value(const Position& from, Draws& draws);
  Neighbour with_moved_layers(const Position& from, Draws& draws);
  Neighbour with_other_recomputation(const Position& from, Draws& draws);
  Neighbour chosen(Position position);
  std::int64_t layers_of(const Position& position, std::size_t rank);

  experiments::Space& space_;
  experiments::Space::Viewer viewer_;
  PointBounds bounds_;
  std::vector<std::size_t> axes_;  // factors with several values
  std::optional<std::size_t> any_layers_, any_recomputed_;
  std::map<experiments::Space::Point, std::optional<Stages>> known_;
};

}  // namespace manyworlds::farm
