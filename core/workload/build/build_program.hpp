// From a model, a strategy and a GPU to the program of one training step on the ranks of a class.
//
// Compute waits for a tensor-parallel collective before it goes on (but for the input gathered again under sequence
// parallelism, which hides behind a GEMM). Receives are posted early, in the order in which the other rank sends: the
// n-th send of a rank meets the n-th receive of its neighbour, forward and backward, and both ways where a pipeline is
// folded.
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

/// The order of passes of every pipeline rank.
std::vector<Schedule> pipeline_orders(const Model& model, const Strategy& strategy, const compute::Gpu& gpu);

/// The program of every rank of the class; `orders` are those of all pipeline ranks. Time is O(operations).
Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                      const std::vector<Schedule>& orders, RankClass of);
Program build_program(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of);

struct KernelUse {
  compute::Kernel kernel;
  Time cost_ps = 0;
  compute::Level level = compute::Level::model;  // what says so
  std::int64_t times = 0;                        // in one step, on one rank
};

/// The distinct kernels of that program and what they cost there, sorted; their times x cost_ps add up to the program's
/// compute operations.
std::vector<KernelUse> kernels_used(const Model& model, const Strategy& strategy, const compute::Gpu& gpu,
                                    RankClass of);

}  // namespace manyworlds::core::workload
