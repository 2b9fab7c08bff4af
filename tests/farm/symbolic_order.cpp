// The order of layouts that reads no hardware, beside simulations of them on two clusters.
#include "farm/search/symbolic_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "core/step/layout/memory_requirement.hpp"
#include "farm/search/search_report.hpp"
#include "farm/search/search_space.hpp"
#include "tests/farm/sweep_samples.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

using Axes = std::vector<core::OptionValue>;

experiments::Sweep space_on(const std::string& model, std::int64_t gpus, const std::string& cluster) {
  const experiments::Catalog catalog;
  SearchOptions options;
  options.model = model;
  options.gpus = gpus;
  options.global_batch = 4 * gpus;
  options.sequence = 2048;
  if (cluster.empty())
    options.gpus_per_node = 8;
  else
    options.cluster = cluster;
  const SearchSpace space = search_space(options, catalog);
  return experiments::parse_sweep(space.yaml, space.name + ".yaml", {}, catalog);
}

bool fits(const experiments::Experiment& experiment) {
  const core::step::MemoryRequirement memory = memory_requirement_of(experiment.config().configuration);
  return memory.required.total() <= memory.memory_bytes();
}

/// Layouts that all sweeps have and that fit on the clusters of all but the first, `count` of them drawn: their indices
/// by sweep.
std::vector<std::vector<std::size_t>> drawn(const std::vector<experiments::Sweep>& sweeps, std::size_t count,
                                            std::uint32_t seed) {
  std::vector<std::map<Axes, std::size_t>> known(sweeps.size());
  for (std::size_t i = 0; i < sweeps.size(); ++i)
    for (std::size_t at = 0; at < sweeps[i].experiments.size(); ++at) known[i][sweeps[i].experiments[at].axes] = at;
  std::vector<Axes> all;
  for (const auto& [axes, at] : known[0])
    if (std::all_of(known.begin(), known.end(), [&](const auto& one) { return one.count(axes) > 0; }))
      all.push_back(axes);
  std::mt19937 random(seed);
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  std::vector<std::vector<std::size_t>> result(sweeps.size());
  for (const Axes& axes : all) {
    bool fit = result[0].size() < count;
    for (std::size_t i = 1; i < sweeps.size() && fit; ++i) fit = fits(sweeps[i].experiments[known[i].at(axes)]);
    for (std::size_t i = 0; i < sweeps.size() && fit; ++i) result[i].push_back(known[i].at(axes));
  }
  return result;
}

/// Kendall's tau-b, pair by pair.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double agree = 0, pairs_a = 0, pairs_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double x = a[i] < a[j] ? -1 : a[i] > a[j] ? 1 : 0, y = b[i] < b[j] ? -1 : b[i] > b[j] ? 1 : 0;
      agree += x * y, pairs_a += x * x, pairs_b += y * y;
    }
  return agree / std::sqrt(pairs_a * pairs_b);
}

std::vector<double> step_times(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows, bool packets) {
  const experiments::Sweep part = packets ? simulated_part(sweep, rows, Simulation::packets) : part_of(sweep, rows);
  const SweepJob job(serialize_job(part, {}));
  const std::vector<Outcome> outcomes = run_all(job);
  const io::Results results = make_results(part, job.plan(), looking_into(outcomes));
  std::vector<double> times;
  for (std::size_t row = 0; row < rows.size(); ++row)
    times.push_back(results.experiments.find("step_time_s")->number_at(row));
  return times;
}

/// The weights of the layouts, in their order.
std::vector<double> weights(const experiments::Sweep& sweep, const std::vector<std::size_t>& rows) {
  std::vector<double> result(rows.size());
  const SymbolicOrder order = symbolic_order(part_of(sweep, rows), {}, {});
  for (const WeighedLayout& one : order.layouts) result.at(one.experiment) = one.volumes.weight;
  return result;
}

struct Case {
  const char* model;
  std::int64_t gpus;
  bool packets;
};

}  // namespace

TEST_CASE("an order without hardware is that of simulations on two clusters, by Kendall's tau") {
  for (const Case& one :
       {Case{"gpt3-1.3b", 16, true}, Case{"llama2-7b", 64, false}, Case{"qwen3-30b-a3b", 64, false}}) {
    const std::vector<experiments::Sweep> sweeps{space_on(one.model, one.gpus, ""),
                                                 space_on(one.model, one.gpus, "dgx_h100_superpod"),
                                                 space_on(one.model, one.gpus, "dgx_a100_superpod")};
    const auto rows = drawn(sweeps, 50, 1);
    REQUIRE(rows[0].size() == 50);
    const std::vector<double> weighed = weights(sweeps[0], rows[0]);
    for (const std::size_t cluster : {1u, 2u}) {
      const std::vector<double> simulated = step_times(sweeps[cluster], rows[cluster], one.packets);
      const double tau = kendall_tau(weighed, simulated);
      UNSCOPED_INFO(one.model << " on cluster " << cluster << ": tau " << tau);
      CHECK(tau >= 0.7);
    }
  }
}

TEST_CASE("an order without hardware reads neither GPU nor fabric") {
  const experiments::Sweep nameless = space_on("gpt3-1.3b", 16, ""),
                           h100 = space_on("gpt3-1.3b", 16, "dgx_h100_superpod");
  const auto rows = drawn({nameless, h100}, 40, 3);
  CHECK(weights(nameless, rows[0]) == weights(h100, rows[1]));
}

TEST_CASE("layouts whose tensors take more than a memory given are left out of the order") {
  const experiments::Sweep sweep = space_on("gpt3-1.3b", 16, "");
  const SymbolicOrder all = symbolic_order(sweep, {}, {}), small = symbolic_order(sweep, {}, 10LL << 30);
  CHECK(all.layouts.size() == sweep.experiments.size());
  CHECK(small.layouts.size() + small.too_large == all.layouts.size());
  REQUIRE(small.too_large > 0);
  for (const WeighedLayout& one : small.layouts) CHECK(one.tensor_bytes <= 10LL << 30);
  const std::string text = symbolic_text(sweep, small, 5);
  CHECK(text.find("No hardware was read") != std::string::npos);
  CHECK(symbolic_json(sweep, small, 5).at("order").size() == 5);
}
