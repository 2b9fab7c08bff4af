// Bytes of model state by ZeRO stage and gradient precision.
#include "core/memory/model_state.hpp"

#include <algorithm>
#include <map>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "core/workload/weights/four_bit_weights.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Model;
using workload::Parameters;
using workload::Strategy;

// Bytes per parameter.
constexpr std::int64_t kWeightBytes = 2;
constexpr std::int64_t kOptimizerBytes = 12;
constexpr std::int64_t kFp32Bytes = 4;
/// FSDP computes with one unit while it gathers or reduces the next one.
constexpr std::int64_t kGatheredUnits = 2;

/// Megatron-LM accumulates gradients in fp32 under bf16 and in 16 bits under fp16.
bool gradients_in_16bit(const Strategy& strategy) {
  return strategy.stack.reduce_in_16bit || strategy.stack.precision == workload::Precision::fp16;
}

/// Returns this rank's shard of the parameters that the data-parallel ranks replicate.
std::int64_t shard_of(const Parameters& rank_parameters, const Strategy& strategy) {
  const auto ceil_div = [](std::int64_t parameter_count, std::int64_t ranks) {
    return (parameter_count + ranks - 1) / ranks;
  };
  return ceil_div(rank_parameters.dense, strategy.shards()) +
         ceil_div(rank_parameters.experts, strategy.expert_shards());
}

/// Returns what `parameters_of` gives for the layer of a stage for which it gives most.
std::int64_t largest_layer(const Model& model, const Strategy& strategy, std::int64_t stage,
                           Parameters (*parameters_of)(const Model&, const Strategy&, workload::LayerKind)) {
  std::int64_t max_parameters = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const workload::LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk))
      max_parameters = std::max(max_parameters, parameters_of(model, strategy, kind).total());
  return max_parameters;
}

/// Returns the parameters of embedding and head, which together are one unit of FSDP; every layer is a unit of its own.
std::int64_t embedding_head_parameters(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const workload::StageMap stages = strategy.stages();
  std::int64_t sum = stages.has_first(stage) ? workload::embedding_parameters(model, strategy.tp) : 0;
  if (stages.has_last(stage)) sum += workload::head_parameters(model, strategy.tp, stages.first_and_last_share_rank());
  return sum;
}

/// Returns the bytes of the factors that a step gathers, all of which are there when the last backward pass ends.
std::int64_t factor_bytes(const Model& model, const Strategy& strategy, std::int64_t stage) {
  if (strategy.gradient_exchange == workload::GradientExchange::sums) return 0;
  std::int64_t sum = 0;
  std::map<workload::LayerKind, std::int64_t> known;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const workload::LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk)) {
      const auto [bytes, is_new] = known.try_emplace(kind, 0);
      if (is_new)
        for (const workload::Operator& each : workload::layer_operators(model, strategy, kind))
          bytes->second += each.factors ? each.factors->gathered_bytes : 0;
      sum += bytes->second;
    }
  return sum;
}

/// Returns the bytes that the weights of a stage have less than 16 bits each.
std::int64_t four_bit_savings(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t sum = 0;
  std::map<workload::LayerKind, std::int64_t> known;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const workload::LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk)) {
      const auto [bytes, is_new] = known.try_emplace(kind, 0);
      if (is_new) {
        const workload::FourBitWeights weights =
            workload::four_bit_weights(workload::layer_operators(model, strategy, kind));
        bytes->second = kWeightBytes * weights.count - weights.bytes;
      }
      sum += bytes->second;
    }
  return sum;
}

}  // namespace

ModelState model_state(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const Parameters all = workload::stage_parameters(model, strategy, stage),
                   trained = workload::trained_stage_parameters(model, strategy, stage);
  const std::int64_t gradient = gradients_in_16bit(strategy) ? 2 : kFp32Bytes;
  // Gradients in 16 bits are copied to fp32 for the optimizer.
  const std::int64_t optimizer = kOptimizerBytes + (gradient < kFp32Bytes ? kFp32Bytes : 0);

  ModelState state;
  state.weights = kWeightBytes * (strategy.zero >= 3 ? shard_of(all, strategy) : all.total());
  if (workload::has_four_bit_weights(model)) state.weights -= four_bit_savings(model, strategy, stage);
  state.gradients = gradient * (strategy.zero >= 2 ? shard_of(trained, strategy) : trained.total());
  state.optimizer = optimizer * (strategy.zero >= 1 ? shard_of(trained, strategy) : trained.total());
  const auto units = [&](auto parameters_of) {
    return kGatheredUnits * largest_layer(model, strategy, stage, parameters_of);
  };
  if (strategy.zero >= 2)
    state.gathered += gradient * std::min(units(workload::trained_layer_parameters), trained.total());
  if (strategy.zero >= 3)
    state.gathered +=
        kWeightBytes *
        std::min(units(workload::layer_parameters) + embedding_head_parameters(model, strategy, stage), all.total());
  state.gathered += factor_bytes(model, strategy, stage);
  return state;
}

}  // namespace manyworlds::core::memory
