// Library figures of GPUs: whose they are, how they scale, and that a GPU without any says so.
#include <catch2/catch.hpp>

#include "experiments/catalog/calibration.hpp"
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
  for (const char* gpu : {"a100_40", "a100_80", "h100_sxm", "h200_sxm", "b200_hgx", "gb200_nvl72"}) {
    INFO(gpu);
    CHECK(said(on(gpu)) == "yes");
    CHECK(real(on(gpu), "library_launch_us") > 0);
  }
  CHECK(said(read(kSingle).experiments.front()) == "no");
}

TEST_CASE("a GPU without figures takes those of the nearest link, rates scaled by its speed and times as they are") {
  const Experiment a100 = on("a100_40"), v100 = on("v100_32");
  CHECK(said(v100) == "as a100_40, scaled by link speed");
  CHECK(real(v100, "library_copy_gb_per_s") == Approx(real(a100, "library_copy_gb_per_s") * 150 / 300));
  CHECK(real(v100, "library_launch_us") == real(a100, "library_launch_us"));
  CHECK(real(v100, "library_nic_share") == real(a100, "library_nic_share"));
  CHECK(text(v100, "cluster.gpu.library_architecture") == "ampere");
}

TEST_CASE("the same chip lends its figures although another GPU's link is nearer") {
  const Experiment h800 = on("h800_sxm"), h100 = on("h100_sxm");
  CHECK(said(h800) == "as h100_sxm, scaled by link speed");  // 200 GB/s: A100 has 300, H100 450
  CHECK(text(h800, "cluster.gpu.library_architecture") == "hopper");
  CHECK(real(h800, "library_copy_gb_per_s") == Approx(real(h100, "library_copy_gb_per_s") * 200 / 450));
  CHECK(real(h800, "library_in_switch_copy_gb_per_s") ==
        Approx(real(h100, "library_in_switch_copy_gb_per_s") * 200 / 450));
}

TEST_CASE("a version has the figures that were measured with it, and a GPU without any of it keeps its own") {
  const auto with_version = [](const std::string& gpu, const std::string& version) {
    const std::string document =
        kSingle + "  collectives: {protocol: calibrated, all_reduce: auto, version: \"" + version + "\"}\n";
    return read(with(document, "a100_40", gpu)).experiments.front();
  };
  const Experiment today = with_version("a100_80", "2.29"), old = with_version("a100_80", "2.10");
  CHECK(said(old) == "yes");
  CHECK(real(old, "library_launch_us") > real(today, "library_launch_us"));
  CHECK(real(old, "library_older_rate_share") == 0);
  CHECK(real(with_version("h100_sxm", "2.10"), "library_launch_us") == real(on("h100_sxm"), "library_launch_us"));
  CHECK(said(with_version("h100_sxm", "2.10")) == "yes");
}

TEST_CASE(
    "a stack that sends tokens by DeepEP has the figures of its kernels, its own GPU's or a relative's as they are") {
  const auto with_stack = [](const std::string& gpu, const std::string& dispatcher) {
    const std::string given = "global_batch: 8, stack: {dispatcher: " + dispatcher + "}";
    return read(with(with(kCalibrated, "global_batch: 8", given), "a100_40", gpu)).experiments.front();
  };
  const std::string launch = "library_tokens_deepep_dispatch_launch_us",
                    wire = "library_tokens_deepep_combine_wire_gb_per_s",
                    between = "library_tokens_deepep_between_dispatch_token_gb_per_s";
  const auto h100 = with_stack("h100_sxm", "deepep"), h800 = with_stack("h800_sxm", "deepep"),
             b200 = with_stack("b200_hgx", "deepep"), gb300 = with_stack("gb300_nvl72", "deepep");
  CHECK(said(h100) == "yes");
  CHECK(real(h100, launch) > 0);
  // 200 GB/s a link, of which the kernels take no more than there is.
  CHECK(real(h800, wire) == real(h100, wire));
  CHECK(said(h800).find("DeepEP's normal kernels in a node as on h100_sxm, a guess") != std::string::npos);
  CHECK(said(b200) == "yes; DeepEP's normal kernels over nodes as on h100_sxm, a guess");
  CHECK(real(b200, launch) > real(h100, launch));
  CHECK(real(b200, between) == real(h100, between));
  CHECK(real(gb300, launch) == real(b200, launch));
  CHECK(real(h100, "library_tokens_low_latency_dispatch_launch_us") == 0);
  CHECK(real(with_stack("h100_sxm", "hybrid_ep"), launch) == 0);
  const auto given = with_stack("{like: h200_sxm, " + launch + ": 7}", "deepep");
  CHECK(real(given, launch) == 7);
}

