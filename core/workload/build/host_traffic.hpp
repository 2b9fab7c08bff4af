// Activations that are offloaded to the host's memory after a layer's forward pass and reloaded before its backward
// pass, each direction on a copy engine of its own (Megatron-Core's fine-grained activation offloading; PipeOffload,
// Wan et al. 2025, arXiv 2503.01328).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/build/program_builder.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

/// Maximum number of layers whose offloaded activations are on the GPU. In a forward pass: one that runs or has just
/// finished, one that is being offloaded, and one that stays because its backward pass is next. In a backward pass: one
/// in use, one that is needed next, and one that is being offloaded.
inline constexpr std::int64_t kMaxOffloadingLayers = 3;

class HostTraffic {
 public:
  /// `work`, `gpu` and `builder` must outlive the object. `order` is the rank's pass order.
  HostTraffic(const StageWork& work, const compute::Gpu& gpu, const PassOrder& order, ProgramBuilder& builder);

  /// Whether a pass has to be divided at the ends of its parts.
  bool splits(const PipelinePass& pass) const {
    return pass.kind != PassKind::weight_gradient && offloads_[static_cast<std::size_t>(pass.chunk)];
  }
  /// Called around each part of a pass; `part_index` counts in the pass's order. A forward part waits until at most one
  /// earlier part is still being offloaded; a backward part waits for its own reload and starts the next one.
  void before_part(const PipelinePass& pass, std::size_t part_index);
  void after_part(const PipelinePass& pass, std::size_t part_index);

 private:
  /// Micro-batch, chunk, and part index in forward order.
  using Key = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  Key key_of(const PipelinePass& pass, std::size_t part_index) const;
  Time copy_duration(const Key& key) const;
  void start_reload();

  const StageWork& work_;
  const std::int64_t bits_per_second_;
  ProgramBuilder& builder_;
  std::vector<bool> offloads_;                       // by chunk: whether any of its parts is offloaded
  std::vector<Key> reload_order_;                    // in the order of backward passes
  std::size_t used_count_ = 0, reloaded_count_ = 0;  // how many of these were used; how many are reloaded or stayed
  std::map<Key, std::uint32_t> offload_ops_, reload_ops_;
  ProgramBuilder::Waits latest_offloads_;  // the last two offloads
};

}  // namespace manyworlds::core::workload
