// A described GPU as the cost model of kernels sees it: what it has by its units, and for the rest the efficiencies of
// a measured GPU.
#pragma once

#include "core/base/options.hpp"
#include "core/compute/gpu.hpp"
#include "experiments/silicon/chip.hpp"
#include "experiments/silicon/cost.hpp"

namespace manyworlds::experiments::silicon {

/// Returns the options of core::compute::gpu_options() and of experiments::power_options() that follow from `chip`; all
/// others are those of `measured`, the GPU of the catalog that `known` describes in units.
/// - Peaks, memory and the number of SMs are the chip's; 8- and 4-bit peaks keep their ratio to 16 bits.
/// - Operands reach an SM at a rate that goes with the L2 per SM, whose slices have a fixed bandwidth (A100's white
///   paper), up to the 64 bytes per clock of an SM's port, or what `measured` has.
/// - The start of a tile takes the same clocks, thus K in proportion to the FLOPs of an SM and clock.
/// - Tiles are those of `measured` for which the SM has memory: fp32 sums in half of its registers, and three stages of
///   64 elements of K in its SRAM, as in CUTLASS' kernels for GA100.
/// - GEMMs are modelled, without the corrections of measured shapes, which belong to a number of SMs.
core::OptionSet chip_gpu(const Chip& chip, const Power& power, const core::compute::Gpu& measured, const Chip& known);

/// Returns what chip_gpu() does as sentences for the answer; `gpu` is the name of the measured GPU.
std::string chip_gpu_assumptions(const std::string& gpu);

}  // namespace manyworlds::experiments::silicon
