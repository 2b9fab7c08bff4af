// What a described GPU is: its area against dies that vendors publish, yields against their closed forms, cost, power,
// and what the cost model sees of it against the catalog.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/compute/gemm.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/silicon/chip_gpu.hpp"
#include "experiments/silicon/cost.hpp"
#include "experiments/silicon/yield.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::silicon;

namespace {

core::compute::Gpu catalog_gpu(const std::string& name) {
  return experiments::gpu_of(experiments::Catalog().entries("gpus").at(name));
}

const KnownChip& known_die(const std::string& die) {
  for (const KnownChip& known : known_chips())
    if (known.die == die) return known;
  throw core::InternalError("no die " + die);
}

double die_error(const KnownChip& known) {
  return die_area(known.chip, process_of(known.node)).total() / known.die_mm2 - 1;
}

}  // namespace

TEST_CASE("dies have the area that their vendors publish, as near as LLMCompass' own model comes") {
  // cost_model.py @2e015fd on configs/GA100.json and configs/mi210_template.json: 795.0 of 826 mm2 and 689.5 of 724.
  CHECK(std::abs(die_error(known_die("GA100"))) < 1 - 795.0 / 826);
  KnownChip aldebaran = known_die("Aldebaran");
  CHECK(std::abs(die_error(aldebaran)) < 0.07);
  aldebaran.chip.matrix_flops = 2'048;  // theirs: four arrays of 16 x 16 in a compute unit, twice AMD's rate
  CHECK(std::abs(die_error(aldebaran)) < 0.05);
  CHECK(std::abs(die_error(known_die("GH100"))) < 0.06);  // not a die of theirs, nor a node that they measured
}

TEST_CASE("parts of GA100 are as large as on its die photo") {
  // ae/figure6/real_hardware/die_area.csv, mm2: SMs, network, L2, HBM interfaces and controllers, those of links.
  const DieArea area = die_area(known_die("GA100").chip, process_of("n7"));
  CHECK(area.sms == Approx(476.25).epsilon(0.01));
  CHECK(area.network == Approx(76.44).epsilon(0.05));
  CHECK(area.l2 == Approx(119.31).epsilon(0.05));
  CHECK(area.hbm == Approx(58 + 31.77).epsilon(0.09));
  CHECK(area.rest == 40);
  CHECK(area.sm.total() == Approx(3.75).epsilon(0.02));  // figure 6b
}

