#include "experiments/silicon/chip.hpp"

#include <algorithm>

namespace manyworlds::experiments::silicon {

std::int64_t Chip::used_sms() const {
  constexpr double kRounding = 1e-3;  // 132 of 144 may be given as 0.91667
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(sms) * working_sms + kRounding));
}

const core::OptionTable<Chip>& chip_options() {
  using core::choice, core::option;
  static const core::OptionTable<Chip> table{
      choice("style", &Chip::style, {"nvidia", "amd"}, "whose overheads of control and on-chip network"),
      option("sms", &Chip::sms, "streaming multiprocessors, or compute units, on the die", {1, 4'096}),
      option("working_sms", &Chip::working_sms, "share of them that is used; the others are spares", {0.25, 1}),
      option("clock_ghz", &Chip::clock_ghz, "clock of the matrix units", {0.1, 10}, "GHz"),
      option("matrix_flops", &Chip::matrix_flops, "dense 16-bit FLOPs per SM and clock", {16, 131'072}),
      option("lanes", &Chip::lanes, "threads of an SM that issue in a clock", {1, 1'024}),
      option("fp32_units", &Chip::fp32_units, "per SM", {0, 1'024}),
      option("fp64_units", &Chip::fp64_units, "per SM", {0, 1'024}),
      option("int32_units", &Chip::int32_units, "per SM", {0, 1'024}),
      option("registers_kib", &Chip::registers_kib, "registers of an SM", {32, 2'048}, "KiB"),
      option("sram_kib", &Chip::sram_kib, "shared memory and L1 of an SM", {64, 2'048}, "KiB"),
      option("l2_mib", &Chip::l2_mib, "L2 on the die", {0.5, 2'048}, "MiB"),
      option("working_l2", &Chip::working_l2, "share of it that is used", {0.25, 1}),
      option("hbm_stacks", &Chip::hbm_stacks, "stacks of HBM", {1, 64}),
      option("spare_hbm_phys", &Chip::spare_hbm_phys, "interfaces on the die without a stack", {0, 64}),
      option("hbm_gib", &Chip::hbm_gib, "capacity of a stack", {1, 256}, "GiB"),
      option("hbm_gb_per_s", &Chip::hbm_gb_per_s, "bandwidth of a stack", {1, 10'000}, "GB/s"),
      option("hbm_usd_per_gib", &Chip::hbm_usd_per_gib, "price of HBM", {0, 1'000}, "USD/GiB"),
      option("hbm_pj_per_bit", &Chip::hbm_pj_per_bit, "energy of a bit from or to HBM", {0, 100}, "pJ/bit"),
      option("hbm_edge_mm", &Chip::hbm_edge_mm, "edge of the die that a stack needs", {0, 50}, "mm"),
      option("links", &Chip::links, "scale-up links", {1, 256}),
      choice("link", &Chip::link, {"nvlink3", "nvlink4", "infinity_fabric"}, "whose interface a link has"),
      option("link_gb_per_s", &Chip::link_gb_per_s, "of a link, one direction", {0.1, 1'000}, "GB/s"),
      option("link_pj_per_bit", &Chip::link_pj_per_bit, "energy of a bit through a link", {0, 100}, "pJ/bit"),
      option("nic_gbps", &Chip::nic_gbps, "NIC of a GPU; 0: as the job's cluster has it", {0, 10'000}, "Gb/s"),
      option("nic_usd_per_gbps", &Chip::nic_usd_per_gbps, "price of that NIC", {0, 10'000}, "USD per Gb/s"),
      option("nic_w_per_gbps", &Chip::nic_w_per_gbps, "power of that NIC", {0, 100}, "W per Gb/s"),
      option("package_usd", &Chip::package_usd, "assembly, test and packaging", {0, 100'000}, "USD"),
  };
  return table;
}

// Units by NVIDIA's white papers (A100, 2020; H100, 2022) and AMD's of CDNA 2 (2021), as LLMCompass describes GA100 and
// MI210 (configs/GA100.json, configs/mi210_template.json of its repository).
const std::vector<KnownChip>& known_chips() {
  static const std::vector<KnownChip> chips = [] {
    Chip ga100;
    ga100.sms = 128, ga100.working_sms = 108.0 / 128, ga100.clock_ghz = 1.41, ga100.matrix_flops = 2'048;
    ga100.sram_kib = 192, ga100.l2_mib = 48, ga100.working_l2 = 40.0 / 48;
    ga100.hbm_stacks = 5, ga100.spare_hbm_phys = 1, ga100.hbm_gb_per_s = 407.8;
    ga100.links = 12;
    Chip gh100;
    gh100.sms = 144, gh100.working_sms = 132.0 / 144, gh100.clock_ghz = 1.83, gh100.matrix_flops = 4'096;
    gh100.fp32_units = 128, gh100.fp64_units = 64;
    gh100.sram_kib = 256, gh100.l2_mib = 60, gh100.working_l2 = 50.0 / 60;
    gh100.hbm_stacks = 5, gh100.spare_hbm_phys = 1, gh100.hbm_gb_per_s = 670;
    gh100.links = 18, gh100.link = LinkKind::nvlink4;
    Chip aldebaran;
    aldebaran.style = Style::amd;
    aldebaran.sms = 112, aldebaran.working_sms = 104.0 / 112, aldebaran.clock_ghz = 1.7, aldebaran.matrix_flops = 1'024;
    aldebaran.lanes = 64, aldebaran.fp32_units = 0, aldebaran.fp64_units = 64, aldebaran.registers_kib = 512;
    aldebaran.sram_kib = 80, aldebaran.l2_mib = 8;
    aldebaran.hbm_stacks = 4, aldebaran.hbm_gb_per_s = 409.6, aldebaran.spare_hbm_phys = 4;
    aldebaran.links = 8, aldebaran.link = LinkKind::infinity_fabric;
    return std::vector<KnownChip>{
        {"a100_80", "GA100", ga100, "n7", 826, 400, "NVIDIA A100 white paper, 2020"},
        {"h100_sxm", "GH100", gh100, "n5", 814, 700, "NVIDIA H100 white paper, 2022"},
        {"", "Aldebaran", aldebaran, "n6", 724, 300, "AMD CDNA 2 white paper, 2021; LLMCompass, figure 6"}};
  }();
  return chips;
}

const KnownChip* known_chip_of(const std::string& gpu) {
  if (gpu.empty()) return nullptr;
  for (const KnownChip& known : known_chips())
    if (known.gpu == gpu) return &known;
  return nullptr;
}

}  // namespace manyworlds::experiments::silicon
