// The Inspector's JSON becomes rows of nccl-tests: the examples of its README, whose rates say what its sizes mean.
#include "experiments/nccl/nccl_inspector.hpp"

#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/base/error.hpp"

using namespace manyworlds;
using experiments::import::is_nccl_inspector;
using experiments::import::parse_nccl_inspector;

namespace {

std::string object(const std::string& collective, std::int64_t bytes, double time_us) {
  return fmt::format(
      "{{\"header\": {{\"id\": \"0x7f\", \"rank\": 2, \"n_ranks\": 8, \"nnodes\": 1}},\n \"coll_perf\": {{\"coll\": "
      "\"{}\", "
      "\"coll_sn\": 1, \"coll_msg_size_bytes\": {}, \"coll_exec_time_us\": {}}}}}\n",
      collective, bytes, time_us);
}

}  // namespace

TEST_CASE("sizes of the Inspector are those of nccl-tests") {
  const std::string text = object("AllReduce", 17179869184, 61974) + object("ReduceScatter", 2147483648, 41057);
  REQUIRE(is_nccl_inspector(text));
  const auto rows = parse_nccl_inspector(text, "log.json");
  REQUIRE(rows.size() == 2);
  const auto algbw = [&](std::size_t row) { return std::stod(rows[row].bytes) / std::stod(rows[row].time_us) * 1e-3; };
  CHECK(rows[0].operation == "all_reduce");
  CHECK(algbw(0) == Approx(277.210914).epsilon(1e-6));
  CHECK(algbw(1) == Approx(418.439467).epsilon(1e-6));
  CHECK((rows[1].ranks == 8 && rows[1].nodes == 1 && rows[1].line == 3));
}

TEST_CASE("repeated collectives are one row with their median") {
  const auto rows = parse_nccl_inspector(object("AllGather", 1024, 30) + object("AllGather", 1024, 10) +
                                             object("AllGather", 1024, 20) + object("Unheard", 1024, 1),
                                         "log.json");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].time_us == "20");
  CHECK(rows[0].bytes == "8192");
}

TEST_CASE("a torn log of the Inspector is refused with its line") {
  const std::string text = object("AllReduce", 1024, 5);
  CHECK_THROWS_WITH(parse_nccl_inspector(text + text.substr(0, 40), "log.json"), Catch::Contains("log.json:3: "));
  CHECK_THROWS_WITH(parse_nccl_inspector("{\"coll_perf\": {\"coll\": \"AllReduce\"}}", "log.json"),
                    Catch::Contains("header"));
  CHECK_THROWS_WITH(parse_nccl_inspector("{}", "log.json"), Catch::Contains("no collective"));
}
