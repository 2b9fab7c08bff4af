// GEMM time by tiles: each thread block computes a tile of the result; as many blocks as there are compute units run
// concurrently, in waves of equal length. K may be split over several blocks, whose partial results are added up
// (split-K). The library is assumed to choose its fastest tile. (The tiles are those of CUTLASS and cuBLAS; for waves
// see NVIDIA, Matrix Multiplication Background User's Guide.)
#pragma once

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// Returns the GEMM's time in picoseconds, without launch time. `ps_per_byte` is the inverse of the achieved memory
/// bandwidth. All values of `gpu` that the model needs must be known.
double gemm_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte);

}  // namespace manyworlds::core::compute
