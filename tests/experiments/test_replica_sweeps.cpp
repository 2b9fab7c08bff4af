// The sweeps of replicas that we ship show what they are for.
#include <catch2/catch.hpp>

#include "run_sweep.hpp"

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
