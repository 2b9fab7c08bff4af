// Library figures of GPUs: whose they are, how they scale, and that a GPU without any says so.
#include <catch2/catch.hpp>

#include "experiments/settings/calibration.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

const std::string kCalibrated = kSingle + "  collectives: {protocol: calibrated, all_reduce: auto}\n";

double real(const Experiment& experiment, const std::string& key) {
  return std::get<double>(experiment.settings.at("cluster.gpu." + key));
}

std::string said(const Experiment& experiment) {
  return describe_calibration(experiment.config().configuration.collectives);
}

Experiment on(const std::string& gpu) {
  return read(with(kCalibrated, "a100_40", gpu)).experiments.front();
}

}  // namespace

TEST_CASE("GPUs with collectives measured on them have figures of their own, and say so") {
  for (const char* gpu : {"a100_40", "a100_80", "h200_sxm"}) {
    INFO(gpu);
    CHECK(said(on(gpu)) == "yes");
    CHECK(real(on(gpu), "library_launch_us") > 0);
  }
  CHECK(said(read(kSingle).experiments.front()) == "no");
}

TEST_CASE("a GPU without figures takes those of the nearest link, rates scaled by its speed and times as they are") {
  const Experiment a100 = on("a100_40"), v100 = on("v100_32"), b200 = on("b200_hgx"), h200 = on("h200_sxm");
  CHECK(said(v100) == "as a100_40, scaled by link speed");
  CHECK(said(b200) == "as h200_sxm, scaled by link speed");
  CHECK(said(on("h100_sxm")) == "as h200_sxm, scaled by link speed");
  CHECK(real(v100, "library_copy_gb_per_s") == Approx(real(a100, "library_copy_gb_per_s") * 150 / 300));
  CHECK(real(b200, "library_copy_gb_per_s") == Approx(real(h200, "library_copy_gb_per_s") * 900 / 450));
  CHECK(real(b200, "library_in_switch_copy_gb_per_s") ==
        Approx(real(h200, "library_in_switch_copy_gb_per_s") * 900 / 450));
  CHECK(real(v100, "library_launch_us") == real(a100, "library_launch_us"));
  CHECK(real(v100, "library_nic_share") == real(a100, "library_nic_share"));
}

TEST_CASE("what has no switches does not borrow reduction in them, and what a user gives stays") {
  const Experiment mi300 = on("mi300x");
  CHECK(said(mi300).rfind("as ", 0) == 0);
  CHECK(real(mi300, "library_in_switch_copy_gb_per_s") == 0);
  const Experiment given = on("{like: v100_32, library_nic_share: 0.9}");
  CHECK(real(given, "library_nic_share") == 0.9);
}

TEST_CASE("a GPU with some library figures must have all but those of reduction in switches") {
  CHECK(error_of(with(kCalibrated, "a100_40", "{like: v100_32, library_launch_us: 3}")) ==
        "s.yaml:1: 'cluster.gpu.library_hop_us' is missing; protocol: calibrated needs every library_ constant of its "
        "GPU except those of in-switch reduction");
}

TEST_CASE("a calibrated library reaches its share of the links between nodes, and all of those inside") {
  const Experiment plain = read(kSingle).experiments.front(), calibrated = on("a100_40");
  GraphCache graphs;
  const auto before = configure(plain, graphs).graph, after = configure(calibrated, graphs).graph;
  const double share = real(calibrated, "library_nic_share");
  CHECK(share < 1);
  REQUIRE(before->links.size() == after->links.size());
  for (std::size_t i = 0; i < before->links.size(); ++i) {
    const bool network = before->links[i].kind == core::network::LinkKind::network;
    const double expected = static_cast<double>(before->links[i].bits_per_second) * (network ? share : 1);
    CHECK(static_cast<double>(after->links[i].bits_per_second) == Approx(expected));
  }
}