TEST_CASE("every unit takes area, and none shrinks what others take") {
  const Process process = process_of("n5");
  const Chip chip = known_die("GH100").chip;
  const double before = die_area(chip, process).total();
  const auto grows = [&](auto&& change) {
    Chip other = chip;
    change(other);
    return die_area(other, process).total() > before;
  };
  CHECK(grows([](Chip& c) { ++c.sms; }));
  CHECK(grows([](Chip& c) { c.matrix_flops += 2; }));
  CHECK(grows([](Chip& c) { c.sram_kib += 1; }));
  CHECK(grows([](Chip& c) { c.registers_kib += 1; }));
  CHECK(grows([](Chip& c) { c.l2_mib += 1; }));
  CHECK(grows([](Chip& c) { ++c.hbm_stacks; }));
  CHECK(grows([](Chip& c) { ++c.links; }));
  CHECK(die_area(chip, process_of("n7")).total() > before);
  double last = 0;
  for (double kib = 64; kib <= 2'048; kib += 1) {
    Chip other = chip;
    other.sram_kib = kib;
    const double area = die_area(other, process).sm.sram;
    CHECK(area > last);
    last = area;
  }
  Chip other = chip;
  other.sram_kib = 256;  // by CACTI 52.6 % of such an array are bits
  CHECK(die_area(other, process).sm.sram == Approx(256 * 1'024 * 8 * 1.25e-7 / 0.526));
}

TEST_CASE("yields meet their closed forms") {
  Process process = process_of("n7");
  process.defects_per_cm2 = 0.2;  // 1.6 defects on 800 mm2
  process.yield = YieldModel::poisson;
  CHECK(yield_of(800, process) == Approx(std::exp(-1.6)));
  process.yield = YieldModel::murphy;
  CHECK(yield_of(800, process) == Approx(std::pow((1 - std::exp(-1.6)) / 1.6, 2)));
  process.yield = YieldModel::negative_binomial;
  CHECK(yield_of(800, process) == Approx(std::pow(1 + 1.6 / 3, -3)));
  process.cluster = 1;
  CHECK(yield_of(800, process) == Approx(1 / 2.6));  // Seeds
  process.defects_per_cm2 = 0;
  CHECK(yield_of(800, process) == 1);
}

TEST_CASE("spare SMs are worth the binomial sum over SMs with defects") {
  Process process = process_of("n7");
  process.yield = YieldModel::poisson;
  Chip chip = known_die("GA100").chip;
  chip.working_sms = 1;
  const DieArea area = die_area(chip, process);
  // Poisson defects of the parts are those of the whole die.
  CHECK(die_yield(chip, area, process) == Approx(yield_of(area.total(), process)).epsilon(1e-12));
  chip.working_sms = 126.0 / 128;
  const double one = std::exp(-(area.sms + area.network) / 128 / 100 * 0.15),
               others = area.total() - area.sms - area.network;
  const double good = std::pow(one, 128) + 128 * std::pow(one, 127) * (1 - one) +
                      128 * 127 / 2.0 * std::pow(one, 126) * (1 - one) * (1 - one);
  CHECK(die_yield(chip, area, process) == Approx(good * std::exp(-others / 100 * 0.15)).epsilon(1e-9));
  chip.working_sms = 0.25;
  CHECK(die_yield(chip, area, process) <= std::exp(-others / 100 * 0.15) * (1 + 1e-12));
}

TEST_CASE("a GPU costs its share of a wafer, its HBM and its package") {
  CHECK(dies_per_wafer(610) == Approx(M_PI * 150 * 150 / 610 - M_PI * 300 / std::sqrt(1'220)));
  CHECK(dies_per_wafer(80'000) == 0);
  const Process process = process_of("n7");
  const Chip chip = known_die("GA100").chip;
  const DieArea area = die_area(chip, process);
  const UnitCost cost = unit_cost(chip, area, process);
  CHECK(cost.hbm_usd == 80 * 7);                                            // LLMCompass: 7 USD per GB
  CHECK(cost.die_usd * cost.yield * cost.dies_per_wafer == Approx(9'346));  // CSET
  CHECK(cost.total_usd() == Approx(cost.die_usd + 560 + 80));
}

TEST_CASE("boards have their power: A100's sets the energy of a FLOP, H100's is the check") {
  const auto watts = [](const KnownChip& known) {
    return appraise(known.chip, process_of(known.node)).power.total() / known.board_w;
  };
  CHECK(watts(known_die("GA100")) == Approx(1).epsilon(0.01));
  CHECK(watts(known_die("GH100")) == Approx(1).epsilon(0.08));
}

TEST_CASE("a known chip is the GPU of the catalog again") {
  for (const char* name : {"a100_80", "h100_sxm"}) {
    INFO(name);
    const core::compute::Gpu measured = catalog_gpu(name);
    const KnownChip& known = *known_chip_of(name);
    const Power power = appraise(known.chip, process_of(known.node)).power;
    core::OptionSet all = core::compute::gpu_options().read(measured);
    const core::OptionSet values = chip_gpu(known.chip, power, measured, known.chip);
    for (const auto& [key, value] : values) {
      INFO(key);
      if (key == "board_power_w" || key == "idle_power_w") continue;
      if (key == "measured_shapes")
        CHECK(std::get<std::string>(value) == "none");
      else if (const double* number = std::get_if<double>(&value))
        CHECK(*number == Approx(std::get<double>(all.at(key))).epsilon(2e-3));
      else
        CHECK(value == all.at(key));  // also the tiles that the fit of the measured GPU uses
    }
  }
}

TEST_CASE("more SMs on the same L2 are fed more slowly, and small SRAM has no large tiles") {
  const core::compute::Gpu measured = catalog_gpu("a100_80");
  const KnownChip& known = *known_chip_of("a100_80");
  Chip chip = known.chip;
  chip.sms *= 2, chip.sram_kib = 100;
  const Power power = appraise(chip, process_of("n7")).power;
  const core::OptionSet values = chip_gpu(chip, power, measured, known.chip);
  CHECK(std::get<std::int64_t>(values.at("compute_units")) == 216);
  CHECK(std::get<double>(values.at("matrix_tflops")) == Approx(2 * measured.matrix_tflops).epsilon(2e-3));
  CHECK(std::get<double>(values.at("gemm_load_bytes_per_clock")) == Approx(measured.gemm[0].load_bytes_per_clock / 2));
  CHECK(std::get<std::string>(values.at("gemm_tiles")) == "128x128+64x128+64x32");  // 256 x 128 needs 144 KiB
}

TEST_CASE("the first limit that a design exceeds is said with both figures") {
  const KnownChip& known = *known_chip_of("a100_80");
  const auto over = [&](const Budget& budget, std::int64_t gpus = 8) {
    return over_budget(appraise(known.chip, process_of("n7")), budget, gpus);
  };
  CHECK(over({}).empty());
  CHECK(over({.area_mm2 = 800}).find("area_mm2, 800") != std::string::npos);
  CHECK(over({.perimeter_mm = 60}).find("perimeter_mm, 60") != std::string::npos);
  CHECK(over({.power_w = 399}).find("power_w, 399") != std::string::npos);
  CHECK(over({.usd = 600}).find("usd, 600") != std::string::npos);
  CHECK(over({.cluster_usd = 1'000}).find("cluster_usd, 1000") != std::string::npos);
  CHECK(over({.area_mm2 = 850, .perimeter_mm = 115, .power_w = 420, .usd = 2'000, .cluster_usd = 16'000}).empty());
  Chip large = known.chip;
  large.sms = 200;
  CHECK(over_budget(appraise(large, process_of("n7")), {}, 8).find("858") != std::string::npos);
  Chip edges = known.chip;
  edges.hbm_stacks = 11;
  edges.l2_mib = 1, edges.sms = 64;
  CHECK(over_budget(appraise(edges, process_of("n7")), {}, 8).find("edge") != std::string::npos);
}

TEST_CASE("an A100 in units runs the GEMMs of the A100 that was measured") {
  const core::compute::Gpu measured = catalog_gpu("a100_80");
  const KnownChip& known = *known_chip_of("a100_80");
  core::OptionSet all = core::compute::gpu_options().read(measured);
  for (const auto& [key, value] : chip_gpu(known.chip, {}, measured, known.chip))
    if (all.contains(key)) all[key] = value;
  const core::compute::Gpu gpu = core::compute::gpu_options().make(all);
  std::ifstream table(source_folder() + "/experiments/measured/kernels_gemm.csv");
  std::string line;
  double sum = 0;
  int rows = 0;
  while (std::getline(table, line)) {
    // device,kernel_source,gemm_dtype,m,n,k,latency in ms
    if (!line.starts_with("NVIDIA A100-SXM4-80GB,") || line.find(",bfloat16,") == std::string::npos) continue;
    std::istringstream cells(line.substr(line.find(",bfloat16,") + 10));
    std::int64_t m = 0, n = 0, k = 0;
    double ms = 0;
    char comma = 0;
    REQUIRE(cells >> m >> comma >> n >> comma >> k >> comma >> ms);
    if (ms < 0.05) continue;  // launches dominate shorter ones, as for `validate`
    const auto kernel = core::compute::gemm("", m, n, k);
    const double us =
        core::compute::gemm_ps(kernel, gpu.gemm[0], gpu, core::compute::PowerState::burst) / 1e6 + gpu.launch_us;
    sum += std::abs(us / (ms * 1e3) - 1);
    ++rows;
  }
  CHECK(rows == 120);
  CHECK(sum / rows <= 0.12);
}
