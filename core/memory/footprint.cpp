// Memory of a rank: static memory, plus activations, which are tracked along the rank's pass order.
#include "core/memory/footprint.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "core/memory/activations.hpp"
#include "core/memory/allocator.hpp"
#include "core/memory/libraries.hpp"
#include "core/memory/model_state.hpp"
#include "core/memory/placeholders.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/build/host_traffic.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/strategy/rank_shapes.hpp"

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
    FootprintPart{"gathered", "weights and gradients that ZeRO 2 and 3 gather temporarily, and factors of replicas",
                  &Footprint::gathered},
    FootprintPart{"activations", "saved activations of the micro-batches in flight", &Footprint::activations},
    FootprintPart{"recomputed", "activations of the layer that is being recomputed", &Footprint::recomputed},
    FootprintPart{"working", "gradients of activations in the layer that is being computed", &Footprint::working},
    FootprintPart{"logits", "output of the vocabulary layer and its gradient", &Footprint::logits},
    FootprintPart{"workspaces", "buffers of matrix and attention libraries", &Footprint::workspaces},
    FootprintPart{"program", "what a given program allocates", &Footprint::program},
    FootprintPart{"rounding", "memory of allocator segments beyond their tensors", &Footprint::rounding},
    FootprintPart{"communicators", "buffers of the communication library", &Footprint::communicators},
    FootprintPart{"context", "context of the driver: code and stacks", &Footprint::context},
};

/// Returns the memory of a model chunk: what its layers, and the embedding or head next to them, save, and the working
/// memory of the layer that needs most. `layers` caches layers that were computed before; `max_offloaded` is raised to
/// the largest offload of a layer.
LayerBytes chunk_bytes(const Model& model, const Strategy& strategy, const EmbeddingHeadBytes& embedding_head,
                       RankClass rank_class, std::int64_t chunk, std::map<LayerKey, LayerBytes>& layers,
                       std::int64_t& max_offloaded) {
  const std::int64_t stage = rank_class.stage;
  const workload::StageMap stages = strategy.stages();
  const bool is_first = stages.is_first(stage, chunk);
  const std::int64_t forward_only = is_first ? workload::forward_only_layers(model, strategy) : 0;
  LayerBytes chunk_sum;
  std::int64_t layer_index = 0;
  for (const LayerKind kind : workload::chunk_layers(model, strategy, stage, chunk)) {
    const LayerKey key{kind, workload::activation_policy(strategy, stage, chunk, layer_index, kind),
                       rank_class.expert_rank, is_first && layer_index < forward_only};
    ++layer_index;
    const auto [entry, is_new] = layers.try_emplace(key);
    if (is_new) entry->second = layer_bytes(model, strategy, key);
    const LayerBytes& layer = entry->second;
    chunk_sum.saved += layer.saved;
    chunk_sum.cached += layer.cached;
    chunk_sum.offloaded += layer.offloaded;
    max_offloaded = std::max(max_offloaded, layer.offloaded);
    chunk_sum.weight_gradient_inputs += layer.weight_gradient_inputs;
    if (layer.recomputed + layer.working > chunk_sum.recomputed + chunk_sum.working)
      chunk_sum.recomputed = layer.recomputed, chunk_sum.working = layer.working;
  }
  if (is_first) chunk_sum.saved += embedding_head.embedding;
  if (stages.is_last(stage, chunk))
    chunk_sum.saved += embedding_head.head,
        chunk_sum.weight_gradient_inputs += embedding_head.head_weight_gradient_inputs;
  return chunk_sum;
}

/// Adds what the allocator holds between the tensors (Stack::fragmentation) to the rounding.
Footprint fragmented(Footprint bytes, const Strategy& strategy) {
  const std::int64_t tensors = bytes.total() - bytes.rounding - bytes.communicators - bytes.context;
  bytes.rounding += static_cast<std::int64_t>(strategy.stack.fragmentation * static_cast<double>(tensors));
  return bytes;
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
  return layer_bytes(model, strategy, {kind, workload::activation_policy(strategy, 0, 0, 0, kind)}).saved.bytes;
}

