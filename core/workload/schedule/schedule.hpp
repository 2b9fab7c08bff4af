// Pipeline schedules: in which order a pipeline rank runs the passes of its micro-batches through its model chunks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace manyworlds::core::workload {

/// A backward pass is whole, or in two (Qi et al. 2024, Zero Bubble Pipeline Parallelism, section 2): gradients of what
/// came in, which the rank before waits for, and gradients of weights, which nobody waits for.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// One pass of one micro-batch through one model chunk of a rank.
struct Slot {
  PassKind kind = PassKind::forward;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;    // of this rank
  bool beside_next = false;  // runs together with the pass after it, each while the other waits

  bool forward() const { return kind == PassKind::forward; }
  /// The first, or the last, that runs of a chunk's backward pass.
  bool begins_backward() const { return kind == PassKind::backward || kind == PassKind::input_gradient; }
  bool ends_backward() const { return kind == PassKind::backward || kind == PassKind::weight_gradient; }
  auto operator<=>(const Slot&) const = default;
};
using Schedule = std::vector<Slot>;

/// How a model's sections (consecutive layers, in forward order) lie on p ranks. loop: section i on rank i mod p.
/// vee: rank r has sections r and 2p - 1 - r. mirror: p sections, each twice: rank r has r and p - 1 - r, and half of
/// the micro-batches go through the ranks from the first, half from the last.
enum class Folding : std::uint8_t { loop, vee, mirror };

/// What the passes of a rank cost on the average.
struct PassCosts {
  Time forward_ps = 1, input_gradient_ps = 1, weight_gradient_ps = 1;  // of one micro-batch
  std::int64_t kept_bytes = 1;                                         // by a micro-batch from its forward pass on
  std::int64_t held_bytes = 1;  // of these until the gradients of weights are done
};

struct WrittenSchedule;

/// What decides on the order of passes.
struct Pipeline {
  std::int64_t ranks = 1;
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;                   // of each rank
  PassCosts costs = {};                      // of use to a schedule that asks_costs
  const WrittenSchedule* written = nullptr;  // of use to the schedule of that name
};

struct ScheduleType {
  std::string name, help;
  std::vector<Schedule> (*orders)(const Pipeline&);  // by rank
  Folding folding = Folding::loop;
  std::int64_t chunks = 1;  // that a rank has; kSeveral: 2 or more; kAsWritten: as its file says
  std::string (*fault)(const Pipeline&) = nullptr;  // why it cannot run there; empty if it can
  bool asks_costs = false;
  bool has_formula = false;  // its bubble is that of 1F1B, divided by the chunks of a rank
  /// What a forward pass and the backward pass behind it make is handed on together, where ranks wait for transfers.
  bool exchanges_pairs = false;
  static constexpr std::int64_t kSeveral = 0, kAsWritten = -1;
};

/// A place in schedules(). The first is the default.
enum class ScheduleKind : std::uint8_t {};

/// Every schedule there is, in the order of its listing.
const std::vector<ScheduleType>& schedules();
const ScheduleType& schedule_type(ScheduleKind kind);
/// Throws InternalError where there is none.
ScheduleKind schedule_named(std::string_view name);

/// Why `type` cannot run on that pipeline: chunks it does not have, or its own fault. Empty if it can.
std::string schedule_fault(const ScheduleType& type, const Pipeline& pipeline);

}  // namespace manyworlds::core::workload
