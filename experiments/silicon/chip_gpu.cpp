#include "experiments/silicon/chip_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace manyworlds::experiments::silicon {
namespace {

constexpr double kPortBytesPerClock = 64;
constexpr double kStages = 3, kStageBytes = 64 * 2;  // 64 elements of K of 16 bits
constexpr double kSumBytes = 4, kShareOfRegisters = 0.5;
constexpr double kKib = 1'024;

double l2_per_sm(const Chip& chip) {
  return chip.used_l2_mib() / static_cast<double>(chip.used_sms());
}

bool has_memory_for(const core::compute::GemmTile& tile, const Chip& chip) {
  const double sums = kSumBytes * static_cast<double>(tile.m * tile.n);
  const double operands = kStages * kStageBytes * static_cast<double>(tile.m + tile.n);
  return sums <= kShareOfRegisters * chip.registers_kib * kKib && operands <= chip.sram_kib * kKib;
}

std::uint32_t tiles_of(std::uint32_t measured, const Chip& chip) {
  const auto& tiles = core::compute::gemm_tiles();
  std::uint32_t fitting = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if ((measured >> i & 1) != 0 && has_memory_for(tiles[i], chip)) fitting |= 1u << i;
  if (fitting != 0) return fitting;
  // A tile smaller than any measured one always fits in the least SRAM and registers that a chip may have.
  std::size_t least = tiles.size();
  for (std::size_t i = 0; i < tiles.size(); ++i)
    if (has_memory_for(tiles[i], chip) &&
        (least == tiles.size() || tiles[i].m * tiles[i].n > tiles[least].m * tiles[least].n))
      least = i;
  MANYWORLDS_CHECK(least < tiles.size(), "no tile fits in {} KiB", chip.sram_kib);
  return 1u << least;
}

}  // namespace

core::OptionSet chip_gpu(const Chip& chip, const Power& power, const core::compute::Gpu& measured, const Chip& known) {
  core::compute::Gpu gpu = measured;
  const double peak_ratio = matrix_tflops(chip) / measured.matrix_tflops;
  gpu.matrix_tflops = matrix_tflops(chip);
  gpu.fp8_tflops *= peak_ratio;
  gpu.fp4_tflops *= peak_ratio;
  const double nominal_gib = static_cast<double>(known.hbm_stacks) * known.hbm_gib;
  gpu.memory_gib = static_cast<double>(chip.hbm_stacks) * chip.hbm_gib * measured.memory_gib / nominal_gib;
  gpu.memory_gb_per_s = memory_gb_per_s(chip);
  gpu.clock_ghz = chip.clock_ghz;
  gpu.compute_units = chip.used_sms();
  gpu.scale_up_gb_per_s = scale_up_gb_per_s(chip);
  const double load_ratio = l2_per_sm(chip) / l2_per_sm(known), flops_ratio = chip.matrix_flops / known.matrix_flops;
  for (core::compute::GemmRates& rates : gpu.gemm) {
    rates.load_bytes_per_clock =
        std::min(rates.load_bytes_per_clock * load_ratio, std::max(rates.load_bytes_per_clock, kPortBytesPerClock));
    rates.prologue_k *= flops_ratio;
    rates.tiles = tiles_of(rates.tiles, chip);
  }
  gpu.measured_shapes = "none";
  const core::OptionSet before = core::compute::gpu_options().read(measured);
  core::OptionSet values;
  for (const auto& [name, value] : core::compute::gpu_options().read(gpu))
    if (value != before.at(name)) values[name] = value;
  values["board_power_w"] = power.total();
  values["idle_power_w"] = power.idle;
  return values;
}

std::string chip_gpu_assumptions(const std::string& gpu) {
  return fmt::format(
      "assumed: kernels are as efficient as on {0}, from whose measurements the shares of peaks come; measured shapes "
      "are "
      "left out, for {0} as well\n"
      "assumed: operands reach an SM at a rate that goes with its share of L2, up to 64 B/clock or {0}'s; larger L2 "
      "saves "
      "no traffic to HBM\n"
      "assumed: tiles of GEMMs need half of the registers for sums, and SRAM for three stages of 64 elements of K\n",
      gpu);
}

}  // namespace manyworlds::experiments::silicon
