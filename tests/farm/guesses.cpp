// --no-guesses, and what answers say of the guesses in them.
#include <catch2/catch.hpp>

#include "tests/farm/said.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::farm::testing;

namespace {

Said run(const std::string& gpu, const std::vector<std::string>& more) {
  TemporaryFolder folder;
  folder.put("s.yaml",
             "base:\n"
             "  model: {layers: 2, hidden: 4096, heads: 32, vocabulary: 32768, sequence: 2048}\n"
             "  cluster: {gpu: " +
                 gpu +
                 ", nodes: 1, gpus_per_node: 8, nic_gbps: 400}\n"
                 "  strategy: {tp: 2, global_batch: 8}\n");
  std::vector<std::string> words{"run", (folder.path / "s.yaml").string()};
  words.insert(words.end(), more.begin(), more.end());
  return say(words);
}

}  // namespace

TEST_CASE("MetaX GPUs run, and the answer names its guesses and what they are worth") {
  for (const char* gpu : {"metax_c500", "metax_c550"}) {
    CAPTURE(gpu);
    const Said said = run(gpu, {});
    CHECK(said.exit_code == 0);
    CHECK_THAT(said.output, Catch::Contains("\nguessed           -") && Catch::Contains("matrix_tflops 2") &&
                                Catch::Contains(" to "));
  }
  CHECK_THAT(run("h100_sxm", {}).output, !Catch::Contains("\nguessed  "));
}

TEST_CASE("with --no-guesses nothing runs that rests on a guess, and all else does") {
  CHECK(run("metax_c500", {"--no-guesses"}).exit_code == 2);
  CHECK(run("metax_c500", {"--no-guesses"}).output.empty());
  const std::vector<std::string> own{"--no-guesses", "--set", "strategy.stack.host_kernel_us=30", "--set",
                                     "strategy.stack.host_collective_us=10"};
  CHECK(run("h100_sxm", own).exit_code == 0);
  CHECK(run("h100_sxm", {"--no-guesses", "--set", "strategy.stack.attention=flash"}).exit_code == 2);  // its kernels
}

TEST_CASE("a layout that does not fit into memory says so, and is no success") {
  const Said large = run("h100_sxm", {"--set", "model.layers=200", "--set", "strategy.tp=1"});
  CHECK(large.exit_code == 3);
  CHECK_THAT(large.output, Catch::Contains("out_of_memory"));
}
