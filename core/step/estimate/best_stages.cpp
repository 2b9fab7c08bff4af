#include "core/step/estimate/best_stages.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/memory/footprint.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::step {
namespace {

using workload::Model;
using workload::StageMap;
using workload::Strategy;

bool is_uniform(const Model& model) {
  for (std::int64_t layer = 1; layer < model.layers; ++layer)
    if (model.layer_kind(layer) != model.layer_kind(0)) return false;
  return true;
}

/// Adds to the virtual stages of a rank.
void deal_out(std::vector<std::int64_t>& to, const Strategy& strategy, std::int64_t rank, std::int64_t layers) {
  const std::int64_t chunks = strategy.virtual_stages;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    to.at(static_cast<std::size_t>(strategy.stages().of(rank, chunk))) =
        layers / chunks + (chunk < layers % chunks ? 1 : 0);
}

/// A configuration of which one rank has the layers, and recomputes those, that are asked for.
class VariedStages {
 public:
  VariedStages(const Configuration& configuration, const StageChoices& choices, bool ties)
      : configuration_(configuration), choices_(choices), ties_(ties) {}

  const Configuration& configuration() const { return configuration_; }

  /// Gives a rank `layers` layers, behind `before` others if not all are alike, of which it recomputes some.
  void set(std::int64_t rank, std::int64_t before, std::int64_t layers, std::int64_t recomputed) {
    Strategy& strategy = configuration_.strategy;
    const auto stages = static_cast<std::size_t>(strategy.stages().count());
    if (choices_.layers) {
      strategy.stage_layers.assign(stages, 0);
      deal_out(strategy.stage_layers, strategy, rank, layers);
      place_others(strategy, rank, before, layers);
    }
    if (!ties_) return;
    strategy.stage_recompute_layers.assign(stages, 0);
    deal_out(strategy.stage_recompute_layers, strategy, rank, recomputed);
  }

 private:
  /// All other layers are with other ranks, `before` of them in front.
  void place_others(Strategy& strategy, std::int64_t rank, std::int64_t before, std::int64_t layers) const {
    const StageMap stages = strategy.stages();
    const std::int64_t others = configuration_.model.layers - layers;
    std::vector<std::int64_t> free;  // virtual stages of other ranks
    for (std::int64_t other = 0; other < strategy.pp; ++other)
      for (std::int64_t chunk = 0; other != rank && chunk < strategy.virtual_stages; ++chunk)
        free.push_back(stages.of(other, chunk));
    if (free.empty()) return;
    std::sort(free.begin(), free.end());
    const auto at = [&](std::int64_t stage) -> std::int64_t& {
      return strategy.stage_layers.at(static_cast<std::size_t>(stage));
    };
    const bool behind_it = free.front() < stages.of(rank, 0);
    at(free.front()) += behind_it ? before : 0;
    at(free.back()) += others - (behind_it ? before : 0);
  }

