// From routing weights to rows: capacity, copies of hot experts, and the share of each rank.
#include "core/workload/parts/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

namespace manyworlds::core::workload {
namespace {

constexpr std::int64_t kBytesPerValue = 2;  // per activation and per weight

/// The load of balanced experts: rows beyond their capacity are dropped, and missing rows are padded.
ExpertLoad balanced_load(std::int64_t routed, std::int64_t experts, std::int64_t capacity, bool padded) {
  ExpertLoad load;
  load.routed = routed;
  load.dropped = std::max<std::int64_t>(0, routed - experts * capacity);
  if (padded) load.padded = std::max<std::int64_t>(0, experts * capacity - routed);
  return load;
}

/// Returns the ranks that route tokens of their own to the same experts.
std::int64_t routing_ranks(const Model& model, const Strategy& strategy) {
  return experts_get_all_tokens(model, strategy) ? 1 : strategy.ep * strategy.etp;
}

}  // namespace

bool experts_get_all_tokens(const Model& model, const Strategy& strategy) {
  return is_generation(model) && strategy.tp > 1 && !strategy.sequence_parallel;
}

std::int64_t expert_capacity(const Model& model, const Strategy& strategy, std::int64_t tokens) {
  const double mean = static_cast<double>(tokens * model.experts_per_token) / static_cast<double>(model.experts);
  return std::min(tokens, static_cast<std::int64_t>(std::ceil(mean * strategy.capacity_factor)));
}

ExpertLoad expert_load(const Model& model, const Strategy& strategy, LayerKind kind) {
  const std::int64_t tokens = stream_shapes(model, strategy).sp_region_tokens,
                     routed = tokens * model.experts_per_token;
  const bool capped = strategy.capacity_factor > 0;
  const std::int64_t capacity = capped ? expert_capacity(model, strategy, tokens) : tokens;
  if (!model.routing) return balanced_load(routed, model.experts, capacity, strategy.pad_to_capacity);
  ExpertLoad load;
  load.routed = routed;
  load.rows = tokens_by_weight(model.routing->loads.at(kind.load), routed, tokens);
  for (std::int64_t& rows : load.rows) {
    load.dropped += std::max<std::int64_t>(0, rows - capacity);
    if (strategy.pad_to_capacity) load.padded += std::max<std::int64_t>(0, capacity - rows);
    rows = strategy.pad_to_capacity ? capacity : std::min(rows, capacity);
  }
  if (strategy.pad_to_capacity) load.rows.clear();
  if (!strategy.hot_experts) return load;
  std::vector<std::int64_t> rows_of_all_ranks = load.rows;
  for (std::int64_t& rows : rows_of_all_ranks) rows *= strategy.ep;
  load.copied = experts_to_copy(rows_of_all_ranks, copy_costs(model, strategy), strategy.hot_expert_spread);
  return load;
}

RankLoad rank_load(const Model& model, const Strategy& strategy, const ExpertLoad& load, std::int64_t expert_rank) {
  RankLoad result;
  if (load.rows.empty()) {
    result.sent = result.received = load.all_rows();
    result.computed = (load.all_rows() * routing_ranks(model, strategy) + strategy.ep - 1) / strategy.ep;
    return result;
  }
  const std::int64_t each = model.experts / strategy.ep;
  std::vector<std::int64_t> sent_rows = load.rows;
  for (const std::int64_t expert : load.copied) sent_rows[static_cast<std::size_t>(expert)] = 0;
  result.to_ranks.bytes.assign(static_cast<std::size_t>(strategy.ep), 0);
  for (std::int64_t e = 0; e < model.experts; ++e)
    result.to_ranks.bytes[static_cast<std::size_t>(e / each)] += sent_rows[static_cast<std::size_t>(e)];
  result.sent = std::accumulate(sent_rows.begin(), sent_rows.end(), std::int64_t{0});
  result.received = result.to_ranks.bytes[static_cast<std::size_t>(expert_rank)] * strategy.ep;
  for (std::int64_t e = expert_rank * each; e < (expert_rank + 1) * each; ++e)
    result.experts.push_back(sent_rows[static_cast<std::size_t>(e)] * routing_ranks(model, strategy));
  for (const std::int64_t expert : load.copied) result.experts.push_back(load.rows[static_cast<std::size_t>(expert)]);
  result.computed = std::accumulate(result.experts.begin(), result.experts.end(), std::int64_t{0});
  return result;
}

bool recomputes_experts(const Strategy& strategy, const RankLoad& load) {
  return strategy.expert_recompute_tokens > 0 && load.computed > strategy.expert_recompute_tokens;
}

bool expert_ranks_differ(const Model& model, const Strategy& strategy) {
  if (strategy.ep == 1) return false;
  if (has_tables(model))
    for (const Block& block : model.architecture->blocks)
      for (const Branch& branch : block.branches)
        if (branch.part->tables() && branch.part->tables()->ranks_differ(strategy.ep)) return true;
  return model.routing && model.has_experts() && !strategy.pad_to_capacity;
}

CopyCosts copy_costs(const Model& model, const Strategy& strategy) {
  MANYWORLDS_CHECK(strategy.hot_expert_tflops > 0 && strategy.hot_expert_gbps > 0, "{} TFLOP/s, {} Gb/s",
                   strategy.hot_expert_tflops, strategy.hot_expert_gbps);
  const double weights = static_cast<double>(expert_parameters(model, 1));
  const double bytes_per_s = strategy.hot_expert_gbps * 1e9 / 8;
  return {2 * weights / (strategy.hot_expert_tflops * 1e12),
          static_cast<double>(kBytesPerValue * model.hidden) / bytes_per_s,
          static_cast<double>(kBytesPerValue) * weights / bytes_per_s};
}

std::vector<std::int64_t> experts_to_copy(std::span<const std::int64_t> tokens, const CopyCosts& costs, double spread) {
  std::vector<std::int64_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto tokens_of = [&](std::int64_t expert) {
    return static_cast<double>(tokens[static_cast<std::size_t>(expert)]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return tokens_of(a) > tokens_of(b); });
  double mean = 0, variance = 0;
  for (const std::int64_t expert : order) mean += tokens_of(expert) / static_cast<double>(order.size());
  for (const std::int64_t expert : order)
    variance += (tokens_of(expert) - mean) * (tokens_of(expert) - mean) / static_cast<double>(order.size());
  if (std::sqrt(variance) < spread * mean) return {};
  const auto step_time = [&](std::size_t copies) {
    return (3 * costs.forward_s + 4 * costs.send_s) * tokens_of(order[copies]) +
           static_cast<double>(copies) * costs.copy_s;
  };
  std::size_t copies = 0;
  while (copies + 1 < order.size() && step_time(copies + 1) < step_time(copies)) ++copies;
  order.resize(order.empty() ? 0 : copies);
  return order;
}

RoutingSummary routing_summary(const Model& model, const Strategy& strategy) {
  RoutingSummary result;
  std::int64_t routed = 0, dropped = 0, layers = 0;
  double imbalance = 0;
  for (const LayerKind kind : all_layers(model)) {
    if (!kind.experts) continue;
    const ExpertLoad load = expert_load(model, strategy, kind);
    routed += load.routed, dropped += load.dropped, ++layers;
    result.copies += static_cast<std::int64_t>(load.copied.size());
    std::int64_t busiest = 0, sum = 0;
    for (std::int64_t rank = 0; rank < strategy.ep; ++rank) {
      const std::int64_t computed = rank_load(model, strategy, load, rank).computed;
      busiest = std::max(busiest, computed), sum += computed;
    }
    imbalance += static_cast<double>(busiest * strategy.ep) / static_cast<double>(sum);
  }
  if (layers == 0) return result;
  result.drop_rate = static_cast<double>(dropped) / static_cast<double>(routed);
  result.imbalance = imbalance / static_cast<double>(layers);
  return result;
}

}  // namespace manyworlds::core::workload
