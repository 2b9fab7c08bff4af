// What the time of a step's kernels is based on: shares in the results, which add up.
#include <catch2/catch.hpp>

#include "tests/farm/said.hpp"
#include "tests/farm/sweep_samples.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm;
using namespace manyworlds::farm::testing;

namespace {

constexpr const char* kShares[] = {"time_measured", "time_interpolated", "time_modelled", "time_guessed"};

/// The shares of an experiment with heads, width and micro-batch as tables of GEMMs have them.
std::map<std::string, double> shares(const std::vector<std::string>& sets) {
  TemporaryFolder folder;
  folder.put("s.yaml",
             "base:\n"
             "  model: {layers: 2, hidden: 4096, heads: 32, vocabulary: 32768, sequence: 2048}\n"
             "  cluster: {gpu: h100_sxm, nodes: 1, gpus_per_node: 8, nic_gbps: 400}\n"
             "  strategy: {tp: 2, global_batch: 8}\n");
  std::vector<std::string> words{"run", (folder.path / "s.yaml").string(), "--json"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const Said said = say(words);
  REQUIRE(said.exit_code == 0);
  std::map<std::string, double> found;
  for (const std::string name : kShares) {
    const auto at = said.output.find("\"" + name + "\": ");
    REQUIRE(at != std::string::npos);
    found[name] = std::stod(said.output.substr(at + name.size() + 4));
  }
  return found;
}

double sum(const std::map<std::string, double>& shares) {
  double all = 0;
  for (const auto& [name, share] : shares) all += share;
  return all;
}

}  // namespace

TEST_CASE("shares of kernel time add up, and GEMMs forward are measured where the table has them") {
  const auto plain = shares({});
  CHECK(sum(plain) == Approx(1));
  CHECK(plain.at("time_measured") > 0.05);
  CHECK(plain.at("time_interpolated") > plain.at("time_measured"));  // two gradients for each
  CHECK(plain.at("time_guessed") == 0);
  const auto none = shares({"cluster.gpu.measured_shapes=none"});
  CHECK(none.at("time_modelled") == Approx(1));
  const auto triton = shares({"strategy.stack.attention=flash"});
  CHECK(triton.at("time_guessed") > 0);
  CHECK(sum(triton) == Approx(1));
}