std::int64_t max_layers_in_flight(const Model& model, const Strategy& strategy, const workload::PassOrder& order,
                                  std::int64_t stage) {
  std::int64_t in_flight = 0, maximum = 0;
  for (const workload::PipelinePass& pass : order) {
    const auto layers = static_cast<std::int64_t>(workload::chunk_layers(model, strategy, stage, pass.chunk).size());
    if (pass.forward()) in_flight += layers;
    if (pass.ends_backward()) in_flight -= layers;
    maximum = std::max(maximum, in_flight);
  }
  return maximum;
}

Footprint static_footprint(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                           RankClass rank_class) {
  ModelState state = model_state(model, strategy, rank_class.stage);
  const workload::TableBytes tables = workload::table_bytes(model, strategy, rank_class);
  state.weights += tables.weights;
  if (!workload::is_inference(model)) state.optimizer += tables.optimizer;
  const LibraryBytes libraries = library_bytes(model, strategy, gpu);
  Footprint bytes;
  bytes.weights = state.weights;
  bytes.gradients = state.gradients;
  bytes.optimizer = state.optimizer;
  bytes.gathered = state.gathered;
  const TensorBytes placeholders = placeholder_gradients(model, strategy, rank_class.stage);
  bytes.workspaces = libraries.workspaces + placeholders.bytes;
  bytes.communicators = libraries.communicators;
  bytes.context = libraries.context;
  for (const std::int64_t part : {state.weights, state.gradients, state.optimizer, state.gathered})
    bytes.rounding += reserved_bytes(part) - part;
  bytes.rounding += placeholders.rounding;
  return bytes;
}

namespace {

/// Calls `visit` for every pass of the rank, in order, with the maximum footprint during the pass and the footprint
/// after it.
template <typename Visitor>
void simulate_passes(const Model& model, const Strategy& strategy, const workload::PassOrder& order, Footprint current,
                     RankClass rank_class, Visitor&& visit) {
  const std::int64_t stage = rank_class.stage;
  const EmbeddingHeadBytes embedding_head = embedding_head_bytes(model, strategy);
  const workload::StageMap stages = strategy.stages();
  std::map<LayerKey, LayerBytes> layers;
  std::vector<LayerBytes> chunks;
  std::int64_t max_offloaded = 0;  // largest offload of a layer
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    chunks.push_back(chunk_bytes(model, strategy, embedding_head, rank_class, chunk, layers, max_offloaded));
  // HostTraffic limits how many layers' offloaded activations are on the GPU at a time.
  std::int64_t offloaded = 0;
  const auto offload = [&](std::int64_t bytes) {
    const std::int64_t resident_limit = workload::kMaxOffloadingLayers * max_offloaded;
    const std::int64_t before = std::min(offloaded, resident_limit);
    offloaded += bytes;
    current.activations += std::min(offloaded, resident_limit) - before - bytes;
  };
  const auto add = [&](const TensorBytes& saved) {
    current.activations += saved.bytes, current.rounding += saved.rounding;
  };
  const auto release = [&](const TensorBytes& saved) {
    current.activations -= saved.bytes, current.rounding -= saved.rounding;
  };

  const bool has_backward = !workload::is_inference(model);
  for (const LayerBytes& chunk : chunks)  // the caches of all micro-batches
    current.activations += strategy.chunk_micro_batches() * chunk.cached.bytes,
        current.rounding += strategy.chunk_micro_batches() * chunk.cached.rounding;
  for (const workload::PipelinePass& pass : order) {
    const LayerBytes& chunk = chunks[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == workload::PassKind::weight_gradient) {
      const Footprint during = current;
      release(chunk.weight_gradient_inputs);
      visit(pass, during, current);
      continue;
    }
    const bool head = stages.is_last(stage, pass.chunk);
    if (pass.forward()) {
      add(chunk.saved);
      offload(chunk.offloaded);
      if (head) current.logits += embedding_head.saved_logits + embedding_head.mtp_logits;
    }
    Footprint during = current;  // maximum so far; first, the loss's forward or backward pass
    if (head && (pass.forward() || !embedding_head.in_chunks)) during.logits += embedding_head.transient_logits;
    const auto reach = [&during](Footprint other, std::int64_t working, std::int64_t recomputed = 0) {
      other.working = working, other.recomputed = recomputed;
      if (other.total() > during.total()) during = other;
    };
    if (!has_backward) reach(current, chunk.working);
    if (head && pass.forward() && embedding_head.in_chunks) {
      during.working = embedding_head.chunks_working;
      Footprint in_backward = current;
      in_backward.logits += embedding_head.logits_gradient;
      reach(in_backward, embedding_head.head_working);
      reach(current, embedding_head.cast_working);
    }
    if (pass.begins_backward()) {
      if (head && !embedding_head.in_chunks) {
        current.logits += embedding_head.logits_gradient - embedding_head.saved_logits;
        reach(current, embedding_head.head_working);
        // Freed before the last layer's backward pass begins.
        current.logits -= embedding_head.logits_gradient + embedding_head.mtp_logits;
      }
      reach(current, chunk.working, chunk.recomputed);
      release(chunk.saved);
      offload(-chunk.offloaded);
      if (!pass.ends_backward()) add(chunk.weight_gradient_inputs);
      reach(current, stages.is_first(stage, pass.chunk) ? embedding_head.embedding_working : 0);
    }
    visit(pass, during, current);
  }
}

}  // namespace

