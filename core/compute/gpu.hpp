// An accelerator as the cost model and the memory check see it. Values that are not published are absent (0). There is
// one set of fitted values per type of GPU, never per model, paper or layout; the catalog states all sources.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/compute/precision.hpp"

namespace manyworlds::core::compute {

class MeasuredTimes;

/// pcie: a tree of PCIe switches under the host's root complex. nvlink_pairs: GPUs 2i and 2i + 1 share an NVLink
/// bridge, and all GPUs are on PCIe.
enum class ScaleUp : std::uint8_t { nvswitch, full_mesh, pcie, nvlink_pairs };

struct Gpu {
  double speed_factor = 1;   // speed of a slow GPU: all kernels run at this share of their rate; not an option
  double matrix_tflops = 0;  // dense 16-bit matrix peak, TFLOP/s
  double fp8_tflops = 0;     // dense 8-bit matrix peak, TFLOP/s; 0: twice matrix_tflops
  double fp4_tflops = 0;     // dense 4-bit matrix peak, TFLOP/s; 0: four times matrix_tflops
  std::uint32_t precisions = bit_of(Precision::bf16) | bit_of(Precision::fp16);  // supported formats, see bit_of()
  double memory_gib = 0;                                                         // usable device memory, GiB
  double gemm_workspace_mib = 8.125;  // workspace of the matrix library per thread that launches GEMMs, MiB
  double engine_workspace_mib = 4;    // workspace of Transformer Engine's GEMMs, MiB
  double communicator_mib = 256;      // buffers of the communication library per communicator, MiB
  double context_mib = 500;           // driver context: code and stacks, MiB
  double memory_gb_per_s = 0;         // peak memory bandwidth, GB/s
  std::int64_t compute_units = 0;  // units that work on tiles concurrently: streaming multiprocessors or compute units

  double gemm_efficiency = 0.8;           // share of the peak in the main loop of a large GEMM, power limits included
  double gemm_prologue_k = 380;           // cost of a tile besides its main loop, as additional K
  double fp8_gain = 1.87;                 // rate of the main loop in FP8, relative to BF16
  double fp4_gain = 1.95;                 // rate of the main loop in FP4, relative to FP8
  double memory_efficiency = 0.8;         // bytes of operators over peak bandwidth; cache hits may raise it above 1
  double flash_forward_efficiency = 0.5;  // share of the peak: first generation of fused attention kernels
  double flash_backward_efficiency = 0.2;
  double cudnn_forward_efficiency = 0.5;  // share of the peak: FlashAttention 2 and 3, cuDNN
  double cudnn_backward_efficiency = 0.3;
  double launch_us = 3;                 // GPU time per kernel besides its computation
  double host_kernel_us = 15;           // host time to launch a kernel
  double host_collective_us = 15;       // host time to launch a collective
  double communication_slowdown = 0.2;  // additional time of kernels beside collectives, as a share of their time

  double host_gb_per_s = 25;  // GPU to host memory or back, all GPUs at once, one direction, GB/s

  double scale_up_gb_per_s = 0;      // one direction, per GPU, GB/s
  double scale_up_latency_us = 0.5;  // latency of one link, microseconds
  ScaleUp scale_up = ScaleUp::nvswitch;
  std::int64_t scale_up_domain = 8;   // GPUs that the scale-up fabric connects
  std::int64_t pcie_switch_gpus = 4;  // GPUs per PCIe switch
  std::int64_t scale_up_planes = 1;   // scale-up switches, each with an equal share of every GPU's rate

  /// Measured times that replace those of the cost model, see compute/measured.hpp; null: none.
  std::shared_ptr<const MeasuredTimes> measured = nullptr;
};

/// Returns the option table; keys are the names of the members.
const OptionTable<Gpu>& gpu_options();

/// Returns the dense matrix peak in a format, TFLOP/s.
double peak_tflops(const Gpu& gpu, Precision precision);

}  // namespace manyworlds::core::compute
