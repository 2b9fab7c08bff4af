// The sweep we ship over shardings of embedding tables: what screening ranks first is what packets rank first.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "core/step/run/simulation_context.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

constexpr const char* kShardings[] = {"table", "row", "column", "replicated", "mixed"};

/// Step times of a network, by sharding.
using Steps = std::map<std::string, double>;

/// Returns the steps of the sweep by the rate of network interfaces.
std::map<double, Steps> steps_of(const std::vector<std::string>& overrides) {
  const Sweep sweep = read_sweep(source_folder() + "/experiments/sweeps/table_sharding.yaml", overrides);
  std::map<double, Steps> all;
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  GraphCache graphs;
  for (const Experiment& experiment : sweep.experiments) {
    const auto config = configure(experiment, graphs);
    std::string sharding;
    for (const char* name : kShardings)
      if (config.model.architecture_text.find(std::string("sharding: ") + name + ",") != std::string::npos)
        sharding = name;
    CAPTURE(config.model.architecture_text);
    REQUIRE_FALSE(sharding.empty());
    const double gbps = std::get<double>(experiment.axes.at(0));
    all[gbps][sharding] = core::seconds(context.run(context.compile(config), results).step_ps);
  }
  return all;
}

std::string first_of(const Steps& steps) {
  return std::min_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

}  // namespace

TEST_CASE("the sharding of tables that screening ranks first is the one that packets rank first") {
  const auto screened = steps_of({"fidelity=analytic"}), simulated = steps_of({});
  REQUIRE(screened.size() == 2);
  for (const auto& [gbps, steps] : simulated) {
    CAPTURE(gbps);
    REQUIRE(steps.size() == 5);
    CHECK(first_of(screened.at(gbps)) == first_of(steps));
    for (const auto& [sharding, step_s] : steps) {
      CAPTURE(sharding);
      CHECK(screened.at(gbps).at(sharding) <= step_s);  // no two transfers share a link
    }
    // A rank that has the table with most look-ups waits for nobody, and all others for it.
    CHECK(steps.at("mixed") < steps.at("table"));
    // All gradients of all rows are summed, and all rows written.
    CHECK(steps.at("replicated") > 2 * steps.at("mixed"));
  }
}

TEST_CASE("a step of shared tables takes as long composed as with all packets in one event loop") {
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  for (const char* sharding : kShardings) {
    CAPTURE(sharding);
    const std::string text =
        "base:\n  model: {layers: 1, hidden: 32, vocabulary: 1, sequence: 1, position: none, tied_embeddings: false, "
        "dropout: false, architecture: {embedding: false, head: false, blocks: {a: [{tables: {rows: [5000, 400, 90, "
        "10, "
        "70], lookups: [2, 1, 9, 1, 1], width: 64, replicated_rows: 20, index_bytes: 8, sharding: " +
        std::string(sharding) +
        ", dense_inputs: 13, dense_widths: [64, 64], norms: none, residual: false}}, {cross_interaction: {features: 6, "
        "width: 64, layers: 2, rank: 16, norms: none, residual: false}}]}, layers: [a]}}\n"
        "  cluster: {gpu: a100_40, nodes: 2, gpus_per_node: 4, nic_gbps: 200}\n"
        "  topology: {rail_optimized: {oversubscription: 1}}\n  transport: dcqcn\n"
        "  strategy: {ep: 8, micro_batch: 64, global_batch: 512}\n";
    std::map<std::string, core::Time> steps;
    for (const std::string composition : {"composed", "coupled"}) {
      GraphCache graphs;
      const auto config = configure(read(text, {"composition=" + composition}).experiments.at(0), graphs);
      steps[composition] = context.run(context.compile(config), results).step_ps;
    }
    CHECK(steps["composed"] > 0);
    CHECK(steps["composed"] == steps["coupled"]);
  }
}