  Configuration configuration_;
  const StageChoices choices_;
  const bool ties_;
};

/// What a rank with some layers does, if it fits.
struct Stage {
  bool fits = false;
  std::int64_t recomputed = 0;
  std::vector<const RankWork*> ranks;
};

class StageSearch {
 public:
  StageSearch(const Configuration& times, const LeastMemory& memory, const StageChoices& choices, const Links& links,
              Replicas replicas)
      : choices_(choices),
        ties_(choices.recompute && workload::recomputes(times.strategy) &&
              workload::recomputes(memory.configuration.strategy)),
        least_memory_(memory),
        times_(times, choices, ties_),
        memory_(memory.configuration, choices, ties_),
        works_(times_.configuration(), links, replicas),
        footprints_(memory.configuration.model, memory.configuration.strategy, memory.configuration.gpu),
        uniform_(is_uniform(times.model)),
        ranges_(layer_ranges(times.model, times.strategy, choices)),
        classes_(static_cast<std::size_t>(times.strategy.pp)) {
    for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(times)))
      classes_.at(static_cast<std::size_t>(rank_class.stage)).push_back(rank_class);
  }

  std::optional<BestStages> best() {
    if (choices_.layers) limit_ = even_ps();
    const auto layers = static_cast<std::size_t>(model().layers);
    std::vector<std::vector<Path>> paths(classes_.size() + 1, std::vector<Path>(layers + 1));
    paths[0][0] = {0, {}, {}, 0, 0};
    for (std::size_t rank = 0; rank < classes_.size(); ++rank)
      for (std::size_t before = 0; before <= layers; ++before)
        if (paths[rank][before].step_ps != kNever) extend(rank, before, paths);
    if (paths.back()[layers].step_ps == kNever) return std::nullopt;
    return chosen(paths);
  }

 private:
  /// The best that is known of some first ranks with some first layers. What others take to fill the pipeline is the
  /// least of all such ways, and of the one that has the least step.
  struct Path {
    Time step_ps = kNever;
    Passes least_fill{kNever, kNever}, own_fill;
    std::int64_t layers = 0, recomputed = 0;  // of the last rank
  };

  const Model& model() const { return times_.configuration().model; }
  const Strategy& strategy() const { return times_.configuration().strategy; }

  void extend(std::size_t rank, std::size_t before, std::vector<std::vector<Path>>& paths) {
    const Path from = paths[rank][before];
    const std::int64_t left = model().layers - static_cast<std::int64_t>(before);
    for (std::int64_t layers = ranges_[rank].least; layers <= std::min(left, ranges_[rank].most); ++layers) {
      if (passes_of(rank, before, layers) > limit_) return;  // more layers take longer
      const Stage& stage = stage_of(rank, before, layers);
      if (!stage.fits) return;  // more layers need more
      const Time step = std::max(from.step_ps, step_of(stage, from.least_fill));
      if (step > limit_) continue;
      Path& to = paths[rank + 1][before + static_cast<std::size_t>(layers)];
      to.least_fill.forward = std::min(to.least_fill.forward, filled(from.least_fill, stage).forward);
      to.least_fill.backward = std::min(to.least_fill.backward, filled(from.least_fill, stage).backward);
      const Passes own = filled(from.own_fill, stage);
      const auto order = [](Time step_ps, const Passes& fill) {
        return std::pair(step_ps, fill.forward + fill.backward);
      };
      if (to.step_ps != kNever && order(step, own) >= order(to.step_ps, to.own_fill)) continue;
      to.step_ps = step, to.own_fill = own, to.layers = layers, to.recomputed = stage.recomputed;
    }
  }

  Time step_of(const Stage& stage, const Passes& fill) const {
    Time step = 0;
    for (const RankWork* rank : stage.ranks) step = std::max(step, works_.step_ps(*rank, fill, {}));
    return step;
  }

  Passes filled(Passes fill, const Stage& stage) {
    works_.add_to(fill, stage.ranks);
    return fill;
  }

  /// Returns what the passes of all micro-batches take at least if nothing is recomputed.
  Time passes_of(std::size_t rank, std::size_t before, std::int64_t layers) {
    Time most = 0;
    for (const RankWork* work : works_of(rank, before, layers, 0)) {
      Time passes = 0;
      for (const Passes& chunk : work->chunks) passes += chunk.forward + chunk.backward;
      most = std::max(most, passes * strategy().chunk_micro_batches());
    }
    return most;
  }

  const Stage& stage_of(std::size_t rank, std::size_t before, std::int64_t layers) {
    const auto [known, is_new] = stages_.try_emplace({rank, uniform_ ? 0 : before, layers});
    if (!is_new) return known->second;
    Stage& stage = known->second;
    if (const std::optional<std::int64_t> recomputed = least_recomputed(rank, before, layers))
      stage = {true, *recomputed, works_of(rank, before, layers, *recomputed)};
    return stage;
  }

  std::vector<const RankWork*> works_of(std::size_t rank, std::size_t before, std::int64_t layers,
                                        std::int64_t recomputed) {
    times_.set(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(before), layers, recomputed);
    std::vector<const RankWork*> works;
    for (const workload::RankClass& rank_class : classes_[rank]) {
      const auto [work, is_new] = works_known_.try_emplace(works_.content_of(rank_class));
      if (is_new) work->second = works_.work_of(rank_class);
      works.push_back(&work->second);
    }
    return works;
  }

  /// Returns how many layers must be recomputed at least so that the rank fits. The first brings a buffer with it, each
  /// further one saves memory.
  std::optional<std::int64_t> least_recomputed(std::size_t rank, std::size_t before, std::int64_t layers) {
    if (fits(rank, before, layers, 0)) return 0;
    if (!ties_ || layers == 0 || !fits(rank, before, layers, layers)) return std::nullopt;
    std::int64_t too_few = 0, enough = layers;
    while (enough - too_few > 1) {
      const std::int64_t middle = (enough + too_few) / 2;
      (fits(rank, before, layers, middle) ? enough : too_few) = middle;
    }
    return enough;
  }

  bool fits(std::size_t rank, std::size_t before, std::int64_t layers, std::int64_t recomputed) {
    memory_.set(static_cast<std::int64_t>(rank), static_cast<std::int64_t>(before), layers, recomputed);
    const Configuration& configuration = memory_.configuration();
    return std::all_of(classes_[rank].begin(), classes_[rank].end(), [&](const workload::RankClass& rank_class) {
      const compute::Gpu& gpu = configuration.gpu_of(rank_class);
      return least_memory_.fits({footprints_.of(configuration.model, configuration.strategy, gpu, rank_class),
                                 usable_memory_gib(configuration, gpu)});
    });
  }

  /// Returns the step of ranks with equally many layers, if these fit: the best is no worse.
  Time even_ps() {
    const std::int64_t ranks = std::ssize(classes_);
    Time step = 0;
    Passes fill;
    std::int64_t before = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      const std::int64_t layers = model().layers / ranks + (rank < model().layers % ranks ? 1 : 0);
      if (layers < ranges_[at].least) return kNever;
      const Stage& stage = stage_of(at, static_cast<std::size_t>(before), layers);
      if (!stage.fits) return kNever;
      step = std::max(step, step_of(stage, fill));
      fill = filled(fill, stage);
      before += layers;
    }
    return step;
  }

  BestStages chosen(const std::vector<std::vector<Path>>& paths) const {
    auto left = static_cast<std::size_t>(model().layers);
    BestStages result{paths.back()[left].step_ps, {}, {}};
    const auto stages = static_cast<std::size_t>(strategy().stages().count());
    if (choices_.layers) result.stage_layers.assign(stages, 0);
    if (ties_) result.stage_recompute_layers.assign(stages, 0);
    for (std::size_t rank = classes_.size(); rank-- > 0;) {
      const Path& path = paths[rank + 1][left];
      const auto number = static_cast<std::int64_t>(rank);
      if (choices_.layers) deal_out(result.stage_layers, strategy(), number, path.layers);
      if (ties_) deal_out(result.stage_recompute_layers, strategy(), number, path.recomputed);
      left -= static_cast<std::size_t>(path.layers);
    }
    return result;
  }

  const StageChoices choices_;
  const bool ties_;  // layers are recomputed so that a rank fits
  const LeastMemory& least_memory_;
  VariedStages times_, memory_;
  RankWorks works_;
  memory::PipelineFootprints footprints_;
  const bool uniform_;
  const std::vector<LayerRange> ranges_;
  std::vector<std::vector<workload::RankClass>> classes_;  // by rank of the pipeline
  std::map<RankContent, RankWork> works_known_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, Stage> stages_;
  Time limit_ = kNever;
};

}  // namespace

