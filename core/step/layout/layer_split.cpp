#include "core/step/layout/layer_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/layout/rank_layout.hpp"
#include "core/workload/activations/activation_policy.hpp"
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/layer/layer_input.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/contiguous_split.hpp"
#include "core/workload/weights/frozen_weights.hpp"

namespace manyworlds::core::step {
namespace {

using workload::ActivationPolicy;
using workload::LayerKind;
using workload::LayerSplit;
using workload::Model;
using workload::Operator;
using workload::PartCost;
using workload::RankClass;
using workload::StageMap;
using workload::Strategy;

/// A chunk of the ranks of a class.
struct Holder {
  RankClass rank_class;
  std::int64_t chunk = 0;
};

/// Returns the chunks that are each virtual stage.
std::vector<std::vector<Holder>> holders_of(const Configuration& configuration) {
  const StageMap stages = configuration.strategy.stages();
  std::vector<std::vector<Holder>> holders(static_cast<std::size_t>(stages.count()));
  for (const auto& [rank_class, ranks] : classes_of(parallel_config_of(configuration)))
    for (std::int64_t chunk = 0; chunk < configuration.strategy.virtual_stages; ++chunk)
      holders.at(static_cast<std::size_t>(stages.of(rank_class.stage, chunk))).push_back({rank_class, chunk});
  return holders;
}

/// Returns the sums over the first layers of a model, from none to all, of what a layer of a kind has.
template <class OfKind>
std::vector<std::int64_t> sums_over_layers(const Model& model, OfKind&& of_kind) {
  std::map<LayerKind, std::int64_t> known;
  std::vector<std::int64_t> sums{0};
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto [entry, is_new] = known.try_emplace(model.layer_kind(layer));
    if (is_new) entry->second = of_kind(entry->first);
    sums.push_back(sums.back() + entry->second);
  }
  return sums;
}

std::int64_t between(const std::vector<std::int64_t>& sums, std::int64_t begin, std::int64_t end) {
  return sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(begin)];
}

class StageParameters {
 public:
  explicit StageParameters(const Configuration& configuration)
      : last_(static_cast<std::size_t>(configuration.strategy.stages().count() - 1)) {
    const Model& model = configuration.model;
    const Strategy& strategy = configuration.strategy;
    const bool trains = !workload::is_inference(model);
    const auto counted = [&](LayerKind kind) {
      return (trains ? workload::trained_layer_parameters(model, strategy, kind)
                     : workload::layer_parameters(model, strategy, kind))
          .total();
    };
    layers_ = sums_over_layers(model, counted);
    if (model.mtp_layers > 0)
      behind_ =
          model.mtp_layers * counted(workload::mtp_kind(model)) + workload::table_copy_parameters(model, strategy);
    if (trains && workload::is_frozen(model)) return;
    embedding_ = workload::embedding_parameters(model, strategy.tp);
    behind_ += workload::head_parameters(model, strategy.tp, false);
  }

  std::int64_t of(std::size_t stage, std::int64_t begin, std::int64_t end) const {
    return between(layers_, begin, end) + (stage == 0 ? embedding_ : 0) + (stage == last_ ? behind_ : 0);
  }

 private:
  std::size_t last_;
  std::vector<std::int64_t> layers_;
  std::int64_t embedding_ = 0, behind_ = 0;  // in front of the layers, and behind them
};

class StageTimes {
 public:
  explicit StageTimes(const Configuration& configuration)
      : model_(configuration.model), strategy_(configuration.strategy), configuration_(configuration) {
    for (const std::vector<Holder>& holders : holders_of(configuration)) {
      std::vector<TimedHolder>& timed = holders_.emplace_back();
      for (const Holder& holder : holders) timed.push_back(timed_holder(holder));
    }
  }

  Time of(std::size_t stage, std::int64_t begin, std::int64_t end) const {
    Time longest = 0;
    for (const TimedHolder& holder : holders_[stage]) {
      Time sum = holder.ends_ps;
      for (std::size_t i = 0; i < holder.sections.size(); ++i) {
        const std::int64_t from = std::min(begin + holder.sections[i].first, end);
        const std::int64_t to =
            i + 1 < holder.sections.size() ? std::min(begin + holder.sections[i + 1].first, end) : end;
        sum += between(*holder.sections[i].layers, from, to);
      }
      longest = std::max(longest, sum);
    }
    return longest;
  }

 private:
  /// Layers of a chunk from the `first` on, up to the next section's, and the times of the model's first layers.
  struct Section {
    std::int64_t first = 0;
    const std::vector<Time>* layers = nullptr;
  };
  struct TimedHolder {
    Time ends_ps = 0;  // of embedding and head, and of layers for multi-token prediction
    std::vector<Section> sections;
  };

