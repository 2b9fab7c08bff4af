#include "farm/moves/neighbourhood.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"

namespace manyworlds::farm {
namespace {

using core::step::StageChoices;
using experiments::OpenKeys;
using experiments::Space;
using Numbers = std::vector<std::int64_t>;

/// Returns what each rank of a pipeline has of a list by virtual stage.
Numbers by_rank(const core::workload::Strategy& strategy, const Numbers& by_stage) {
  if (by_stage.empty()) return {};
  Numbers ranks(static_cast<std::size_t>(strategy.pp), 0);
  for (std::int64_t rank = 0; rank < strategy.pp; ++rank)
    for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
      ranks[static_cast<std::size_t>(rank)] += by_stage.at(static_cast<std::size_t>(strategy.stages().of(rank, chunk)));
  return ranks;
}

}  // namespace

Neighbourhood::Neighbourhood(Space& space) : space_(space), viewer_(space), bounds_(space) {
  for (std::size_t factor = 0; factor < space.factors(); ++factor) {
    if (!space.is_any(factor)) {
      if (space.size_of(factor) > 1) axes_.push_back(factor);
      continue;
    }
    Space::Point point(space.factors(), 0);
    point[factor] = Space::kOpen;
    (space.open_keys_of(point).stage_layers ? any_layers_ : any_recomputed_) = factor;
  }
}

const std::optional<Neighbourhood::Stages>& Neighbourhood::stages_of(const Space::Point& axes) {
  const auto [known, is_new] = known_.try_emplace(axes);
  if (!is_new) return known->second;
  const auto experiment = viewer_.experiment_of(axes);
  if (!experiment) return known->second;
  const core::step::Configuration configuration = viewer_.configuration_of(*experiment);
  const StageChoices choices{any_layers_.has_value(), any_recomputed_.has_value()};
  Stages stages{configuration.strategy, configuration.model.layers, false, {}};
  stages.recomputes = choices.recompute && core::workload::recomputes(configuration.strategy);
  if (choices.any()) stages.ranges = layer_ranges(configuration.model, configuration.strategy, choices);
  known->second = std::move(stages);
  return known->second;
}

Position Neighbourhood::position_of(Space::Point point, const experiments::Experiment& experiment) {
  const core::workload::Strategy strategy = viewer_.configuration_of(experiment).strategy;
  Position position;
  if (any_layers_) position.layers = by_rank(strategy, strategy.stage_layers), point[*any_layers_] = Space::kOpen;
  if (any_recomputed_) {
    if (core::workload::recomputes(strategy)) position.recomputed = by_rank(strategy, strategy.stage_recompute_layers);
    point[*any_recomputed_] = Space::kOpen;
  }
  position.axes = std::move(point);
  return position;
}

Space::Point Neighbourhood::point_of(const Position& position, Space& space) {
  Space::Point point = position.axes;
  if (!any_layers_ && !any_recomputed_) return point;
  const core::workload::Strategy& strategy = stages_of(position.axes).value().strategy;
  const auto choose = [&](std::size_t factor, const Numbers& list) {
    space.choose(point, factor,
                 experiments::list_text(list.empty() ? list : core::step::dealt_to_stages(strategy, list)));
  };
  if (any_layers_) choose(*any_layers_, position.layers);
  if (any_recomputed_) choose(*any_recomputed_, position.recomputed);
  return point;
}

/// Returns the layers of a rank, whether or not they are chosen.
std::int64_t Neighbourhood::layers_of(const Position& position, std::size_t rank) {
  return position.layers.empty() ? stages_of(position.axes).value().ranges.at(rank).least : position.layers[rank];
}

/// Returns the kinds of moves that a position has; each is drawn as often as another.
std::vector<Neighbourhood::Kind> Neighbourhood::kinds_of(const Position& from) {
  std::vector<Kind> kinds;
  if (!axes_.empty()) kinds.push_back(Kind::axis);
  if (!any_layers_ && !any_recomputed_) return kinds;
  const std::optional<Stages>& stages = stages_of(from.axes);
  for (std::size_t rank = 0; from.layers.size() > 1 && rank < from.layers.size(); ++rank)
    if (from.layers[rank] > stages.value().ranges[rank].least) {
      kinds.push_back(Kind::layers);
      break;
    }
  for (std::size_t rank = 0; rank < from.recomputed.size(); ++rank)
    if (layers_of(from, rank) > 0) {
      kinds.push_back(Kind::recomputed);
      break;
    }
  return kinds;
}

std::optional<Neighbour> Neighbourhood::neighbour(const Position& from, Draws& draws) {
  const std::vector<Kind> kinds = kinds_of(from);
  if (kinds.empty()) return std::nullopt;
  switch (kinds[draws.below(kinds.size())]) {
    case Kind::axis:
      return with_other_value(from, draws);
    case Kind::layers:
      return with_moved_layers(from, draws);
    case Kind::recomputed:
      break;
  }
  return with_other_recomputation(from, draws);
}

Neighbour Neighbourhood::with_other_value(const Position& from, Draws& draws) {
  const std::size_t factor = axes_[draws.below(axes_.size())];
  const auto size = static_cast<std::int64_t>(space_.size_of(factor));
  const std::int64_t value = from.axes[factor];
  const bool up = value == 0 || (value + 1 < size && draws.below(2) == 0);
  const std::int64_t step = draws.step(up ? size - 1 - value : value);
  Position to = from;
  to.axes[factor] = static_cast<std::uint32_t>(up ? value + step : value - step);
  if (!any_layers_ && !any_recomputed_) return {to};
  const std::optional<Stages>& stages = stages_of(to.axes);
  if (!stages) return {{}, Refusal::excluded};
  bool stay = to.layers.size() == stages->ranges.size() &&
              std::accumulate(to.layers.begin(), to.layers.end(), std::int64_t{0}) == stages->layers;
  for (std::size_t rank = 0; stay && rank < to.layers.size(); ++rank)
    stay = to.layers[rank] >= stages->ranges[rank].least;
  if (!stay) to.layers.clear();
  to.recomputed.clear();
  return chosen(std::move(to));
}

/// Moves layers from a rank that can do without to any other. Either keeps what it recomputes, or all recompute as
/// little as fits.
Neighbour Neighbourhood::with_moved_layers(const Position& from, Draws& draws) {
  const std::vector<core::step::LayerRange>& ranges = stages_of(from.axes).value().ranges;
  std::vector<std::size_t> givers;
  for (std::size_t rank = 0; rank < from.layers.size(); ++rank)
    if (from.layers[rank] > ranges[rank].least) givers.push_back(rank);
  const std::size_t giver = givers[draws.below(givers.size())];
  const std::size_t taker = (giver + 1 + draws.below(from.layers.size() - 1)) % from.layers.size();
  const std::int64_t step = draws.step(from.layers[giver] - ranges[giver].least);
  Position to = from;
  to.layers[giver] -= step, to.layers[taker] += step;
  if (to.recomputed.empty()) return {to};
  if (draws.below(2) == 0) {
    to.recomputed.clear();
    return chosen(std::move(to));
  }
  to.recomputed[giver] = std::min(to.recomputed[giver], to.layers[giver]);
  return {to};
}

Neighbour Neighbourhood::with_other_recomputation(const Position& from, Draws& draws) {
  std::vector<std::size_t> ranks;
  for (std::size_t rank = 0; rank < from.recomputed.size(); ++rank)
    if (layers_of(from, rank) > 0) ranks.push_back(rank);
  const std::size_t rank = ranks[draws.below(ranks.size())];
  const std::int64_t now = from.recomputed[rank], most = layers_of(from, rank);
  const bool more = now == 0 || (now < most && draws.below(2) == 0);
  const std::int64_t step = draws.step(more ? most - now : now);
  Position to = from;
  to.recomputed[rank] += more ? step : -step;
  return {to};
}

/// Gives a position the layers and the recomputation that it lacks: those that the bound finds best for it.
Neighbour Neighbourhood::chosen(Position position) {
  const Stages& stages = stages_of(position.axes).value();
  const bool layers = any_layers_ && position.layers.empty();
  const bool recomputed = stages.recomputes && position.recomputed.empty();
  if (!layers && !recomputed) return {std::move(position)};
  Space::Point point = point_of(position, space_);
  if (layers) point[*any_layers_] = Space::kOpen;
  if (any_recomputed_) point[*any_recomputed_] = Space::kOpen;
  if (bounds_.of({point}, 0, 1).front().objective == std::numeric_limits<double>::infinity())
    return {{}, bounds_.why_excluded(point).empty() ? Refusal::memory : Refusal::excluded};
  const core::step::BestStages best = bounds_.best_stages_of(point);
  if (layers) position.layers = by_rank(stages.strategy, best.stage_layers);
  if (recomputed) position.recomputed = by_rank(stages.strategy, best.stage_recompute_layers);
  return {std::move(position)};
}

}  // namespace manyworlds::farm
