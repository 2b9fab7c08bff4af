// The file of `manyworlds design`: what is read, what is refused how, and damaged ones.
#include <catch2/catch.hpp>
#include <random>

#include "core/base/error.hpp"
#include "farm/design/design_file.hpp"
#include "tests/experiments/mutations.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::design;
namespace silicon = manyworlds::experiments::silicon;

namespace {

const std::string kFile =
    "name: mine\n"
    "job: jobs/a.yaml\n"
    "chip: {like: a100_80, sms: 144, hbm_stacks: 3}\n"
    "process: {node: n5, defects_per_cm2: 0.1, yield: murphy}\n"
    "budget: {area_mm2: 800, power_w: 450, cluster_usd: 1e6}\n"
    "search:\n"
    "  sms: [64, 160]\n"
    "  l2_mib: [8, 72]\n"
    "  sram_kib: [64, 256, 32]\n"
    "objective: usd_per_token\n"
    "money: {years: 3}\n";

std::string refusal(const std::string& text) {
  try {
    parse_design(text, "d.yaml");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& message) {
  const std::string said = refusal(text);
  INFO(said);
  return said.find(message) != std::string::npos && said.find('\n') == std::string::npos;
}

std::string with(const std::string& line) {
  return "job: a.yaml\nchip: {like: a100_80}\n" + line + "\n";
}

}  // namespace

TEST_CASE("a design is read with the units of a known chip where it says no others") {
  const DesignFile file = parse_design(kFile, "folder/d.yaml");
  CHECK((file.title == "mine" && file.job == "folder/jobs/a.yaml" && file.job_line == 2 && file.like == "a100_80"));
  CHECK(
      (file.chip.sms == 144 && file.chip.hbm_stacks == 3 && file.chip.links == 12 && file.chip.matrix_flops == 2'048));
  CHECK((file.process.node == "n5" && file.process.wafer_usd == 16'988 && file.process.defects_per_cm2 == 0.1));
  CHECK(file.process.yield == silicon::YieldModel::murphy);
  CHECK((file.budget.area_mm2 == 800 && file.budget.power_w == 450 && file.budget.cluster_usd == 1e6));
  CHECK((file.budget.perimeter_mm == 0 && file.budget.usd == 0));
  CHECK((file.aim == Aim::usd_per_token && file.money.years == 3 && file.money.usd_per_kwh == 0.1));
  REQUIRE(file.search.size() == 3);
  CHECK((file.search[0].step == 1 && file.search[1].step == 2 && file.search[2].step == 32));
  const silicon::Chip chip = chip_at(file, {100, 40, 96});
  CHECK((chip.sms == 100 && chip.l2_mib == 40 && chip.sram_kib == 96 && chip.hbm_stacks == 3));
  CHECK(point_of(file, chip) == Point{100, 40, 96});
  CHECK(parse_design(with(""), "d.yaml").process.node == "n7");
  CHECK(parse_design("job: a.yaml\nchip: {like: h100_sxm}\n", "d.yaml").process.node == "n5");
}

TEST_CASE("a design that cannot be meant is refused with its line and key") {
  CHECK(says("job: a.yaml\n", "'chip' is missing"));
  CHECK(says("chip: {like: a100_80}\n", "'job' is missing"));
  CHECK(says("[1]\n", "d.yaml:1: a design must be a mapping"));
  CHECK(says(with("chips: 3"), "d.yaml:3: unknown key 'chips'; did you mean 'chip'"));
  CHECK(says("job: a.yaml\nchip: {sms: 100}\n", "d.yaml:2: 'chip.clock_ghz' is missing"));
  CHECK(says("job: a.yaml\nchip: {like: a100}\n", "'chip.like' must be one of a100_80, h100_sxm"));
  CHECK(says("job: a.yaml\nchip: {like: a100_80, sm: 100}\n", "d.yaml:2: unknown key 'sm'; did you mean 'sms'"));
  CHECK(says("job: a.yaml\nchip: {like: a100_80, sms: 1.5}\n", "'chip.sms' must be an integer"));
  CHECK(says("job: a.yaml\nchip: {like: a100_80, sram_kib: 16}\n", "'chip.sram_kib' must be"));
  CHECK(says(with("process: {node: n3}"), "d.yaml:3: 'process.node' must be one of n7, n6, n5"));
  CHECK(says(with("budget: {area_mm2: 900}"), "'budget.area_mm2' must be"));
  CHECK(says(with("search: {}"), "'search' must have a unit"));
  CHECK(says(with("search: {sms: 64}"), "d.yaml:3: 'search.sms' must be [least, greatest]"));
  CHECK(says(with("search: {sms: [64, 64]}"), "'search.sms' must rise"));
  CHECK(says(with("search: {sms: [64, 96, 0.5]}"), "must be an integer"));
  CHECK(says(with("search: {l2_mib: [1, 9, 20]}"), "'search.l2_mib[2]' must be"));
  CHECK(says(with("search: {link: [1, 2]}"), "unknown key 'link'"));
  CHECK(says(with("objective: fastest"), "'objective' must be one of step_time, usd_per_token"));
  CHECK(says(with("money: {years: 0}"), "'money.years' must be"));
}

TEST_CASE("damaged designs are read or refused, and what is read can be appraised") {
  std::mt19937_64 random(5);
  int read = 0;
  for (int i = 0; i < 3'000; ++i) {
    try {
      const DesignFile file = parse_design(experiments::testing::mutated(kFile, random), "d.yaml");
      Point lowest;
      for (const Dimension& dimension : file.search) lowest.push_back(dimension.low);
      const silicon::Appraisal chip = appraise(chip_at(file, lowest), file.process);
      CHECK(chip.area.total() > 0);
      CHECK((chip.cost.yield >= 0 && chip.cost.yield <= 1));
      ++read;
    } catch (const core::InputError&) {
    }
  }
  CHECK(read > 20);
}
