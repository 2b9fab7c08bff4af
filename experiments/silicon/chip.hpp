// A GPU described by its units, and the process that its die is fabricated in. Areas and costs follow from these
// (area.hpp, cost.hpp), and what the cost model of kernels needs (chip_gpu.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments::silicon {

/// Whose overheads of control and of the network between compute units, as die photos show them.
enum class Style : std::uint8_t { nvidia, amd };
/// The interface of a scale-up link.
enum class LinkKind : std::uint8_t { nvlink3, nvlink4, infinity_fabric };

struct Chip {
  Style style = Style::nvidia;
  std::int64_t sms = 0;           // on the die; streaming multiprocessors or compute units
  double working_sms = 1;         // share of them that is used; the others are spares for defects
  double clock_ghz = 0;           // of the matrix units
  double matrix_flops = 0;        // dense 16-bit FLOPs per SM and clock: 2 for each multiply-add
  std::int64_t lanes = 128;       // threads of an SM that issue in a clock
  std::int64_t fp32_units = 64;   // per SM
  std::int64_t fp64_units = 32;   // per SM
  std::int64_t int32_units = 64;  // per SM
  double registers_kib = 256;     // per SM
  double sram_kib = 0;            // shared memory and L1 of an SM
  double l2_mib = 0;              // on the die
  double working_l2 = 1;          // share of it that is used
  std::int64_t hbm_stacks = 0;
  std::int64_t spare_hbm_phys = 0;  // interfaces on the die without a stack
  double hbm_gib = 16;              // per stack
  double hbm_gb_per_s = 0;          // per stack
  double hbm_usd_per_gib = 7;
  double hbm_pj_per_bit = 3.92;
  double hbm_edge_mm = 10;  // of the die, per interface
  std::int64_t links = 0;
  LinkKind link = LinkKind::nvlink3;
  double link_gb_per_s = 25;  // one direction, per link
  double link_pj_per_bit = 10;
  double nic_gbps = 0;  // 0: as the job's cluster has it
  double nic_usd_per_gbps = 0, nic_w_per_gbps = 0;
  double package_usd = 80;  // assembly, test and packaging

  std::int64_t used_sms() const;
  double used_l2_mib() const { return l2_mib * working_l2; }
};

/// Every number of a chip by name, with unit, range and source of its default. 0 lies outside the range where a value
/// must be given.
const core::OptionTable<Chip>& chip_options();

enum class YieldModel : std::uint8_t { negative_binomial, murphy, poisson };

/// What a foundry offers. Densities are of transistors as chips have them on average, not of single cells.
struct Process {
  std::string node = "n7";
  double million_transistors_per_mm2 = 0;
  double sram_mm2_per_bit = 0;  // before the overhead of arrays
  double wafer_usd = 0;         // of 300 mm
  double defects_per_cm2 = 0;
  double pj_per_flop = 0;  // of the die, all but its interfaces, for each dense 16-bit FLOP
  YieldModel yield = YieldModel::negative_binomial;
  std::int64_t cluster = 3;  // clustering parameter of the negative binomial
};

/// Returns "n7", "n6" and "n5".
const std::vector<std::string>& node_names();
/// Returns the process of one of node_names(): figures of LLMCompass, whose sources process.cpp has.
Process process_of(const std::string& node);
/// Options of a process: the defaults are those of n7; `node` is one of node_names().
const core::OptionTable<Process>& process_options();

/// A GPU on the market in units, whose die somebody has measured.
struct KnownChip {
  std::string gpu;  // its name in the catalog of GPUs; empty: it has none
  std::string die;  // "GA100"
  Chip chip;
  std::string node;
  double die_mm2 = 0;  // as its vendor publishes
  double board_w = 0;
  std::string source;
};
/// Returns GA100 as A100 80 GB, GH100 as H100 SXM, and one die of Aldebaran as MI210.
const std::vector<KnownChip>& known_chips();
/// Returns the known chip of a GPU of the catalog; null if there is none.
const KnownChip* known_chip_of(const std::string& gpu);

}  // namespace manyworlds::experiments::silicon
