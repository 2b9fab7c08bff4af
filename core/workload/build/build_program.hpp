// From a model, a strategy and a GPU to the program of one training step for the ranks of a class.
//
// Compute waits for a tensor-parallel collective before it continues, except for the input that sequence parallelism
// gathers again, which overlaps with a GEMM. Receives are posted early, in the order in which the other rank sends: the
// n-th send of a rank matches the n-th receive of its neighbour, forward and backward, and in both directions of a
// V-shaped or bidirectional pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/program/program.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

/// Returns the pass orders of all pipeline ranks. Throws InternalError if the schedule cannot run on the pipeline.
std::vector<PassOrder> pipeline_orders(const Model& model, const Strategy& strategy, const compute::Gpu& gpu);
/// Returns the orders of a schedule on a pipeline that it can run on: of a model in whose steps nothing is trained, the
/// forward passes in that order.
std::vector<PassOrder> pass_orders(const Model& model, const ScheduleType& type, const Pipeline& pipeline);

/// Returns the program of every rank of the class; `orders` has the orders of all pipeline ranks. Runs in
/// O(operations).
Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                      const std::vector<PassOrder>& orders, RankClass rank_class);
Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass rank_class);

struct KernelUse {
  compute::Kernel kernel;
  Time cost_ps = 0;
  compute::CostLevel level = compute::CostLevel::model;  // what the cost is based on
  compute::TimeBasis basis = compute::TimeBasis::modelled;
  std::int64_t times = 0;  // executions in one step, on one rank
};

/// Returns the distinct kernels of that program and their costs, sorted. The sum of times x cost_ps is the total
/// duration of the program's compute operations, without waits for the host.
std::vector<KernelUse> kernels_used(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                    RankClass rank_class);

}  // namespace manyworlds::core::workload
