// The option table of an accelerator. A value whose default (0) lies outside its range is unknown until it is given.
#include "core/compute/gpu.hpp"

#include <fmt/format.h>

namespace manyworlds::core::compute {

namespace {

constexpr std::array<const char*, kGemmFormats> kFormatNames{"", "fp8_", "fp4_"};
constexpr std::array<const char*, kGemmFormats> kFormatTexts{"GEMMs", "GEMMs in FP8", "GEMMs in FP4"};

/// Makes a row for a member of GemmRates into one for that member of a GPU's rates in `format`.
OptionTable<Gpu>::Row of_format(OptionTable<GemmRates>::Row row, std::size_t format) {
  row.info.name = kFormatNames.at(format) + row.info.name;
  row.info.help = fmt::format("{}: {}", kFormatTexts.at(format), row.info.help);
  return {row.info, [row, format](Gpu& gpu, const OptionValue& value) { row.set(gpu.gemm.at(format), value); },
          [row, format](const Gpu& gpu) { return row.get(gpu.gemm.at(format)); }};
}

const OptionTable<Gpu>& machine_options() {
  static const OptionTable<Gpu> table{
      option("matrix_tflops", &Gpu::matrix_tflops, "dense 16-bit matrix peak", {0.001, 1e6}, "TFLOP/s"),
      option("fp8_tflops", &Gpu::fp8_tflops, "dense 8-bit matrix peak; 0: twice matrix_tflops", {0, 1e6}, "TFLOP/s"),
      option("fp4_tflops", &Gpu::fp4_tflops, "dense 4-bit matrix peak; 0: four times matrix_tflops", {0, 1e6},
             "TFLOP/s"),
      flag_list("precisions", &Gpu::precisions, precision_names(), "number formats that the matrix units support"),
      option("memory_gib", &Gpu::memory_gib, "usable device memory", {0.001, 1e6}, "GiB"),
      option("gemm_workspace_mib", &Gpu::gemm_workspace_mib,
             "workspace of the matrix library for each thread that launches GEMMs", {0, 1e6}, "MiB"),
      option("engine_workspace_mib", &Gpu::engine_workspace_mib, "workspace of Transformer Engine's GEMMs", {0, 1e6},
             "MiB"),
      option("communicator_mib", &Gpu::communicator_mib, "buffers of the communication library per communicator",
             {0, 1e6}, "MiB"),
      option("context_mib", &Gpu::context_mib, "context of the driver: code and stacks", {0, 1e6}, "MiB"),
      option("memory_gb_per_s", &Gpu::memory_gb_per_s, "peak memory bandwidth", {0.001, 1e7}, "GB/s"),
      option("compute_units", &Gpu::compute_units, "streaming multiprocessors or compute units", {1, 100'000}, "units"),
      option("clock_ghz", &Gpu::clock_ghz,
             "clock of the matrix units that belongs to matrix_tflops; the default is a general value", {0.001, 100},
             "GHz"),
      option("exp_per_clock", &Gpu::exp_per_clock, "exponentials per clock and compute unit", {0.1, 4'096}, "1/clock"),
      option("sustained_rate", &Gpu::sustained_rate,
             "rate of the matrix units in training under the power limit, relative to short bursts", {0.001, 1},
             "share"),
      option("memory_efficiency", &Gpu::memory_efficiency,
             "share of the peak bandwidth that kernels reach which only move bytes", {0.001, 1}, "share"),
      option("flash_forward_efficiency", &Gpu::flash_forward_efficiency,
             "share of the peak inside a tile of first-generation fused attention (FlashAttention 1, Triton), forward",
             {0.001, 1}, "share"),
      option("flash_backward_efficiency", &Gpu::flash_backward_efficiency,
             "share of the peak inside a tile of first-generation fused attention, backward", {0.001, 1}, "share"),
      option("flash2_forward_efficiency", &Gpu::flash2_forward_efficiency,
             "share of the peak inside a tile of FlashAttention 2, forward", {0.001, 1}, "share"),
      option("flash2_backward_efficiency", &Gpu::flash2_backward_efficiency,
             "share of the peak inside a tile of FlashAttention 2, backward", {0.001, 1}, "share"),
      option(
          "cudnn_forward_efficiency", &Gpu::cudnn_forward_efficiency,
          "share of the peak inside a tile of fused attention written for the GPU (cuDNN, FlashAttention 3), forward",
          {0.001, 1}, "share"),
      option("cudnn_backward_efficiency", &Gpu::cudnn_backward_efficiency,
             "share of the peak inside a tile of fused attention written for the GPU, backward", {0.001, 1}, "share"),
      option("state_space_efficiency", &Gpu::state_space_efficiency,
             "share of the peak in the kernels of Mamba-2's scan", {0.001, 1}, "share"),
      option("delta_rule_efficiency", &Gpu::delta_rule_efficiency,
             "share of the peak in the kernels of the gated delta rule", {0.001, 1}, "share"),
      option("attention_vector_ops", &Gpu::attention_vector_ops,
             "vector instructions of fused attention per query and key, besides the exponential", {0, 1'000},
             "instructions"),
      option("attention_tile_kib", &Gpu::attention_tile_kib, "memory of a tile of keys or values in fused attention",
             {1, 1'024}, "KiB"),
      option("measured_shapes", &Gpu::measured_shapes,
             "table of measured shapes of GEMMs that corrects the model of GEMMs; none: the model alone"),
      option("launch_us", &Gpu::launch_us, "GPU time per kernel besides its computation", {0, 1e6}, "us"),
      option("communication_slowdown", &Gpu::communication_slowdown,
             "additional time of kernels while a collective runs on their GPU, as a share of their time", {0, 10},
             "share"),
      option("host_gb_per_s", &Gpu::host_gb_per_s,
             "rate at which a copy engine moves activations to the host's memory or back, all GPUs at once, one "
             "direction",
             {0.001, 1e6}, "GB/s"),
      option("scale_up_gb_per_s", &Gpu::scale_up_gb_per_s, "scale-up bandwidth of one GPU, one direction", {0.001, 1e6},
             "GB/s"),
      option("scale_up_latency_us", &Gpu::scale_up_latency_us, "latency of one scale-up link", {0.000001, 1e6}, "us"),
      choice("scale_up", &Gpu::scale_up, {"nvswitch", "full_mesh", "pcie", "nvlink_pairs"},
             "shape of the scale-up fabric; pcie: a tree of PCIe switches at scale_up_gb_per_s; nvlink_pairs: bridges "
             "of two GPUs at that rate, and a tree of PCIe switches at host_gb_per_s"),
      option("pcie_switch_gpus", &Gpu::pcie_switch_gpus,
             "GPUs per PCIe switch; they share its one link to the root complex", {1, 576}, "GPUs"),
      option("scale_up_planes", &Gpu::scale_up_planes,
             "scale-up switches that share a GPU's rate; 1: all switches are modelled as one", {1, 64}, "switches"),
      option("scale_up_domain", &Gpu::scale_up_domain, "GPUs that the scale-up fabric connects", {1, 1'024}, "GPUs"),
  };
  return table;
}

}  // namespace

const std::vector<GemmTile>& gemm_tiles() {
  static const std::vector<GemmTile> tiles{{256, 256}, {256, 128}, {128, 256}, {128, 192}, {128, 128}, {128, 64},
                                           {64, 128},  {64, 64},   {64, 32},   {64, 256},  {32, 128},  {16, 128}};
  return tiles;
}

const std::vector<std::string>& gemm_tile_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const GemmTile& tile : gemm_tiles()) all.push_back(fmt::format("{}x{}", tile.m, tile.n));
    return all;
  }();
  return names;
}

const OptionTable<GemmRates>& gemm_rate_options() {
  static const OptionTable<GemmRates> table{
      option("gemm_efficiency", &GemmRates::efficiency, "share of the peak in the main loop, at boost clock",
             {0.001, 1}, "share"),
      option("gemm_prologue_k", &GemmRates::prologue_k, "start of a tile's pipeline, as additional K", {0, 100'000},
             "K"),
      option("gemm_epilogue_clocks", &GemmRates::epilogue_clocks,
             "clocks of a compute unit to write 32,768 elements of a tile", {0, 1e6}, "clocks"),
      option("gemm_load_bytes_per_clock", &GemmRates::load_bytes_per_clock,
             "bytes of operands that reach a compute unit per clock", {0.1, 4'096}, "B/clock"),
      option("gemm_memory_efficiency", &GemmRates::memory_efficiency, "share of the peak memory bandwidth", {0.001, 1},
             "share"),
      option("gemm_wave_loss", &GemmRates::wave_loss,
             "share of the idle units of the last wave that is lost; 1: waves are whole", {0, 1}, "share"),
      option("gemm_throttle", &GemmRates::throttle,
             "additional time of long kernels under the power limit, as a share of their time", {0, 10}, "share"),
      option("gemm_throttle_ms", &GemmRates::throttle_ms, "duration at which half of it shows", {0.001, 1e6}, "ms"),
      flag_list("gemm_tiles", &GemmRates::tiles, gemm_tile_names(), "tiles of the result that the library uses"),
      option("gemm_max_split", &GemmRates::max_split, "thread blocks that may share the K of one tile", {1, 16},
             "blocks")};
  return table;
}

const OptionTable<Gpu>& gpu_options() {
  static const OptionTable<Gpu> table = [] {
    OptionTable<Gpu> all = machine_options();
    for (std::size_t format = 0; format < kGemmFormats; ++format)
      for (const auto& row : gemm_rate_options().rows()) all.add(of_format(row, format));
    return all;
  }();
  return table;
}

double peak_tflops(const Gpu& gpu, Precision precision) {
  if (precision == Precision::fp8 || precision == Precision::mxfp8)
    return gpu.fp8_tflops > 0 ? gpu.fp8_tflops : 2 * gpu.matrix_tflops;
  if (precision == Precision::nvfp4) return gpu.fp4_tflops > 0 ? gpu.fp4_tflops : 4 * gpu.matrix_tflops;
  return gpu.matrix_tflops;
}

}  // namespace manyworlds::core::compute