TEST_CASE("what has no switches does not borrow reduction in them, and what a user gives stays") {
  const Experiment pcie = on("h100_pcie");
  CHECK(said(pcie).rfind("as ", 0) == 0);
  CHECK(real(pcie, "library_in_switch_copy_gb_per_s") == 0);
  const Experiment given = on("{like: v100_32, library_nic_share: 0.9, library_architecture: hopper}");
  CHECK(real(given, "library_nic_share") == 0.9);
  CHECK(text(given, "cluster.gpu.library_architecture") == "hopper");
}

TEST_CASE("a mesh borrows the figures of a mesh, though a GPU with switches has a nearer rate") {
  CHECK(said(on("mi300x")) == "yes");
  for (const char* gpu : {"mi325x", "mi355x", "ascend_910b"}) {
    INFO(gpu);
    CHECK(said(on(gpu)).rfind("as mi300x", 0) == 0);
    CHECK(text(on(gpu), "cluster.gpu.library_architecture") == "cdna");
  }
  CHECK(real(on("mi355x"), "library_copy_gb_per_s") ==
        Approx(real(on("mi300x"), "library_copy_gb_per_s") * 537.6 / 448));
  CHECK(real(on("mi355x"), "library_link_share") < real(on("mi300x"), "library_link_share"));  // its own
  CHECK(said(on("a100_40")).find("mi300x") == std::string::npos);
}

TEST_CASE("every share of a library is above 0 and at most 1, and every other figure is positive") {
  std::size_t shares = 0, figures = 0;
  const auto is_physical = [](const std::string& unit, double value) {
    return value > 0 && (unit != "share" || value <= 1);
  };
  const Catalog catalog;
  for (const auto& [name, library] : catalog.entries("libraries"))
    for (const core::OptionInfo& info : core::collective::calibration_options().infos()) {
      const auto found = library.values.find(info.name);
      if (found == library.values.end() || info.kind != core::OptionInfo::Kind::real) continue;
      INFO(name << " " << info.name);
      CHECK(is_physical(info.unit, std::get<double>(found->second.value)));
      CHECK(info.name.ends_with("share") == (info.unit == "share"));
      CHECK(found->second.source.size() > 10);
      ++(info.unit == "share" ? shares : figures);
    }
  CHECK(shares > 40);
  CHECK(figures > 100);
  CHECK_FALSE(is_physical("share", 1.22));  // controls
  CHECK_FALSE(is_physical("share", 0));
  CHECK_FALSE(is_physical("us", 0));
  CHECK(
      error_of(with(kCalibrated, "a100_40", "{like: v100_32, library_link_share: 1.22}")).find("library_link_share") !=
      std::string::npos);
}

TEST_CASE("a calibrated library reaches its shares of the links between nodes and of those inside") {
  const Experiment plain = read(kSingle).experiments.front(), calibrated = on("a100_40");
  GraphCache graphs;
  const auto before = configure(plain, graphs).graph, after = configure(calibrated, graphs).graph;
  const double share = real(calibrated, "library_nic_share"), link_share = real(calibrated, "library_link_share");
  CHECK((share < 1 && link_share < 1));
  REQUIRE(before->links.size() == after->links.size());
  for (std::size_t i = 0; i < before->links.size(); ++i) {
    const bool network = before->links[i].kind == core::network::LinkKind::network;
    const double expected = static_cast<double>(before->links[i].bits_per_second) * (network ? share : link_share);
    CHECK(static_cast<double>(after->links[i].bits_per_second) == Approx(expected));
  }
}
