// What it costs to produce a GPU, and the power that it needs: wafers, yield and HBM as LLMCompass counts them (Zhang
// et al., ISCA 2024). No development, board, margin or tax: a price on the market is many times that.
#pragma once

#include "experiments/silicon/area.hpp"
#include "experiments/silicon/chip.hpp"

namespace manyworlds::experiments::silicon {

struct UnitCost {
  double dies_per_wafer = 0, yield = 0;
  double die_usd = 0, hbm_usd = 0, package_usd = 0, nic_usd = 0;
  double total_usd() const { return die_usd + hbm_usd + package_usd + nic_usd; }
};
/// A die too large for a wafer costs infinitely much.
UnitCost unit_cost(const Chip& chip, const DieArea& area, const Process& process);

/// Watts at the rates of the datasheet, all at once.
struct Power {
  double idle = 0;    // in proportion to the die
  double matrix = 0;  // the die at its matrix peak, SRAM and wires included
  double hbm = 0, links = 0, nic = 0;
  double total() const { return idle + matrix + hbm + links + nic; }
};
Power power_of(const Chip& chip, const DieArea& area, const Process& process);

/// Peaks of a chip: dense 16-bit TFLOP/s, GB/s of HBM, GB/s of all links in one direction.
double matrix_tflops(const Chip& chip);
double memory_gb_per_s(const Chip& chip);
double scale_up_gb_per_s(const Chip& chip);

/// All that follows from a chip and its process alone.
struct Appraisal {
  DieArea area;
  UnitCost cost;
  Power power;
  double edge_mm = 0;  // that its interfaces need
};
Appraisal appraise(const Chip& chip, const Process& process);

/// Limits of a design; 0: none.
struct Budget {
  double area_mm2 = 0;      // of the die
  double perimeter_mm = 0;  // of its edge that interfaces take
  double power_w = 0;       // of a GPU
  double usd = 0;           // of a GPU
  double cluster_usd = 0;   // of all GPUs of the job
};
const core::OptionTable<Budget>& budget_options();

/// Returns which limit the chip exceeds, with both figures, or "" if none: the budget's, the mask that exposes a die
/// (858 mm2), and the edge of its own die, taken as a square.
std::string over_budget(const Appraisal& chip, const Budget& budget, std::int64_t gpus);

}  // namespace manyworlds::experiments::silicon