std::vector<PassFootprint> footprints_by_pass(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                              RankClass rank_class) {
  std::vector<PassFootprint> passes;
  const auto orders = workload::pipeline_orders(model, strategy, gpu);
  simulate_passes(model, strategy, orders[static_cast<std::size_t>(rank_class.stage)],
                  static_footprint(model, strategy, gpu, rank_class), rank_class,
                  [&](const workload::PipelinePass& pass, const Footprint& during, const Footprint& after) {
                    passes.push_back({pass, fragmented(during, strategy), fragmented(after, strategy)});
                  });
  return passes;
}

namespace {

Footprint footprint_of(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                       const workload::PassOrder& order, RankClass rank_class) {
  Footprint peak = static_footprint(model, strategy, gpu, rank_class);
  simulate_passes(model, strategy, order, peak, rank_class,
                  [&](const workload::PipelinePass&, const Footprint& during, const Footprint&) {
                    if (during.total() > peak.total()) peak = during;
                  });
  return fragmented(peak, strategy);
}

}  // namespace

Footprint footprint(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass rank_class) {
  const auto orders = workload::pipeline_orders(model, strategy, gpu);
  return footprint_of(model, strategy, gpu, orders[static_cast<std::size_t>(rank_class.stage)], rank_class);
}

namespace {

/// Returns whether some rank holds the activations of all its passes at once.
bool all_in_flight(const std::vector<workload::PassOrder>& orders) {
  return std::any_of(orders.begin(), orders.end(), [](const workload::PassOrder& order) {
    const auto backward =
        std::find_if(order.begin(), order.end(), [](const auto& pass) { return pass.begins_backward(); });
    return 2 * (backward - order.begin()) >= std::ssize(order);
  });
}

/// Returns orders of passes that reach every state of memory that a step reaches. 1F1B repeats itself with a period of
/// pp micro-batches once it has warmed up, which takes fewer than 2 pp, so that a step of kEnough pp has all of it.
std::vector<workload::PassOrder> orders_to_peak(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  constexpr std::int64_t kEnough = 4;
  const workload::ScheduleType& type = workload::schedule_type(strategy.schedule);
  workload::Pipeline fewer = strategy.pipeline();
  if (type.has_formula && fewer.micro_batches > kEnough * fewer.ranks) {
    fewer.micro_batches = kEnough * fewer.ranks;
    auto orders = workload::pass_orders(model, type, fewer);
    if (workload::is_inference(model) || !all_in_flight(orders)) return orders;
  }
  return workload::pipeline_orders(model, strategy, gpu);
}

}  // namespace

PipelineFootprints::PipelineFootprints(const Model& model, const Strategy& strategy, const compute::Gpu& gpu)
    : orders_(orders_to_peak(model, strategy, gpu)) {}

Footprint PipelineFootprints::of(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                 RankClass rank_class) const {
  return footprint_of(model, strategy, gpu, orders_[static_cast<std::size_t>(rank_class.stage)], rank_class);
}

Footprint peak(const Model& model, const Strategy& strategy, const compute::Gpu& gpu) {
  const PipelineFootprints footprints(model, strategy, gpu);
  Footprint maximum;
  for (const RankClass& rank_class : workload::rank_classes(model, strategy)) {
    const Footprint other = footprints.of(model, strategy, gpu, rank_class);
    if (other.total() > maximum.total()) maximum = other;
  }
  return maximum;
}

}  // namespace manyworlds::core::memory
