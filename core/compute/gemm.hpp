// Time of a GEMM from its tiles: thread blocks compute tiles of the result, as many side by side as there are compute
// units, in waves of equal length; K may be split over blocks that add up their parts. A library takes the fastest of
// its tiles. (The tiles of CUTLASS and cuBLAS; waves as in NVIDIA, Matrix Multiplication Background User's Guide.)
#pragma once

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// Picoseconds, without the launch; the figures of `gpu` that it takes must be there.
double gemm_ps(const Kernel& kernel, const Gpu& gpu, double ps_per_byte);

}  // namespace manyworlds::core::compute
