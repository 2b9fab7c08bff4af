#include "experiments/silicon/cost.hpp"

#include <fmt/format.h>

#include <limits>

#include "experiments/silicon/yield.hpp"

namespace manyworlds::experiments::silicon {
namespace {

/// An A100 at rest draws 61 W (catalog/gpus/a100_80.yaml), with 826 mm2.
constexpr double kIdleWattsPerMm2 = 61.0 / 826;
constexpr double kBitsPerByte = 8, kDirections = 2;

}  // namespace

UnitCost unit_cost(const Chip& chip, const DieArea& area, const Process& process) {
  UnitCost cost;
  cost.dies_per_wafer = dies_per_wafer(area.total());
  cost.yield = die_yield(chip, area, process);
  const double sold = cost.dies_per_wafer * cost.yield;
  cost.die_usd = sold > 0 ? process.wafer_usd / sold : std::numeric_limits<double>::infinity();
  cost.hbm_usd = static_cast<double>(chip.hbm_stacks) * chip.hbm_gib * chip.hbm_usd_per_gib;
  cost.package_usd = chip.package_usd;
  cost.nic_usd = chip.nic_gbps * chip.nic_usd_per_gbps;
  return cost;
}

// Energies of bits: HBM2, 3.92 pJ (O'Connor et al., "Fine-grained DRAM", MICRO 2017); a link across a board, 10 pJ
// (Arunkumar et al., "MCM-GPU", ISCA 2017). What a FLOP of the die takes is such that an A100, with 2,039 GB/s
// of memory and 300 GB/s of links each way, has its 400 W: 312e12 FLOP/s x 0.728 pJ. GH100's 700 W are the check: 737
// W.
Power power_of(const Chip& chip, const DieArea& area, const Process& process) {
  Power power;
  power.idle = kIdleWattsPerMm2 * area.total();
  power.matrix = matrix_tflops(chip) * process.pj_per_flop;
  power.hbm = memory_gb_per_s(chip) * kBitsPerByte * chip.hbm_pj_per_bit * 1e-3;
  power.links = scale_up_gb_per_s(chip) * kDirections * kBitsPerByte * chip.link_pj_per_bit * 1e-3;
  power.nic = chip.nic_gbps * chip.nic_w_per_gbps;
  return power;
}

double matrix_tflops(const Chip& chip) {
  return static_cast<double>(chip.used_sms()) * chip.matrix_flops * chip.clock_ghz * 1e-3;
}
double memory_gb_per_s(const Chip& chip) {
  return static_cast<double>(chip.hbm_stacks) * chip.hbm_gb_per_s;
}
double scale_up_gb_per_s(const Chip& chip) {
  return static_cast<double>(chip.links) * chip.link_gb_per_s;
}

Appraisal appraise(const Chip& chip, const Process& process) {
  const DieArea area = die_area(chip, process);
  return {area, unit_cost(chip, area, process), power_of(chip, area, process), edge_mm(chip)};
}

const core::OptionTable<Budget>& budget_options() {
  using core::option;
  static const core::OptionTable<Budget> table{
      option("area_mm2", &Budget::area_mm2, "die area", {1, kReticle_mm2}, "mm2"),
      option("perimeter_mm", &Budget::perimeter_mm, "edge of the die that interfaces take", {1, 1'000}, "mm"),
      option("power_w", &Budget::power_w, "power of a GPU", {1, 100'000}, "W"),
      option("usd", &Budget::usd, "cost of production of a GPU", {1, 1e9}, "USD"),
      option("cluster_usd", &Budget::cluster_usd, "the same of all GPUs of the job", {1, 1e15}, "USD"),
  };
  return table;
}

std::string over_budget(const Appraisal& chip, const Budget& budget, std::int64_t gpus) {
  const auto over = [](double value, double limit) { return limit > 0 && !(value <= limit); };
  const double area = chip.area.total(), usd = chip.cost.total_usd();
  const double cluster_usd = usd * static_cast<double>(gpus);
  if (over(area, kReticle_mm2))
    return fmt::format("its die of {:.1f} mm2 is larger than a mask exposes, {} mm2", area, kReticle_mm2);
  if (over(area, budget.area_mm2))
    return fmt::format("its die of {:.1f} mm2 exceeds area_mm2, {}", area, budget.area_mm2);
  if (over(chip.edge_mm, edge_of_die_mm(area)))
    return fmt::format("its interfaces need {:.1f} mm of edge, and its die has {:.1f}", chip.edge_mm,
                       edge_of_die_mm(area));
  if (over(chip.edge_mm, budget.perimeter_mm))
    return fmt::format("its interfaces need {:.1f} mm of edge, more than perimeter_mm, {}", chip.edge_mm,
                       budget.perimeter_mm);
  if (over(chip.power.total(), budget.power_w))
    return fmt::format("its {:.1f} W exceed power_w, {}", chip.power.total(), budget.power_w);
  if (over(usd, budget.usd)) return fmt::format("its {:.0f} USD exceed usd, {}", usd, budget.usd);
  if (over(cluster_usd, budget.cluster_usd))
    return fmt::format("{} of them for {:.0f} USD exceed cluster_usd, {}", gpus, cluster_usd, budget.cluster_usd);
  return "";
}

}  // namespace manyworlds::experiments::silicon
