// Peak device memory of a rank and what it is made of: model state, what micro-batches in flight keep, and what the
// libraries take for themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/schedule/schedule.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::memory {

/// Bytes on one rank at the moment it needs most.
struct Footprint {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t gathered = 0;
  std::int64_t activations = 0;
  std::int64_t recomputed = 0;
  std::int64_t working = 0;
  std::int64_t logits = 0;
  std::int64_t workspaces = 0;
  std::int64_t rounding = 0;
  std::int64_t communicators = 0;
  std::int64_t context = 0;

  /// All that the device must hold.
  std::int64_t total() const;
  /// What the framework counts as allocated (torch.cuda.max_memory_allocated): without the last three.
  std::int64_t allocated() const { return total() - rounding - communicators - context; }
};

/// A part of a footprint, for tables that show them.
struct FootprintPart {
  const char *name, *description;
  std::int64_t Footprint::*member;
};
std::span<const FootprintPart> footprint_parts();

/// Bytes one layer keeps of one micro-batch for the backward pass.
std::int64_t activation_bytes_per_layer(const workload::Model& model, const workload::Strategy& strategy,
                                        workload::LayerKind kind = {});

/// Layers times micro-batches that a rank of `stage`, whose order of passes is `order`, keeps activations of when it
/// keeps most.
std::int64_t layers_in_flight(const workload::Model& model, const workload::Strategy& strategy,
                              const workload::Schedule& order, std::int64_t stage);

/// Peak of the ranks of a class.
Footprint footprint(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu,
                    workload::RankClass of);

/// What a rank holds while a pass runs, where it holds most, and when the pass is over.
struct Held {
  workload::Slot pass;
  Footprint during, after;
};

/// The passes of the ranks of a class in the order of their schedule. The largest `during` is footprint().
std::vector<Held> held_by_passes(const workload::Model& model, const workload::Strategy& strategy,
                                 const compute::Gpu& gpu, workload::RankClass of);
/// What one holds before the first of them.
Footprint held_at_rest(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu,
                       workload::RankClass of);

/// The largest footprint over all classes.
Footprint peak(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::memory
