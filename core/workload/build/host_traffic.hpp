// Activations that go to the host's memory after a layer's forward pass and come back before its backward pass, each
// way on a copy engine of its own (Megatron-Core's fine-grained activation offloading; PipeOffload, Wan et al. 2025,
// arXiv 2503.01328).
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/build/issuer.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

/// Layers whose offloaded activations are on the GPU at most: of one that runs forward, or has just left, one that is
/// leaving, and one that is needed next. In a backward pass: one in use, one that is needed next, one leaving.
inline constexpr std::int64_t kLayersOnTheirWay = 3;

class HostTraffic {
 public:
  /// `work`, `gpu` and `issuer` outlive it. `order` is that of the rank's passes.
  HostTraffic(const StageWork& work, const compute::Gpu& gpu, const Schedule& order, Issuer& issuer);

  /// Whether a pass has to stop after each of its parts.
  bool splits(const Slot& slot) const {
    return slot.kind != PassKind::weight_gradient && sends_[static_cast<std::size_t>(slot.chunk)];
  }
  /// Around part `place` of a pass, counted in the pass's order. A forward part waits until of those before it no more
  /// than one is leaving; a backward part waits for what it needs, and has the one that is needed next called back.
  void before_part(const Slot& slot, std::size_t place);
  void after_part(const Slot& slot, std::size_t place);

 private:
  /// Micro-batch, chunk, and place in forward order.
  using Key = std::tuple<std::int32_t, std::int32_t, std::size_t>;
  Key key_of(const Slot& slot, std::size_t place) const;
  Time lasts(const Key& key) const;
  void call_back();

  const StageWork& work_;
  const std::int64_t bits_per_second_;
  Issuer& issuer_;
  std::vector<bool> sends_;            // of each chunk: whether some of its parts do
  std::vector<Key> needed_;            // in the order of backward passes
  std::size_t used_ = 0, called_ = 0;  // of these
  std::map<Key, std::uint32_t> sent_, returned_;
  Issuer::Waits leaving_;  // the last two
};

}  // namespace manyworlds::core::workload
