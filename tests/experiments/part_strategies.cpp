// The sweep we ship over strategies that differ by part: they rank by screening as they do in packets.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "core/step/run/simulation_context.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

/// Returns the step times of the sweep, in the order of its strategies.
std::vector<double> steps_of(const std::vector<std::string>& overrides) {
  const Sweep sweep = read_sweep(source_folder() + "/experiments/sweeps/part_strategies.yaml", overrides);
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  GraphCache graphs;
  std::vector<double> steps;
  for (const Experiment& experiment : sweep.experiments)
    steps.push_back(core::seconds(context.run(context.compile(configure(experiment, graphs)), results).step_ps));
  return steps;
}

}  // namespace

TEST_CASE("twelve strategies of one model, by part, rank by screening as packets rank them") {
  // As Proteus' strategies (Duan et al. 2024) do. Pairs within 2 % of each other in packets have no order.
  const std::vector<double> packets = steps_of({}), screened = steps_of({"fidelity=analytic"});
  REQUIRE(packets.size() == 12);
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < packets.size(); ++a)
    for (std::size_t b = 0; b < packets.size(); ++b) {
      if (packets[b] < 1.02 * packets[a]) continue;
      CAPTURE(a, b, packets[a], packets[b]);
      CHECK(screened[a] < screened[b]);
      ++pairs;
    }
  CHECK(pairs >= 60);  // of 66
}

TEST_CASE("of strategies by part the best shares out attention by samples and shards the feed-forward network") {
  const std::vector<double> packets = steps_of({});
  const auto best = std::min_element(packets.begin(), packets.end()) - packets.begin();
  CHECK(best == 10);  // tp 8, data_parts attention
}
