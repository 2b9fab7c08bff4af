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
#include "core/workload/build/stage_work.hpp"
#include "core/workload/layer/activation_policy.hpp"
#include "core/workload/layer/kernel_costs.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/contiguous_split.hpp"

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
    layers_ = sums_over_layers(
        model, [&](LayerKind kind) { return workload::layer_parameters(model, strategy, kind).total(); });
    embedding_ = workload::embedding_parameters(model, strategy.tp);
    head_ = workload::head_parameters(model, strategy.tp, false) + workload::table_copy_parameters(model, strategy);
    if (model.mtp_layers > 0)
      head_ += model.mtp_layers * workload::layer_parameters(model, strategy, workload::mtp_kind(model)).total();
  }

  std::int64_t of(std::size_t stage, std::int64_t begin, std::int64_t end) const {
    return between(layers_, begin, end) + (stage == 0 ? embedding_ : 0) + (stage == last_ ? head_ : 0);
  }

 private:
  std::size_t last_;
  std::vector<std::int64_t> layers_;
  std::int64_t embedding_ = 0, head_ = 0;
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
    const compute::Gpu& gpu = configuration_.gpu_of(rank_class);
    TimedHolder result;
    const StageMap stages = strategy_.stages();
    if (stages.is_first(rank_class.stage, chunk))
      result.ends_ps += passes_ps("embedding", workload::embedding_operators(model_, strategy_), {}, gpu);
    if (stages.is_last(rank_class.stage, chunk))
      result.ends_ps += passes_ps("head", workload::head_operators(model_, strategy_), {}, gpu) + mtp_ps(holder);
    std::optional<ActivationPolicy> last;
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      const ActivationPolicy policy = workload::activation_policy(strategy_, rank_class.stage, chunk, layer);
      if (last == policy) continue;
      last = policy;
      result.sections.push_back({layer, &layer_times(rank_class, policy)});
    }
    return result;
  }

  /// Returns the time of the layers for multi-token prediction, which the last stage has whatever the split.
  Time mtp_ps(const Holder& holder) const {
    const auto [rank_class, chunk] = holder;
    if (model_.mtp_layers == 0) return 0;
    const LayerKind kind = workload::mtp_kind(model_);
    const ActivationPolicy policy =
        workload::activation_policy(strategy_, rank_class.stage, chunk, model_.layers, kind);
    return model_.mtp_layers * layer_ps(rank_class, kind, policy);
  }

  /// Returns the times of the model's first layers if all have a policy.
  const std::vector<Time>& layer_times(const RankClass& rank_class, const ActivationPolicy& policy) {
    const auto [entry, is_new] = layers_.try_emplace({rank_class.expert_rank, rank_class.machine_kind, policy});
    if (!is_new) return entry->second;
    entry->second = sums_over_layers(model_, [&](LayerKind kind) { return layer_ps(rank_class, kind, policy); });
    return entry->second;
  }

  Time layer_ps(const RankClass& rank_class, LayerKind kind, const ActivationPolicy& policy) const {
    std::vector<Operator> operators = workload::layer_operators(model_, strategy_, kind, rank_class.expert_rank);
    workload::apply_activation_policy(operators, policy, workload::rank_shapes(model_, strategy_, kind));
    return passes_ps(workload::layer_name(model_, kind), std::move(operators), kind, configuration_.gpu_of(rank_class));
  }

  Time passes_ps(std::string_view name, std::vector<Operator> operators, LayerKind kind,
                 const compute::Gpu& gpu) const {
    workload::kernel_cost(name, workload::rank_shapes(model_, strategy_, kind), gpu, operators, nullptr);
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
  std::map<std::tuple<std::int64_t, std::uint32_t, ActivationPolicy>, std::vector<Time>> layers_;
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

bool is_weighed(LayerSplit split) {
  return split == LayerSplit::by_parameters || split == LayerSplit::by_time || split == LayerSplit::by_memory;
}

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
  return workload::contiguous_split(open.model.layers, least_layers(open.model, open.strategy),
                                    cost_of(open, configuration.strategy.split))
      .value();
}

std::int64_t stage_weight(const Configuration& configuration, LayerSplit split, std::size_t stage, std::int64_t begin,
                          std::int64_t end) {
  return cost_of(with_open_layers(configuration), split)(stage, begin, end);
}

}  // namespace manyworlds::core::step
