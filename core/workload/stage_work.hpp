// What one pipeline rank runs: its model chunks as parts (embedding, layers, head) and each part's forward and
// backward pass with the recomputation that the strategy asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/model.hpp"
#include "core/workload/operators.hpp"
#include "core/workload/program.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::workload {

/// Work that is booked under one heading.
struct Phase {
  Booking booking = Booking::forward;
  Tape tape;
};
using Pass = std::vector<Phase>;

Pass forward_pass(const std::vector<Operator>& operators);

/// Operators in reverse. Selective recompute runs the attention core's forward again just before its backward; full
/// recompute runs the whole forward, collectives included, before the first operator's backward.
Pass backward_pass(const std::vector<Operator>& operators, Recompute recompute);

enum class Part : std::uint8_t { embedding, layer, head };

struct PartWork {
  Pass forward, backward;
  std::int64_t parameters = 0;
};

struct StageWork {
  PartWork embedding, layer, head;
  std::vector<std::vector<Part>> chunks;  // of this rank, each in forward order
  bool cuda_graphs = false;               // see Stack
  /// fp32 gradients that tensor ranks add up under sequence parallelism, since each saw a share of the tokens.
  std::int64_t replicated_parameters = 0;

  const PartWork& of(Part part) const {
    return part == Part::embedding ? embedding : part == Part::layer ? layer : head;
  }
};

StageWork stage_work(const Model& model, const Strategy& strategy, std::int64_t stage);

/// The step's end on a rank of `parameters`: gradient norm and mixed-precision Adam over its share (all of it, or one
/// dp-th under ZeRO 1), and zeroing the gradients.
std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, std::int64_t parameters);

}  // namespace manyworlds::core::workload
