// The area of a GPU's die by its units, and the edge that its interfaces need: the model of LLMCompass (Zhang et al.,
// ISCA 2024; cost_model/cost_model.py of its repository).
#pragma once

#include "experiments/silicon/chip.hpp"

namespace manyworlds::experiments::silicon {

/// The largest die that a mask of 26 mm x 33 mm exposes, mm2.
inline constexpr double kReticle_mm2 = 858;

/// Areas of one SM, mm2.
struct SmArea {
  double control = 0, units = 0, matrix = 0, registers = 0, sram = 0;
  double total() const { return control + units + matrix + registers + sram; }
};

/// Areas of a die, mm2.
struct DieArea {
  SmArea sm;
  double sms = 0;      // all SMs
  double network = 0;  // between SMs and L2
  double l2 = 0;
  double hbm = 0;    // interfaces of HBM and their controllers
  double links = 0;  // the same of scale-up links
  double rest = 0;   // PCIe, command processor and what die photos do not name
  double total() const { return sms + network + l2 + hbm + links + rest; }
};

DieArea die_area(const Chip& chip, const Process& process);

/// Returns the length of edge that the interfaces of HBM and links need, mm: they stand side by side in one row.
double edge_mm(const Chip& chip);
/// Returns the length of edge that a square die has, mm.
double edge_of_die_mm(double die_mm2);

}  // namespace manyworlds::experiments::silicon
