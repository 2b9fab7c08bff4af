// GEMM time by tiles: each compute unit computes tiles of the result, in waves over all units. Its main loop, the loads
// of its operands and the traffic of the memory overlap; prologue and epilogue do not. K may be split over several
// thread blocks, whose partial results are added up (split-K). The library is assumed to choose its fastest tile. (The
// tiles are those of CUTLASS and cuBLAS; for waves see NVIDIA, Matrix Multiplication Background User's Guide.)
#pragma once

#include "core/compute/gpu.hpp"
#include "core/compute/kernel.hpp"

namespace manyworlds::core::compute {

/// burst: a kernel as benchmarks run it, so that only long ones reach the power limit; sustained: a kernel of a
/// training step, under the power limit all the time. The limit lowers the clock of the compute units: what a GEMM
/// waits for the memory is as long as without it.
enum class PowerState : std::uint8_t { burst, sustained };

/// Returns the GEMM's time in picoseconds, without launch time. All values of `gpu` that the model needs must be known.
double gemm_ps(const Kernel& kernel, const GemmRates& rates, const Gpu& gpu, PowerState power);

/// Returns the format of GEMMs with inputs of `dtype`.
constexpr GemmFormat gemm_format(Dtype dtype) {
  if (dtype == Dtype::fp8) return GemmFormat::fp8;
  return dtype == Dtype::fp4 ? GemmFormat::fp4 : GemmFormat::bf16;
}

/// Returns the rates of GEMMs with inputs of `dtype`.
const GemmRates& gemm_rates(Dtype dtype, const Gpu& gpu);

}  // namespace manyworlds::core::compute
