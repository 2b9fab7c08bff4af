// From a model, a strategy and a GPU to the program of one training step on the ranks of a class.
//
// Compute waits for a tensor-parallel collective before it goes on (but for the input gathered again under sequence
// parallelism, which hides behind a GEMM). Receives are posted early and in order: the n-th send_forward of a rank
// meets the n-th recv_forward of the next rank of the ring, likewise backward.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"
#include "core/compute/measured.hpp"
#include "core/workload/model.hpp"
#include "core/workload/program.hpp"
#include "core/workload/rank_class.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::workload {

/// The program of every rank of the class. Time is O(operations).
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
