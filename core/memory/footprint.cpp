// Memory of a rank: activations by walking its schedule, everything else beside them.
#include "core/memory/footprint.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "core/memory/activations.hpp"
#include "core/memory/allocator.hpp"
#include "core/memory/libraries.hpp"
#include "core/memory/model_state.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/host_traffic.hpp"
#include "core/workload/strategy/cut.hpp"

namespace manyworlds::core::memory {
namespace {

using workload::LayerKind;
using workload::Model;
using workload::RankClass;
using workload::Strategy;

constexpr std::array kParts{
    FootprintPart{"weights", "weights", &Footprint::weights},
    FootprintPart{"gradients", "gradients of the weights", &Footprint::gradients},
    FootprintPart{"optimizer", "optimizer states", &Footprint::optimizer},
    FootprintPart{"gathered", "weights and gradients that ZeRO 2 and 3 have whole for a moment", &Footprint::gathered},
    FootprintPart{"activations", "activations kept by micro-batches in flight", &Footprint::activations},
    FootprintPart{"recomputed", "activations of the layer that is being recomputed", &Footprint::recomputed},
    FootprintPart{"working", "gradients of activations in the layer at work", &Footprint::working},
    FootprintPart{"logits", "output of the vocabulary layer and its gradient", &Footprint::logits},
    FootprintPart{"workspaces", "buffers of matrix and attention libraries", &Footprint::workspaces},
    FootprintPart{"rounding", "what the allocator's segments hold beyond tensors", &Footprint::rounding},
    FootprintPart{"communicators", "buffers of the communication library", &Footprint::communicators},
    FootprintPart{"context", "context of the driver: code and stacks", &Footprint::context},
};

/// What a chunk's layers keep with what stands before or behind them, and what the neediest of them adds. `layers`
/// has those seen so far.
LayerBytes chunk_bytes(const Model& model, const Strategy& strategy, const EndBytes& ends, RankClass of,
                       std::int64_t chunk, std::map<LayerAt, LayerBytes>& layers, std::int64_t& most_away) {
  const std::int64_t stage = of.stage;
  LayerBytes all;
  std::int64_t place = 0;
  for (const LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk)) {
    const LayerAt at{kind, workload::keeping_of(strategy, stage, place++), of.expert_rank};
    const auto [known, is_new] = layers.try_emplace(at);
    if (is_new) known->second = layer_bytes(model, strategy, at);
    const LayerBytes& layer = known->second;
    all.kept += layer.kept;
    all.away += layer.away;
    most_away = std::max(most_away, layer.away);
    all.held += layer.held;
    if (layer.recomputed + layer.working > all.recomputed + all.working)
      all.recomputed = layer.recomputed, all.working = layer.working;
  }
  const workload::Sections sections = strategy.sections();
  if (sections.is_first(stage, chunk)) all.kept += ends.embedding;
  if (sections.is_last(stage, chunk)) all.kept += ends.head, all.held += ends.head_held;
  return all;
}

}  // namespace

std::int64_t Footprint::total() const {
  std::int64_t sum = 0;
  for (const FootprintPart& part : kParts) sum += this->*part.member;
  return sum;
}

std::span<const FootprintPart> footprint_parts() {
  return kParts;
}

std::int64_t activation_bytes_per_layer(const Model& model, const Strategy& strategy, LayerKind kind) {
  return layer_bytes(model, strategy, {kind, workload::keeping_of(strategy, 0, 0)}).kept.bytes;
}

std::int64_t layers_in_flight(const Model& model, const Strategy& strategy, const workload::Schedule& order,
                              std::int64_t stage) {
  std::int64_t alive = 0, most = 0;
  for (const workload::Slot& slot : order) {
    const auto layers = static_cast<std::int64_t>(workload::chunk_layers(model, strategy, stage, slot.chunk).size());
    if (slot.forward()) alive += layers;
    if (slot.ends_backward()) alive -= layers;
    most = std::max(most, alive);
  }
  return most;
}

