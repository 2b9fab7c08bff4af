// Options of `manyworlds program` that are of other formats are refused, and whose they are is said.
#include "experiments/traces/reader_options.hpp"

#include "tests/experiments/given_steps.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments::traces;

TEST_CASE("an option of other formats is refused, and whose it is is said") {
  const auto said = [](std::string_view format, const std::vector<std::string>& given) {
    return error_of([&] { check_options(format, given, "a"); });
  };
  CHECK(said(format::kProgram, {"to", "step"}) ==
        "a: --step is of traces of PyTorch's profiler and exports of Nsight Systems, not of a program file");
  CHECK(said(format::kSimai, {"group-sizes"}) == "a: --group-sizes is of a table of AICB, not of a workload of SimAI");
  CHECK(said(format::kGoal, {"ranks"}) ==
        "a: --ranks is of a workload of SimAI, a table of AICB and Chakra traces, not of a schedule of GOAL");
  CHECK(said(format::kKineto, {"step", "alike", "host-traces", "collectives", "to", "json"}) == "no error");
  CHECK(said("", {"step"}) == "no error");
}

TEST_CASE("values of an option may be of different formats") {
  const auto takes = [](std::string_view format, const std::string& how) {
    return error_of([&] { check_options(format, {"collectives", "collectives " + how}, "a"); }) == "no error";
  };
  CHECK(takes(format::kNsys, "as-recorded"));
  CHECK(takes(format::kNsys, "simulated"));
  CHECK(takes(format::kChakra, "simulated"));
  CHECK(takes(format::kChakra, "as-astra"));
  CHECK(!takes(format::kNsys, "as-astra"));
  CHECK(!takes(format::kChakra, "without-waiting"));
  CHECK(!takes(format::kGoal, "simulated"));
}