std::vector<LayerRange> layer_ranges(const Model& model, const Strategy& strategy, const StageChoices& choices) {
  std::vector<LayerRange> ranges;
  const StageMap stages = strategy.stages();
  for (std::int64_t rank = 0; rank < strategy.pp; ++rank) {
    if (!choices.layers) {
      std::int64_t given = 0;
      for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
        for (const workload::LayerKind kind : workload::chunk_layers(model, strategy, rank, chunk))
          given += workload::is_mtp(kind) ? 0 : 1;
      ranges.push_back({given, given});
    } else if (strategy.pp == 1) {
      ranges.push_back({model.layers, model.layers});
    } else {
      const bool may_be_empty = strategy.virtual_stages == 1 && (stages.has_first(rank) || stages.has_last(rank));
      ranges.push_back({may_be_empty ? 0 : strategy.virtual_stages, model.layers});
    }
  }
  return ranges;
}

std::vector<std::int64_t> dealt_to_stages(const Strategy& strategy, const std::vector<std::int64_t>& by_rank) {
  std::vector<std::int64_t> stages(static_cast<std::size_t>(strategy.stages().count()), 0);
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    deal_out(stages, strategy, static_cast<std::int64_t>(rank), by_rank[rank]);
  return stages;
}

std::string why_stages_are_fixed(const Model& model, const Strategy& strategy) {
  const workload::ScheduleType& type = workload::schedule_type(strategy.schedule);
  if (model.teacher) return "a teacher's layers are dealt out evenly";
  if (strategy.stage_copies() > 1) return "two ranks hold the same layers";
  if (type.needs_costs || strategy.written) return "the order of its passes depends on them";
  if (strategy.virtual_stages > 1 && !is_uniform(model))
    return "layers of several kinds are dealt out to chunks that other ranks' lie between";
  return "";
}

double count_of_choices(const Configuration& configuration, const StageChoices& choices) {
  const Strategy& strategy = configuration.strategy;
  const auto layers = static_cast<std::size_t>(configuration.model.layers);
  const bool ties = choices.recompute && workload::recomputes(strategy);
  std::vector<double> ways(layers + 1, 0);
  ways[0] = 1;
  for (const LayerRange& range : layer_ranges(configuration.model, strategy, choices)) {
    std::vector<double> next(layers + 1, 0);
    for (std::size_t before = 0; before <= layers; ++before)
      for (auto own = static_cast<std::size_t>(range.least);
           ways[before] > 0 && before + own <= layers && own <= static_cast<std::size_t>(range.most); ++own)
        next[before + own] += ways[before] * (ties ? static_cast<double>(own + 1) : 1);
    ways = std::move(next);
  }
  return ways[layers];
}

bool LeastMemory::fits(const MemoryRequirement& requirement) const {
  std::int64_t least = requirement.required.total();
  for (const auto part : uncounted) least -= requirement.required.*part;
  return least <= requirement.memory_bytes();
}

std::optional<BestStages> best_stages(const Configuration& times, const LeastMemory& memory,
                                      const StageChoices& choices, const Links& links, Replicas replicas) {
  return StageSearch(times, memory, choices, links, replicas).best();
}

}  // namespace manyworlds::core::step
