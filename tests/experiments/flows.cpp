// Tables of flows: every row is read or refused with its line.
#include <catch2/catch.hpp>

#include "experiments/import/flows.hpp"

#include "core/base/error.hpp"

using namespace manyworlds;
using experiments::import::parse_flows;

namespace {

std::string error_of(const std::string& text) {
  try {
    parse_flows(text, "flows.csv", 8);
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("flows are read in the order of their lines, also with Windows line ends and no last one") {
  const auto flows = parse_flows("src,dst,bytes,start_ps\r\n5,0,2000000,0\r\n0,7,1,12", "flows.csv", 8);
  REQUIRE(flows.size() == 2);
  CHECK(flows[0].source == 5);
  CHECK(flows[0].destination == 0);
  CHECK(flows[0].bytes == 2'000'000);
  CHECK(flows[1].destination == 7);
  CHECK(flows[1].start_ps == 12);
}

TEST_CASE("a bad row is refused by file, line and field, saying what would be right") {
  using Catch::Contains;
  using Catch::StartsWith;
  const std::string head = "src,dst,bytes,start_ps\n";
  CHECK_THAT(error_of("source,dst,bytes,start_ps\n0,1,2,3\n"), StartsWith("flows.csv:1: ") && Contains("src,dst"));
  CHECK_THAT(error_of(head), StartsWith("flows.csv:1: "));
  CHECK_THAT(error_of(""), StartsWith("flows.csv:1: "));
  CHECK_THAT(error_of(head + "0,1,2,3\n0,8,2,3\n"), StartsWith("flows.csv:3: dst") && Contains("from 0 to 7"));
  CHECK_THAT(error_of(head + "-1,1,2,3\n"), StartsWith("flows.csv:2: src"));
  CHECK_THAT(error_of(head + "1,1,2,3\n"), Contains("both 1"));
  CHECK_THAT(error_of(head + "0,1,0,3\n"), StartsWith("flows.csv:2: bytes"));
  CHECK_THAT(error_of(head + "0,1,1e6,3\n"), Contains("'1e6'"));
  CHECK_THAT(error_of(head + "0,1,99999999999999999999,3\n"), StartsWith("flows.csv:2: bytes"));
  CHECK_THAT(error_of(head + "0,1,2,-3\n"), StartsWith("flows.csv:2: start_ps"));
  CHECK_THAT(error_of(head + "0,1,2\n"), Contains("four integers"));
  CHECK_THAT(error_of(head + "0,1,2,3,4\n"), Contains("four integers"));
  CHECK_THAT(error_of(head + "\n0,1,2,3\n"), StartsWith("flows.csv:2: "));
  CHECK_THAT(error_of(head + "0, 1,2,3\n"), Contains("' 1'"));
}
