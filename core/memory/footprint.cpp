// Memory of a rank: model state from its parameters, activations by walking its schedule. Transient gradients of
// activations, workspaces and the allocator's share are not counted.
#include "core/memory/footprint.hpp"

#include <algorithm>
#include <vector>

#include "core/workload/cut.hpp"
#include "core/workload/operators.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/schedule.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::Model;
using workload::Operator;
using workload::Recompute;
using workload::Strategy;

std::int64_t kept(const std::vector<Operator>& operators, bool core) {
  std::int64_t sum = 0;
  for (const Operator& each : operators) sum += each.kept_bytes + (core ? each.core_bytes : 0);
  return sum;
}

/// What one micro-batch keeps in each part of a rank, and what its backward pass adds for a moment.
struct PartBytes {
  std::int64_t layer = 0, embedding = 0, head = 0;
  std::int64_t logits = 0;        // fp32, kept from loss to backward
  std::int64_t logits_16bit = 0;  // beside them while the loss is computed: the GEMM's output, then its gradient
  std::int64_t recomputed = 0;    // one layer's, or one attention core's
};

PartBytes part_bytes(const Model& model, const Strategy& strategy) {
  const std::vector<Operator> layer = workload::layer_operators(model, strategy);
  PartBytes bytes;
  bytes.layer = activation_bytes_per_layer(model, strategy);
  bytes.embedding = kept(workload::embedding_operators(model, strategy), true);
  bytes.logits = 4 * workload::cut(model, strategy).logits();
  bytes.logits_16bit = bytes.logits / 2;
  bytes.head = kept(workload::head_operators(model, strategy), true) - bytes.logits;
  // A layer made again has its input, which the first norm keeps, from the checkpoint.
  if (strategy.recompute == Recompute::full)
    bytes.recomputed = kept(layer, true) - workload::cut(model, strategy).boundary_bytes();
  if (strategy.recompute == Recompute::selective) bytes.recomputed = kept(layer, true) - kept(layer, false);
  return bytes;
}

}  // namespace

std::int64_t activation_bytes_per_layer(const Model& model, const Strategy& strategy) {
  // Full recompute keeps the layer's whole input on every rank, 2sbh (Korthikanti et al., table 2).
  if (strategy.recompute == Recompute::full) return workload::cut(model, strategy).hidden_bytes();
  return kept(workload::layer_operators(model, strategy), strategy.recompute == Recompute::none);
}

std::int64_t layers_in_flight(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t alive = 0, most = 0;
  for (const workload::Slot& slot : workload::schedule(strategy, stage)) {
    const auto layers = static_cast<std::int64_t>(workload::chunk_layers(model, strategy, stage, slot.chunk).size());
    alive += slot.forward ? layers : -layers;
    most = std::max(most, alive);
  }
  return most;
}

Footprint footprint(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const std::int64_t parameters = workload::stage_parameters(model, strategy, stage).total();
  const std::int64_t shards = strategy.zero > 0 ? strategy.dp : 1;
  Footprint state;
  state.weights = 2 * parameters;
  state.gradients = 4 * parameters;
  state.optimizer = 12 * ((parameters + shards - 1) / shards);

  const PartBytes bytes = part_bytes(model, strategy);
  Footprint peak = state, now = state;
  const auto look = [&peak](const Footprint& moment) {
    if (moment.total() > peak.total()) peak = moment;
  };
  for (const workload::Slot& slot : workload::schedule(strategy, stage)) {
    const bool embedding = stage == 0 && slot.chunk == 0;
    const bool head = stage == strategy.pp - 1 && slot.chunk == strategy.virtual_stages - 1;
    const auto layers = static_cast<std::int64_t>(workload::chunk_layers(model, strategy, stage, slot.chunk).size());
    const std::int64_t activations = layers * bytes.layer + (embedding ? bytes.embedding : 0) + (head ? bytes.head : 0);
    if (slot.forward) now.activations += activations;
    if (slot.forward && head) now.logits += bytes.logits;
    Footprint loss = now;  // the loss's forward or backward: both forms of the logits
    if (head) loss.logits += bytes.logits_16bit;
    look(loss);
    if (slot.forward) continue;
    if (head) now.logits -= bytes.logits;  // gone before the last layer's backward begins
    Footprint layer = now;
    layer.recomputed = bytes.recomputed;
    look(layer);
    now.activations -= activations;
  }
  return peak;
}

Footprint peak(const Model& model, const Strategy& strategy) {
  Footprint most = footprint(model, strategy, 0);
  for (std::int64_t stage = 1; stage < strategy.pp; ++stage) {
    const Footprint other = footprint(model, strategy, stage);
    if (other.total() > most.total()) most = other;
  }
  return most;
}

}  // namespace manyworlds::core::memory
