// An accelerator as the cost model and the memory check see it. Figures that nobody publishes are absent (0).
// Those called fitted are one set per type of GPU, never per model, paper or layout; the catalog has their sources.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/compute/precision.hpp"

namespace manyworlds::core::compute {

class MeasuredTimes;

/// pcie: a tree of PCIe switches under the host's root. nvlink_pairs: GPUs 2i and 2i + 1 are bridged, and all on PCIe.
enum class ScaleUp : std::uint8_t { nvswitch, full_mesh, pcie, nvlink_pairs };

struct Gpu {
  double pace = 1;           // of one that is slow: its kernels run at this share of their rate; no option
  double matrix_tflops = 0;  // dense 16-bit matrix peak, TFLOP/s
  double fp8_tflops = 0;     // dense 8-bit matrix peak; 0: twice matrix_tflops
  double fp4_tflops = 0;     // dense 4-bit matrix peak; 0: four times matrix_tflops
  std::uint32_t precisions = bit_of(Precision::bf16) | bit_of(Precision::fp16);  // its matrix units have, by bit_of()
  double memory_gib = 0;                                                         // usable device memory, GiB
  double gemm_workspace_mib = 8.125;  // of the matrix library, for each thread that launches GEMMs, MiB
  double engine_workspace_mib = 4;    // of Transformer Engine's GEMMs, MiB
  double communicator_mib = 256;      // of the communication library, for each group of ranks, MiB
  double context_mib = 500;           // of the driver: code, stacks, MiB
  double memory_gb_per_s = 0;         // peak memory bandwidth, GB/s
  std::int64_t compute_units = 0;     // that work on tiles side by side: streaming multiprocessors, compute units

  double gemm_efficiency = 0.8;  // share of the peak in the main loop of a large GEMM, power limits included
  double gemm_prologue_k = 380;  // what a tile costs beside its main loop, in units of K
  double fp8_gain = 1.87;        // rate of the main loop in FP8 over that in BF16
  double fp4_gain = 1.95;        // in FP4 over FP8
  double memory_efficiency =
      0.8;  // bytes of the operators' lists over peak bandwidth; hits in caches may bring it over 1
  double flash_forward_efficiency = 0.5;  // share of the peak of the first fused attention kernels
  double flash_backward_efficiency = 0.2;
  double cudnn_forward_efficiency = 0.5;  // and of those of FlashAttention 2 and 3 and cuDNN
  double cudnn_backward_efficiency = 0.3;
  double launch_us = 3;                 // GPU time per kernel
  double host_kernel_us = 15;           // host time to launch a kernel
  double host_collective_us = 15;       // and a collective
  double communication_slowdown = 0.2;  // how much longer kernels take beside collectives, a share of their time

  double host_gb_per_s = 25;  // to the host's memory or from it, all GPUs at once, one direction, GB/s

  double scale_up_gb_per_s = 0;      // one direction, per GPU, GB/s
  double scale_up_latency_us = 0.5;  // one link, microseconds
  ScaleUp scale_up = ScaleUp::nvswitch;
  std::int64_t scale_up_domain = 8;   // GPUs that the scale-up fabric joins
  std::int64_t pcie_switch_gpus = 4;  // GPUs on one PCIe switch
  std::int64_t scale_up_planes = 1;   // switches of the domain, each with an equal share of every GPU's rate

  /// Times that stand in the place of the cost model's, see compute/measured.hpp; null: none.
  std::shared_ptr<const MeasuredTimes> measured = nullptr;
};

const OptionTable<Gpu>& gpu_options();

/// Dense matrix peak in a format, TFLOP/s.
double peak_tflops(const Gpu& gpu, Precision precision);

}  // namespace manyworlds::core::compute
