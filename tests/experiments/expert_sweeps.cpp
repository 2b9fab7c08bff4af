// The sweeps we ship that turn optimisations of experts on and off do show what they are for.
#include <catch2/catch.hpp>

#include "tests/experiments/run_sweep.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

TEST_CASE("copies of hot experts pay the more the less evenly routers choose, and balanced there are none") {
  const auto ran = run("hot_experts.yaml");
  REQUIRE(ran.size() == 6);
  const auto gain = [&](const std::string& routing) {
    return ran.at(routing + " false").step_s / ran.at(routing + " true").step_s;
  };
  CHECK(gain("balanced") == 1);
  CHECK(ran.at("balanced true").routing.copies == 0);
  CHECK(gain("zipf(exponent=0.5)") > 1);
  CHECK(gain("zipf(exponent=1)") > 1.2);
  const Ran &off = ran.at("zipf(exponent=1) false"), &on = ran.at("zipf(exponent=1) true");
  CHECK(on.routing.copies > 0);
  CHECK(on.routing.imbalance < off.routing.imbalance);
  CHECK(on.stall_s < off.stall_s);
}

TEST_CASE("recomputation on loaded ranks alone makes a step fit, for less than recomputing everything") {
  const auto ran = run("adaptive_recompute.yaml");
  REQUIRE(ran.size() == 3);  // beside full recomputation there is nothing to decide
  const Ran &off = ran.at("none 0"), &on = ran.at("none 80000"), &full = ran.at("full 0");
  CHECK_FALSE(off.fits);
  REQUIRE(on.fits);
  REQUIRE(full.fits);
  CHECK(full.peak_bytes < on.peak_bytes);
  CHECK(on.recompute_s > 0);
  CHECK(on.recompute_s < full.recompute_s / 2);
  CHECK(on.step_s < full.step_s);
}

TEST_CASE("a batched GEMM of padded experts takes less than grouped ones that the host launches, and drops are told") {
  const auto ran = run("batched_experts.yaml");
  REQUIRE(ran.size() == 8);
  for (const std::string routing : {"balanced", "zipf(exponent=0.3)"}) {
    CHECK(ran.at(routing + " 1.25 true batched").step_s < ran.at(routing + " 1.25 true grouped").step_s);
    CHECK(ran.at(routing + " 1.25 true batched").step_s < ran.at(routing + " 0 false grouped").step_s);
    CHECK(ran.at(routing + " 0 false grouped").routing.drop_rate == 0);
    CHECK(ran.at(routing + " 1.25 true batched").routing.imbalance == 1);
  }
  const double dropped = ran.at("zipf(exponent=0.3) 1.25 false grouped").routing.drop_rate;
  CHECK(dropped > 0);
  CHECK(ran.at("zipf(exponent=0.3) 1.25 true batched").routing.drop_rate == dropped);
  CHECK(ran.at("balanced 1.25 true batched").routing.drop_rate == 0);
}
