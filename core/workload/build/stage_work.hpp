// What the ranks of a class run: their model chunks as parts (embedding, layers, head) and each part's forward and
// backward pass with the recomputation that the strategy asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/prices.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/program/program.hpp"
#include "core/workload/strategy/parameters.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Work that is booked under one heading.
struct Phase {
  Booking booking = Booking::forward;
  Tape tape;
};
using Pass = std::vector<Phase>;

Pass forward_pass(const std::vector<Operator>& operators);

/// Operators in reverse. What runs again, collectives included, does so just before what needs it.
Pass backward_pass(const std::vector<Operator>& operators);

struct PartWork {
  Pass forward, backward;
  Pass input_gradient, weight_gradient;  // the same work in two passes
  Parameters parameters;
  std::int64_t kept_bytes = 0;  // of a micro-batch, for its backward pass
  std::int64_t away_bytes = 0;  // of these in the host's memory meanwhile
  std::int64_t held_bytes = 0;  // for gradients of weights: what went in, and gradients of what came out

  const Pass& pass(PassKind kind) const {
    const Pass* const all[] = {&forward, &backward, &input_gradient, &weight_gradient};
    return *all[static_cast<std::size_t>(kind)];
  }
};

/// An embedding, a layer or a head: its number in StageWork::parts.
using Part = std::size_t;

struct StageWork {
  std::vector<PartWork> parts;            // distinct ones
  std::vector<std::vector<Part>> chunks;  // of this rank, each in forward order
  std::vector<std::size_t> in_order;      // the chunks, in the order of the model
  CudaGraphs cuda_graphs = CudaGraphs::none;
  bool has_both_ends = false;  // embedding and head are on this rank
  /// Gradients that tensor ranks add up under sequence parallelism, since each saw a share of the tokens.
  std::int64_t replicated_parameters = 0;

  const PartWork& of(Part part) const { return parts[part]; }
  /// Whether the host launches it, and not a graph.
  bool by_host(const Work& work) const {
    return cuda_graphs == CudaGraphs::none || (cuda_graphs == CudaGraphs::but_experts && work.of_experts);
  }
};

/// Every kernel has its price; `prices`, where given, gathers what they rest on.
StageWork stage_work(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of,
                     Prices* prices = nullptr);

/// The step's end on a rank: gradient norm and mixed-precision Adam over its share of `parameters` (from ZeRO 1 on one
/// of each that shares out), and zeroing the gradients (from ZeRO 2 on of that share).
std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, const Parameters& parameters);

}  // namespace manyworlds::core::workload
