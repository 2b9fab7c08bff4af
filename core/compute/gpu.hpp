// An accelerator as the cost model and the memory check see it. Values that are not published are absent (0). There is
// one set of fitted values per type of GPU, never per model, paper or layout; the catalog states all sources.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "core/base/units.hpp"
#include "core/compute/precision.hpp"

namespace manyworlds::core::compute {

class MeasuredTimes;
struct MeasuredShapes;

/// pcie: a tree of PCIe switches under the host's root complex. nvlink_pairs: GPUs 2i and 2i + 1 share an NVLink
/// bridge, and all GPUs are on PCIe.
enum class ScaleUp : std::uint8_t { nvswitch, full_mesh, pcie, nvlink_pairs };

/// Number formats of GEMMs that have rates of their own.
enum class GemmFormat : std::uint8_t { bf16, fp8, fp4 };
inline constexpr std::size_t kGemmFormats = 3;

/// A tile of a GEMM's result, which one compute unit (256 x 256: a pair of them) computes.
struct GemmTile {
  std::int64_t m, n;
};
/// Returns all tiles that libraries are known to use; bit i of GemmRates::tiles is the i-th.
const std::vector<GemmTile>& gemm_tiles();
/// Returns their names: "256x128".
const std::vector<std::string>& gemm_tile_names();

/// What a library's GEMM kernels of one number format reach on a GPU.
struct GemmRates {
  double efficiency = 0.85;           // share of the peak in the main loop at boost clock
  double prologue_k = 110;            // start of a tile's pipeline, as additional K
  double epilogue_clocks = 475;       // clocks of a compute unit to write 32,768 elements of a tile
  double load_bytes_per_clock = 100;  // bytes of operands that reach a compute unit per clock
  double memory_efficiency = 0.82;    // share of the peak memory bandwidth
  double wave_loss = 0.22;            // share of the idle units of the last wave that is lost; 1: waves are whole
  double throttle = 0.15;             // additional time of long kernels under the power limit, as a share
  double throttle_ms = 3.4;           // duration at which half of it shows
  std::uint32_t tiles = 0b1111'1110;  // see gemm_tiles()
  std::int64_t max_split = 16;        // thread blocks that may share the K of one tile
};

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
  double clock_ghz = 1.7;             // clock of the matrix units that belongs to matrix_tflops, GHz
  double exp_per_clock = 16;          // exponentials per clock and compute unit
  std::int64_t compute_units = 0;  // units that work on tiles concurrently: streaming multiprocessors or compute units

  std::array<GemmRates, kGemmFormats> gemm;  // by GemmFormat
  double sustained_rate = 0.9;  // rate of matrix units in long training under the power limit, relative to short bursts
  double memory_efficiency = 0.85;  // share of the peak bandwidth that kernels reach which only move bytes
  // Shares of the matrix peak inside a tile of fused attention: its first generation, FlashAttention 2, and those that
  // are written for the GPU (cuDNN, FlashAttention 3).
  double flash_forward_efficiency = 0.3, flash_backward_efficiency = 0.2;
  double flash2_forward_efficiency = 0.4, flash2_backward_efficiency = 0.32;
  double cudnn_forward_efficiency = 0.65, cudnn_backward_efficiency = 0.54;
  // Shares of the matrix peak in kernels of scans by chunks: Mamba-2's and the gated delta rule's.
  double state_space_efficiency = 0.096, delta_rule_efficiency = 0.119;
  double attention_vector_ops = 4;       // vector instructions of attention per query and key, besides the exponential
  std::int64_t attention_tile_kib = 32;  // memory of a tile of keys or values, KiB
  double launch_us = 3;                  // GPU time per kernel besides its computation
  double communication_slowdown = 0.2;   // additional time of kernels beside collectives, as a share of their time

  double host_gb_per_s = 25;  // GPU to host memory or back, all GPUs at once, one direction, GB/s

  double scale_up_gb_per_s = 0;      // one direction, per GPU, GB/s
  double scale_up_latency_us = 0.5;  // latency of one link, microseconds
  ScaleUp scale_up = ScaleUp::nvswitch;
  std::int64_t scale_up_domain = 8;   // GPUs that the scale-up fabric connects
  std::int64_t pcie_switch_gpus = 4;  // GPUs per PCIe switch
  std::int64_t scale_up_planes = 1;   // scale-up switches, each with an equal share of every GPU's rate

  /// Measured GEMMs, which correct the model, see compute/gemm_shapes.hpp; null: none. Their name and, if they are
  /// given, their digest: it identifies them wherever all options are compared or are part of a key.
  std::shared_ptr<const MeasuredShapes> shapes = nullptr;
  std::string measured_shapes = "none";

  /// Measured times that replace those of the cost model, see compute/measured.hpp; null: none.
  std::shared_ptr<const MeasuredTimes> measured = nullptr;
};

/// Returns the option table; keys are the names of the members, those of GEMM rates with their format before them.
const OptionTable<Gpu>& gpu_options();
/// Returns the option table of the rates of one format.
const OptionTable<GemmRates>& gemm_rate_options();

/// Returns the dense matrix peak in a format, TFLOP/s.
double peak_tflops(const Gpu& gpu, Precision precision);

}  // namespace manyworlds::core::compute
