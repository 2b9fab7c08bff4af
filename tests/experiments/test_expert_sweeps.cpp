// The sweeps we ship that turn optimisations of experts on and off do show what they are for.
#include <catch2/catch.hpp>

#include <map>

#include "core/memory/footprint.hpp"
#include "core/step/laboratory.hpp"
#include "core/workload/expert_load.hpp"
#include "sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

struct Ran {
  double step_s = 0, stall_s = 0, recompute_s = 0;
  std::int64_t peak_bytes = 0;
  bool fits = false;
  core::workload::RoutingAccount routing;
};

/// By the values of the axes, joined with blanks.
std::map<std::string, Ran> run(const std::string& name) {
  const Sweep sweep = read_sweep(std::string(MANYWORLDS_SOURCE_DIR) + "/experiments/sweeps/" + name);
  std::map<std::string, Ran> all;
  core::step::Laboratory laboratory;
  core::step::IsolatedResults results;
  GraphCache graphs;
  for (const Experiment& experiment : sweep.experiments) {
    std::string label;
    for (std::size_t i = 0; i < experiment.axes.size(); ++i)
      if (!sweep.columns[i].name.starts_with("routing."))  // the routing's own label has it
        label += (label.empty() ? "" : " ") +
                 std::visit([](const auto& value) { return fmt::format("{}", value); }, experiment.axes[i]);
    const auto of = configure(experiment, graphs);
    Ran ran;
    ran.routing = core::workload::routing_account(of.model, of.strategy);
    ran.peak_bytes = core::memory::peak(of.model, of.strategy, of.gpu).total();
    ran.fits = static_cast<double>(ran.peak_bytes) <= of.gpu.memory_gib * (1 << 30);
    if (ran.fits) {
      const auto result = laboratory.run(laboratory.world(of), results);
      ran.step_s = core::seconds(result.step_ps);
      ran.stall_s = result.breakdown.stall_s + result.breakdown.exposed_ep_s;
      ran.recompute_s = result.breakdown.recompute_s;
    }
    all[label] = ran;
  }
  return all;
}

}  // namespace

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