  TimedHolder timed_holder(const Holder& holder) {
    const auto [rank_class, chunk] = holder;
    TimedHolder result;
    const StageMap stages = strategy_.stages();
    const bool is_first = stages.is_first(rank_class.stage, chunk);
    if (is_first) result.ends_ps += end_ps("embedding", workload::embedding_operators(model_, strategy_), rank_class);
    if (stages.is_last(rank_class.stage, chunk)) {
      result.ends_ps += end_ps("head", workload::head_operators(model_, strategy_), rank_class);
      result.ends_ps += mtp_ps(rank_class, chunk);
    }
    std::optional<ActivationPolicy> last;
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      const ActivationPolicy policy = workload::activation_policy(strategy_, rank_class.stage, chunk, layer);
      if (last == policy) continue;
      last = policy;
      result.sections.push_back({layer, &layer_times(rank_class, policy, is_first)});
    }
    return result;
  }

  Time end_ps(std::string_view name, std::vector<Operator> operators, const RankClass& rank_class) const {
    return passes_ps(name, std::move(operators), {}, rank_class, !workload::is_frozen(model_));
  }

  /// Which of these layers a policy recomputes does not depend on how many others there are.
  Time mtp_ps(const RankClass& rank_class, std::int64_t chunk) const {
    if (model_.mtp_layers == 0) return 0;
    const LayerKind kind = workload::mtp_kind(model_);
    const ActivationPolicy policy =
        workload::activation_policy(strategy_, rank_class.stage, chunk, model_.layers, kind);
    return model_.mtp_layers * layer_ps(kind, policy, rank_class, false);
  }

  /// Returns the times of the model's first layers if all have a policy, in the first stage or in another.
  const std::vector<Time>& layer_times(const RankClass& rank_class, const ActivationPolicy& policy, bool is_first) {
    const auto [entry, is_new] =
        layers_.try_emplace({rank_class.expert_rank, rank_class.machine_kind, policy, is_first});
    if (!is_new) return entry->second;
    // All layers are in the first stage while splits are open.
    const std::int64_t forward_only = is_first ? workload::forward_only_layers(model_, strategy_) : 0;
    entry->second = sums_over_layers(model_, [&](LayerKind kind) { return layer_ps(kind, policy, rank_class, false); });
    if (forward_only == 0) return entry->second;
    const std::vector<Time> both_passes = entry->second;
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      const auto at = static_cast<std::size_t>(layer);
      entry->second[at + 1] =
          entry->second[at] + (layer < forward_only ? layer_ps(model_.layer_kind(layer), policy, rank_class, true)
                                                    : both_passes[at + 1] - both_passes[at]);
    }
    return entry->second;
  }

  /// Returns the time of a layer as core/workload/build/stage_work.cpp builds it.
  Time layer_ps(LayerKind kind, const ActivationPolicy& policy, const RankClass& rank_class, bool forward_only) const {
    std::vector<Operator> operators = workload::layer_operators(model_, strategy_, kind, rank_class.expert_rank);
    if (forward_only) {
      workload::keep_forward_only(operators);
    } else {
      workload::apply_activation_policy(operators, policy, workload::rank_shapes(model_, strategy_, kind));
      if (policy.recompute_layer) workload::keep_input(operators, model_, strategy_, kind);
    }
    return passes_ps(workload::layer_name(model_, kind), std::move(operators), kind, rank_class,
                     !workload::has_frozen_part(model_, kind));
  }

  Time passes_ps(std::string_view name, std::vector<Operator> operators, LayerKind kind, const RankClass& rank_class,
                 bool all_trained) const {
    workload::kernel_cost(name, workload::rank_shapes(model_, strategy_, kind), configuration_.gpu_of(rank_class),
                          operators, nullptr, all_trained);
    Time sum = 0;
    for (const workload::PhaseList& pass : {workload::forward_pass(operators), workload::backward_pass(operators)})
      for (const workload::Phase& phase : pass)
        for (const workload::WorkItem& work : phase.ops)
          if (const workload::KernelWork* kernel = work.kernel()) sum += kernel->cost.ps;
    return sum;
  }

  const Model& model_;
  const Strategy& strategy_;
  const Configuration& configuration_;
  std::map<std::tuple<std::int64_t, std::uint32_t, ActivationPolicy, bool>, std::vector<Time>> layers_;
  std::vector<std::vector<TimedHolder>> holders_;  // by virtual stage
};

/// Of ranks that have one chunk each.
class StageMemory {
 public:
  explicit StageMemory(const Configuration& configuration)
      : configuration_(configuration),
        strategy_(configuration.strategy),
        footprints_(configuration.model, configuration.strategy, configuration.gpu),
        holders_(holders_of(configuration)) {}