Footprint held_at_rest(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of) {
  const ModelState state = model_state(model, strategy, of.stage);
  const LibraryBytes libraries = library_bytes(model, strategy, gpu);
  Footprint bytes;
  bytes.weights = state.weights;
  bytes.gradients = state.gradients;
  bytes.optimizer = state.optimizer;
  bytes.gathered = state.gathered;
  bytes.workspaces = libraries.workspaces;
  bytes.communicators = libraries.communicators;
  bytes.context = libraries.context;
  for (const std::int64_t part : {state.weights, state.gradients, state.optimizer, state.gathered})
    bytes.rounding += reserved_bytes(part) - part;
  return bytes;
}

namespace {

/// Calls `see` for every pass of the stage, with what the rank holds at most while it runs, and after it.
template <typename See>
void walk(const Model& model, const Strategy& strategy, const workload::Schedule& order, Footprint now, RankClass of,
          See&& see) {
  const std::int64_t stage = of.stage;
  const EndBytes ends = end_bytes(model, strategy);
  const workload::Sections sections = strategy.sections();
  std::map<LayerAt, LayerBytes> layers;
  std::vector<LayerBytes> chunks;
  std::int64_t most_away = 0;  // of a layer
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    chunks.push_back(chunk_bytes(model, strategy, ends, of, chunk, layers, most_away));
  // Of what goes to the host as much is here as HostTraffic lets be on its way.
  std::int64_t away = 0;
  const auto send = [&](std::int64_t bytes) {
    const std::int64_t here = workload::kLayersOnTheirWay * most_away;
    const std::int64_t before = std::min(away, here);
    away += bytes;
    now.activations += std::min(away, here) - before - bytes;
  };
  const auto add = [&](const Kept& kept) { now.activations += kept.bytes, now.rounding += kept.rounding; };
  const auto drop = [&](const Kept& kept) { now.activations -= kept.bytes, now.rounding -= kept.rounding; };

  for (const workload::Slot& slot : order) {
    const LayerBytes& chunk = chunks[static_cast<std::size_t>(slot.chunk)];
    if (slot.kind == workload::PassKind::weight_gradient) {
      const Footprint during = now;
      drop(chunk.held);
      see(slot, during, now);
      continue;
    }
    const bool head = sections.is_last(stage, slot.chunk);
    if (slot.forward()) {
      add(chunk.kept);
      send(chunk.away);
      if (head) now.logits += ends.logits_kept;
    }
    Footprint during = now;  // the loss's forward or backward pass
    if (head) during.logits += ends.logits_transient;
    if (slot.begins_backward()) {
      if (head) now.logits -= ends.logits_kept;  // gone before the last layer's backward begins
      Footprint backward = now;
      backward.recomputed = chunk.recomputed;
      backward.working = chunk.working;
      if (backward.total() > during.total()) during = backward;
      drop(chunk.kept);
      send(-chunk.away);
      if (!slot.ends_backward()) add(chunk.held);
      if (now.total() > during.total()) during = now;
    }
    see(slot, during, now);
  }
}

}  // namespace

std::vector<Held> held_by_passes(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of) {
  std::vector<Held> passes;
  const auto orders = workload::pipeline_orders(model, strategy, gpu);
  walk(model, strategy, orders[static_cast<std::size_t>(of.stage)], held_at_rest(model, strategy, gpu, of), of,
       [&](const workload::Slot& pass, const Footprint& during, const Footprint& after) {
         passes.push_back({pass, during, after});
       });
  return passes;
}

namespace {

Footprint footprint_of(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                       const workload::Schedule& order, RankClass of) {
  Footprint peak = held_at_rest(model, strategy, gpu, of);
  walk(model, strategy, order, peak, of, [&](const workload::Slot&, const Footprint& during, const Footprint&) {
    if (during.total() > peak.total()) peak = during;
  });
  return peak;
}

}  // namespace

Footprint footprint(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of) {
  const auto orders = workload::pipeline_orders(model, strategy, gpu);
  return footprint_of(model, strategy, gpu, orders[static_cast<std::size_t>(of.stage)], of);
}

Footprint peak(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  const auto orders = workload::pipeline_orders(model, strategy, gpu);
  Footprint most;
  for (const RankClass& of : workload::rank_classes(model, strategy)) {
    const Footprint other = footprint_of(model, strategy, gpu, orders[static_cast<std::size_t>(of.stage)], of);
    if (other.total() > most.total()) most = other;
  }
  return most;
}

}  // namespace manyworlds::core::memory
