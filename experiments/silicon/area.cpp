#include "experiments/silicon/area.hpp"

#include <array>
#include <cmath>

namespace manyworlds::experiments::silicon {
namespace {

// Transistors of a unit, from open designs (Ariane, OpenPiton); narrower floating-point units in proportion to the
// square of their mantissa (cost_model.py).
constexpr double kFp64Transistors = 685'300, kInt32Transistors = 177'690;
constexpr double kMantissa64 = 52, kMantissa32 = 23, kMantissa16 = 10;

double float_transistors(double mantissa) {
  return kFp64Transistors * (mantissa / kMantissa64) * (mantissa / kMantissa64);
}

/// What LLMCompass read off die photos of GA100 and Aldebaran: control per lane and the network per SM, in transistors;
/// how registers are divided into files, and mm2 that the photo shows beside everything else (ae/figure6).
struct Overheads {
  double control_per_lane, network_per_sm;
  std::int64_t file_depth;  // registers of 32 bits in a file; 0: four files per SM
  double rest_mm2;          // at the node of the photo
  double rest_density;      // million transistors per mm2 there
};
constexpr std::array<Overheads, 2> kOverheads{{{725'650, 55e6, 0, 40, 96.3}, {1'534'500, 33.6e6, 512, 4, 114.2}}};

/// An interface: its analogue part, which does not shrink with the process, and its controller, in transistors.
struct Interface {
  double phy_mm2, controller_transistors;
};
constexpr Interface kHbm{10.45, 552'743'000};
constexpr std::array<Interface, 3> kLinks{{{1.888, 74'632'000}, {0.965, 86'628'000}, {5.69, 348'148'000}}};

/// Depth of the row of interfaces, mm: an HBM interface of 10.45 mm2 along 10 mm of edge. GA100 has three stacks along
/// 32 mm.
constexpr double kRowDepth_mm = 1.045;

double mm2_of(double transistors, const Process& process) {
  return transistors / 1e6 / process.million_transistors_per_mm2;
}

double interface_mm2(const Interface& one, std::int64_t count, const Process& process) {
  return static_cast<double>(count) * (one.phy_mm2 + mm2_of(one.controller_transistors, process));
}

/// Shares of an SRAM array that are bits, by its size: 4 KiB, 8 KiB, ... 512 KiB, from CACTI. Larger memories consist
/// of arrays of 512 KiB.
constexpr std::array<double, 8> kArrayShares{0.076, 0.142, 0.247, 0.393, 0.559, 0.704, 0.526, 0.602};
constexpr double kSmallestArray = 4 * 1'024, kLargestArray = 512 * 1'024;

/// LLMCompass takes the share of the next larger size, by which 257 KiB would be smaller than 256 KiB; between two
/// sizes the area is linear here.
double sram_mm2(double bytes, const Process& process) {
  double size = kSmallestArray, area = size / kArrayShares.front();
  std::size_t i = 0;
  while (size * 2 < bytes && i + 2 < kArrayShares.size()) size *= 2, area = size / kArrayShares.at(++i);
  const double next = 2 * size / kArrayShares.at(i + 1);
  const double cells = bytes <= kSmallestArray  ? bytes / kArrayShares.front()
                       : bytes >= kLargestArray ? bytes / kArrayShares.back()
                                                : area + (next - area) * (bytes - size) / size;
  return cells * 8 * process.sram_mm2_per_bit;
}

/// The area of a register file with 4 ports in 90 nm: EMPIRE's fit, um2, as cost_model.py has it.
double register_file_um2_90nm(double depth) {
  constexpr double w = 32, p = 4;
  const double d = depth;
  return 3.29e4 - 1.09e3 * d - 8.83e2 * w - 5.55e3 * p + 5.35e1 * d * w + 1.50e-2 * d * d + 1.08e-2 * w * w +
         5.86e-1 * p * p + 1.42e2 * d * p + 3.68e2 * w * p;
}
constexpr double kDensity90nm = 1.6;  // million transistors per mm2 (CSET)
constexpr double kDensityN7 = 96.3, kSramN7 = 1.70e-7;

double registers_mm2(const Chip& chip, const Overheads& overheads, const Process& process) {
  const double registers = chip.registers_kib * 1'024 / 4;
  const double depth = overheads.file_depth > 0 ? static_cast<double>(overheads.file_depth) : registers / 4;
  const double mm2_n7 = register_file_um2_90nm(depth) / 1e6 * kDensity90nm / kDensityN7;
  return registers / depth * mm2_n7 * process.sram_mm2_per_bit / kSramN7;  // they shrink as SRAM does
}

const Overheads& overheads_of(const Chip& chip) {
  return kOverheads.at(static_cast<std::size_t>(chip.style));
}
const Interface& link_of(const Chip& chip) {
  return kLinks.at(static_cast<std::size_t>(chip.link));
}

SmArea sm_area(const Chip& chip, const Process& process) {
  const Overheads& overheads = overheads_of(chip);
  SmArea area;
  area.control = mm2_of(static_cast<double>(chip.lanes) * overheads.control_per_lane, process);
  area.units = mm2_of(static_cast<double>(chip.int32_units) * kInt32Transistors +
                          static_cast<double>(chip.fp32_units) * float_transistors(kMantissa32) +
                          static_cast<double>(chip.fp64_units) * float_transistors(kMantissa64),
                      process);
  area.matrix = mm2_of(chip.matrix_flops / 2 * float_transistors(kMantissa16), process);
  area.registers = registers_mm2(chip, overheads, process);
  area.sram = sram_mm2(chip.sram_kib * 1'024, process);
  return area;
}

}  // namespace

DieArea die_area(const Chip& chip, const Process& process) {
  const Overheads& overheads = overheads_of(chip);
  const auto sms = static_cast<double>(chip.sms);
  DieArea area;
  area.sm = sm_area(chip, process);
  area.sms = sms * area.sm.total();
  area.network = sms * mm2_of(overheads.network_per_sm, process);
  area.l2 = sram_mm2(chip.l2_mib * (1 << 20), process);
  area.hbm = interface_mm2(kHbm, chip.hbm_stacks + chip.spare_hbm_phys, process);
  area.links = interface_mm2(link_of(chip), chip.links, process);
  area.rest = overheads.rest_mm2 * overheads.rest_density / process.million_transistors_per_mm2;
  return area;
}

double edge_mm(const Chip& chip) {
  return static_cast<double>(chip.hbm_stacks + chip.spare_hbm_phys) * chip.hbm_edge_mm +
         static_cast<double>(chip.links) * link_of(chip).phy_mm2 / kRowDepth_mm;
}

double edge_of_die_mm(double die_mm2) {
  return 4 * std::sqrt(die_mm2);
}

}  // namespace manyworlds::experiments::silicon