  std::int64_t of(std::size_t stage, std::int64_t begin, std::int64_t end) {
    std::vector<LayerKind> kinds;
    for (std::int64_t layer = begin; layer < end; ++layer) kinds.push_back(configuration_.model.layer_kind(layer));
    const auto [known, is_new] = known_.try_emplace({stage, std::move(kinds)}, 0);
    if (!is_new) return known->second;
    // All other layers are with the first and the last stage.
    strategy_.stage_layers.assign(holders_.size(), 0);
    strategy_.stage_layers.front() = begin;
    strategy_.stage_layers.back() += configuration_.model.layers - end;
    strategy_.stage_layers[stage] += end - begin;
    for (const Holder& holder : holders_[stage]) {
      const memory::Footprint footprint =
          footprints_.of(configuration_.model, strategy_, configuration_.gpu_of(holder.rank_class), holder.rank_class);
      known->second = std::max(known->second, footprint.total());
    }
    return known->second;
  }

 private:
  const Configuration& configuration_;
  Strategy strategy_;
  memory::PipelineFootprints footprints_;
  std::vector<std::vector<Holder>> holders_;  // by virtual stage
  std::map<std::pair<std::size_t, std::vector<LayerKind>>, std::int64_t> known_;
};

template <class Stages>
PartCost cost_of(const Configuration& configuration) {
  return [stages = std::make_shared<Stages>(configuration)](std::size_t stage, std::int64_t begin, std::int64_t end) {
    return stages->of(stage, begin, end);
  };
}

PartCost cost_of(const Configuration& configuration, LayerSplit split) {
  if (split == LayerSplit::by_parameters) return cost_of<StageParameters>(configuration);
  if (split == LayerSplit::by_time) return cost_of<StageTimes>(configuration);
  MANYWORLDS_CHECK(split == LayerSplit::by_memory, "no weights of split {}", static_cast<int>(split));
  return cost_of<StageMemory>(configuration);
}

/// Returns the configuration with any layers on its stages.
Configuration with_open_layers(Configuration configuration) {
  configuration.strategy.split = LayerSplit::even;
  const auto stages = static_cast<std::size_t>(configuration.strategy.stages().count());
  configuration.strategy.stage_layers.assign(stages, 0);
  configuration.strategy.stage_layers.front() = configuration.model.layers;
  return configuration;
}

/// Returns how many layers each virtual stage has at least.
std::vector<std::int64_t> least_layers(const Model& model, const Strategy& strategy) {
  std::vector<std::int64_t> least(static_cast<std::size_t>(strategy.stages().count()), 1);
  if (least.size() == 1) return least;
  if (workload::has_embedding(model)) least.front() = 0;
  if (workload::has_head(model)) least.back() = 0;
  return least;
}

}  // namespace

std::string why_no_split(const Configuration& configuration) {
  const Strategy& strategy = configuration.strategy;
  const std::int64_t layers = configuration.model.layers, stages = strategy.stages().count();
  const std::vector<std::int64_t> least = least_layers(configuration.model, strategy);
  if (std::accumulate(least.begin(), least.end(), std::int64_t{0}) > layers)
    return fmt::format("layers {}, stages {}", layers, stages);
  if (strategy.split != LayerSplit::by_memory) return "";
  const workload::ScheduleType& schedule = workload::schedule_type(strategy.schedule);
  if (schedule.needs_costs) return fmt::format("schedule {}", schedule.name);
  return stages == strategy.pp && strategy.virtual_stages == 1
             ? ""
             : fmt::format("virtual_stages {}", strategy.virtual_stages);
}

std::vector<std::int64_t> split_layers(const Configuration& configuration) {
  const std::string why = why_no_split(configuration);
  MANYWORLDS_CHECK(why.empty(), "no split: {}", why);
  const Configuration open = with_open_layers(configuration);
  const LayerSplit split = configuration.strategy.split;
  const std::vector<std::int64_t> least = least_layers(open.model, open.strategy);
  const PartCost weight = cost_of(open, split);
  if (split == LayerSplit::by_parameters) return workload::contiguous_split(open.model.layers, least, weight).value();
  const PartCost time = split == LayerSplit::by_time ? weight : cost_of(open, LayerSplit::by_time);
  return workload::contiguous_split(open.model.layers, least, weight, time).value();
}

std::int64_t stage_weight(const Configuration& configuration, LayerSplit split, std::size_t stage, std::int64_t begin,
                          std::int64_t end) {
  return cost_of(with_open_layers(configuration), split)(stage, begin, end);
}

}  // namespace manyworlds::core::step
