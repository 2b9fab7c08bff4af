// Slow ranks are found by what they do themselves, and nobody is blamed for waiting.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "core/step/run/simulation_context.hpp"
#include "experiments/analysis/stragglers.hpp"
#include "tests/experiments/sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;
using core::step::RankId;

namespace {

/// 4 nodes of 4 GPUs; each node shares all experts, so its communicators have peers in the other nodes.
const std::string kExperts =
    "base:\n"
    "  model: {layers: 2, hidden: 512, heads: 8, vocabulary: 4096, sequence: 1024, experts: 8, experts_per_token: 2}\n"
    "  cluster: {gpu: a100_40, nodes: 4, gpus_per_node: 4, nic_gbps: 100}\n"
    "  topology: rail_optimized\n"
    "  strategy: {ep: 4, micro_batch: 1, global_batch: 32}\n";

StragglerReport examine(const std::vector<std::string>& faults, const MeasurementModel& measurement,
                        const std::string& text = kExperts) {
  GraphCache graphs;
  core::step::SimulationContext context;
  core::step::IsolatedResults results;
  const core::step::CompiledStep compiled = context.compile(configure(read(text, faults).experiments.front(), graphs));
  core::step::Recording recording;
  for (const RankId rank : compiled.layout().rank_ids()) recording.ranks.push_back({rank, 0, 1});
  context.run(compiled, results, &recording);
  return find_stragglers(compiled, recording, measurement);
}

MeasurementModel seeded(std::int64_t seed) {
  MeasurementModel result;
  result.seed = seed;
  return result;
}

}  // namespace

TEST_CASE("in 100 measurements of a healthy cluster nobody is called slow") {
  for (std::int64_t seed = 1; seed <= 100; ++seed) {
    const StragglerReport report = examine({}, seeded(seed));
    CAPTURE(seed);
    CHECK(report.found.empty());
    CHECK(report.unexplained.empty());
  }
}

TEST_CASE("in 100 measurements the rank whose kernels are a fifth slower is found, and no other") {
  for (std::int64_t seed = 1; seed <= 100; ++seed) {
    const auto rank = static_cast<std::uint32_t>(seed * 7 % 16);
    const StragglerReport report = examine({fmt::format("faults.slow_gpus=gpu{}=0.8", rank)}, seeded(seed));
    CAPTURE(seed, rank);
    REQUIRE(report.found.size() == 1);
    CHECK(report.found[0].rank == RankId(rank));
    CHECK(report.found[0].node == rank / 4);
    REQUIRE(report.found[0].seen.size() == 3);  // all phases, and none of its communication
    for (const Outlier<RankId>& one : report.found[0].seen) {
      CHECK(one.level == StragglerLevel::phase);
      CHECK(one.slower == Approx(0.25).margin(0.06));  // the time at a pace of 0.8
    }
    CHECK(report.max_rank == RankId(rank));
  }
}

TEST_CASE("in 100 measurements the rank with a NIC at 0.8 of its rate is found, and no other") {
  for (std::int64_t seed = 1; seed <= 100; ++seed) {
    const auto rank = static_cast<std::uint32_t>(seed * 5 % 16);
    const StragglerReport report = examine({fmt::format("faults.slow=gpu{}-rail{}=0.8", rank, rank % 4)}, seeded(seed));
    CAPTURE(seed, rank);
    REQUIRE(report.found.size() == 1);
    CHECK(report.found[0].rank == RankId(rank));
    std::set<std::string> seen;
    for (const Outlier<RankId>& one : report.found[0].seen) {
      CHECK(one.level == StragglerLevel::communication);
      CHECK(one.slower == Approx(0.25).margin(0.1));
      seen.insert(one.activity);
    }
    CHECK(seen.count("sends between nodes") == 1);
    CHECK(seen.count("sends inside the node") == 0);
  }
}

TEST_CASE("in 100 measurements the rank that makes one all-to-all a fifth longer is found, and no other") {
  for (std::int64_t seed = 1; seed <= 100; ++seed) {
    const auto rank = static_cast<std::uint32_t>(seed * 3 % 16);
    const StragglerReport report =
        examine({fmt::format("faults.slow=gpu{}-nvswitch{}={:.6f}", rank, rank / 4, 1 / 1.25)}, seeded(seed));
    CAPTURE(seed, rank);
    REQUIRE(report.found.size() == 1);
    CHECK(report.found[0].rank == RankId(rank));
    std::map<std::string, double> seen;
    for (const Outlier<RankId>& one : report.found[0].seen) seen[one.activity] = one.slower;
    REQUIRE(seen.count("expert all_to_all") == 1);
    CHECK(seen.at("expert all_to_all") == Approx(0.2).margin(0.1));
    CHECK(seen.count("sends inside the node") == 1);
    CHECK(seen.count("sends between nodes") == 0);
  }
}

TEST_CASE("two slow nodes of two kinds are told from the peers of their kind, not from the faster kind") {
  const std::string mixed = with(kExperts, "nodes: 4,", "nodes: 4, second: {nodes: 4, gpu: v100_32},");
  CHECK(examine({"strategy.tp=1", "cluster.gpu.memory_gib=1000"}, seeded(1), mixed).found.empty());
  const StragglerReport report = examine({"faults.slow_gpus=gpu1=0.8, node5=0.8"}, seeded(1), mixed);
  std::vector<std::uint32_t> ranks;
  for (const Straggler& one : report.found) ranks.push_back(one.rank.value());
  CHECK(ranks == std::vector<std::uint32_t>{1, 20, 21, 22, 23});
}

TEST_CASE("a rank that is slow in one pass alone is seen at L1, and needs three peers to be seen at all") {
  const auto sample = [](std::uint32_t subject, const std::string& peers, double seconds) {
    return Sample<RankId>{RankId(subject), StragglerLevel::pass, "backward, chunk 1", peers, seconds};
  };
  const auto found = outliers<RankId>(
      {sample(0, "a", 1), sample(1, "a", 1.3), sample(2, "a", 1), sample(3, "b", 1), sample(4, "b", 1.5)}, {});
  REQUIRE(found.size() == 1);
  CHECK(found[0].subject == RankId(1));
  CHECK(found[0].slower == Approx(0.3));
  CHECK(found[0].level == StragglerLevel::pass);
}

TEST_CASE("what is measured is off by the noise, and by nothing without") {
  std::vector<Sample<RankId>> samples(10'000, {RankId(0), StragglerLevel::phase, "forward", "a", 1});
  MeasurementModel measurement;
  measurement.steps = 1;
  double sum = 0, squares = 0;
  std::size_t spikes = 0;
  for (const Sample<RankId>& one : with_noise(samples, measurement)) {
    if (one.seconds > 1.3) {
      ++spikes;
      continue;
    }
    sum += one.seconds - 1, squares += (one.seconds - 1) * (one.seconds - 1);
  }
  CHECK(std::abs(sum / 1e4) < 0.001);
  CHECK(std::sqrt(squares / 1e4) == Approx(0.02).epsilon(0.05));
  CHECK(spikes == Approx(100).margin(30));  // one in a hundred
  measurement.noise = 0, measurement.steps = 9;
  for (const Sample<RankId>& one : with_noise(samples, measurement)) REQUIRE(one.seconds == 1);
}
