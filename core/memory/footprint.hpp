// Peak device memory of a rank and its parts: model state, activations of the micro-batches in flight, and the memory
// of libraries.
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

/// Bytes on one rank at the time of its peak.
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
  std::int64_t program = 0;
  std::int64_t rounding = 0;
  std::int64_t communicators = 0;
  std::int64_t context = 0;

  /// Returns the sum of all parts: the memory that the device must have.
  std::int64_t total() const;
  /// Returns what the framework counts as allocated (torch.cuda.max_memory_allocated): all but the last three parts.
  std::int64_t allocated() const { return total() - rounding - communicators - context; }
  /// What the framework's allocator takes, but for fragmentation: max_memory_reserved().
  std::int64_t reserved() const { return allocated() + rounding; }
};

/// One part of a footprint, with the name and description that tables show.
struct FootprintPart {
  const char *name, *description;
  std::int64_t Footprint::*member;
};
/// Returns all parts, in the order of Footprint's members.
std::span<const FootprintPart> footprint_parts();

/// Returns the bytes that one layer saves of one micro-batch for the backward pass.
std::int64_t activation_bytes_per_layer(const workload::Model& model, const workload::Strategy& strategy,
                                        workload::LayerKind kind = {});

/// Returns the maximum, over time, of layers times micro-batches whose activations a rank of `stage` with pass order
/// `order` holds.
std::int64_t max_layers_in_flight(const workload::Model& model, const workload::Strategy& strategy,
                                  const workload::PassOrder& order, std::int64_t stage);

/// Returns the peak footprint of the ranks of a class.
Footprint footprint(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu,
                    workload::RankClass rank_class);

/// Memory of a rank around one pass: the maximum while the pass runs, and the footprint after it.
struct PassFootprint {
  workload::PipelinePass pass;
  Footprint during, after;
};

/// Returns the footprints around all passes of the ranks of a class, in pass order. The largest `during` is
/// footprint().
std::vector<PassFootprint> footprints_by_pass(const workload::Model& model, const workload::Strategy& strategy,
                                              const compute::Gpu& gpu, workload::RankClass rank_class);
/// Returns the footprint before the first pass: model state and libraries, without activations.
Footprint static_footprint(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu,
                           workload::RankClass rank_class);

/// Peak footprints of the ranks of pipelines that differ in the layers of their stages, and in what is recomputed of
/// these, alone: their order of passes is one.
class PipelineFootprints {
 public:
  PipelineFootprints(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu);

  /// Returns the peak of the ranks of a class. `strategy` differs from the constructor's in what is said above.
  Footprint of(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu,
               workload::RankClass rank_class) const;

 private:
  std::vector<workload::PassOrder> orders_;
};

/// Returns the largest footprint over all rank classes.
Footprint peak(const workload::Model& model, const workload::Strategy& strategy, const compute::Gpu& gpu);

}  // namespace manyworlds::core::memory
