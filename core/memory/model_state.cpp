// Bytes of model state by ZeRO stage and precision of the gradients.
#include "core/memory/model_state.hpp"

#include <algorithm>

#include "core/workload/strategy/cut.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Model;
using workload::Parameters;
using workload::Strategy;

constexpr std::int64_t kWeight = 2;
constexpr std::int64_t kMasterAndMoments = 12;
constexpr std::int64_t kFp32 = 4;
/// FSDP computes with one unit while it gathers or reduces the next.
constexpr std::int64_t kUnitsWhole = 2;

/// Megatron-LM adds gradients up in fp32 under bf16, in 16 bits under fp16.
bool gradients_in_16bit(const Strategy& strategy) {
  return strategy.stack.reduce_in_16bit || strategy.stack.precision == workload::Precision::fp16;
}

/// Of what the ranks hold alike, this rank's share.
std::int64_t share(const Parameters& held, const Strategy& strategy) {
  const auto part = [](std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; };
  return part(held.dense, strategy.shards()) + part(held.experts, strategy.expert_shards());
}

std::int64_t largest_layer(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t most = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const workload::LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk))
      most = std::max(most, workload::layer_parameters(model, strategy, kind).total());
  return most;
}

/// A unit of FSDP is a layer; embedding and head together are one more.
std::int64_t outer_unit(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const workload::Sections sections = strategy.sections();
  std::int64_t sum = sections.has_first(stage) ? workload::embedding_parameters(model, strategy.tp) : 0;
  if (sections.has_last(stage)) sum += workload::head_parameters(model, strategy.tp, sections.ends_meet());
  return sum;
}

}  // namespace

ModelState model_state(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const Parameters held = workload::stage_parameters(model, strategy, stage);
  const std::int64_t whole = held.total(), shared = share(held, strategy);
  const std::int64_t gradient = gradients_in_16bit(strategy) ? 2 : kFp32;
  // Gradients in 16 bits are copied to fp32 for the optimizer.
  const std::int64_t optimizer = kMasterAndMoments + (gradient < kFp32 ? kFp32 : 0);

  ModelState state;
  state.weights = kWeight * (strategy.zero >= 3 ? shared : whole);
  state.gradients = gradient * (strategy.zero >= 2 ? shared : whole);
  state.optimizer = optimizer * (strategy.zero >= 1 ? shared : whole);
  const std::int64_t unit = kUnitsWhole * largest_layer(model, strategy, stage);
  if (strategy.zero >= 2) state.gathered += gradient * std::min(unit, whole);
  if (strategy.zero >= 3) state.gathered += kWeight * std::min(unit + outer_unit(model, strategy, stage), whole);
  return state;
}

}  // namespace manyworlds::core::memory
