// The sweeps of replicas that we ship show what they are for.
#include <catch2/catch.hpp>

#include "tests/experiments/run_sweep.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments::testing;

TEST_CASE("ZeRO within nodes pays where every micro-batch gathers, not where gradients travel once, and costs memory") {
  auto ran = run("hsdp.yaml");
  REQUIRE(ran.size() == 8);
  const auto gains = [&](const std::string& nic, const std::string& zero) {
    const Ran &all = ran.at(nic + " " + zero + " 0"), &in_nodes = ran.at(nic + " " + zero + " 8");
    CHECK(in_nodes.peak_bytes > all.peak_bytes);
    return all.step_s / in_nodes.step_s - 1;
  };
  // Stage 3 sends 8 bytes of a parameter between nodes for each of 4 micro-batches, groups 8 for all of them; stage 1
  // sends 6 in any case, or those 8.
  CHECK(gains("100", "3") > 0.2);
  CHECK(gains("200", "3") < gains("100", "3"));
  CHECK(std::abs(gains("100", "1")) < 0.05);
}

TEST_CASE("on two kinds of machines the slower one sets the pace, whether stages or replicas sit on it") {
  const auto ran = run("mixed_machines.yaml");
  REQUIRE(ran.size() == 6);
  const auto step = [&](const std::string& which, const std::string& order) {
    for (const auto& [label, one] : ran)
      if ((which.empty() ? label.find("second") == std::string::npos : label.find(which) != std::string::npos) &&
          label.find(order) != std::string::npos) {
        REQUIRE(one.fits);
        return one.step_s;
      }
    FAIL(which + " " + order);
    return 0.0;
  };
  for (const std::string order : {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"}) {
    const double alone = step("", order), with_a100 = step("a100_80", order), with_h100 = step("gpu=h100", order);
    CAPTURE(order, alone, with_a100, with_h100);
    CHECK(with_h100 < 0.65 * alone);
    CHECK(with_a100 > 1.5 * with_h100);
  }
}

TEST_CASE("one slow GPU of 32 costs as much as a slow node, and a slow NIC or scale-up link what hangs on it") {
  const auto ran = run("stragglers.yaml");
  REQUIRE(ran.size() == 5);
  const auto step = [&](const std::string& which) {
    for (const auto& [label, one] : ran)
      if (label.find(which) != std::string::npos) return one.step_s;
    FAIL(which);
    return 0.0;
  };
  double healthy = 1e9;
  for (const auto& [label, one] : ran) healthy = std::min(healthy, one.step_s);
  CHECK(step("gpu3=0.8") > 1.1 * healthy);
  CHECK(step("gpu3=0.8") < 1.26 * healthy);
  CHECK(step("node1=0.8") == Approx(step("gpu3=0.8")).epsilon(0.05));
  CHECK(step("nvswitch0=0.8") > 1.005 * healthy);
}
