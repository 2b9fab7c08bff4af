// Schedules from files: what is written is what is read, and what cannot be is refused with its line.
#include "experiments/import/schedule_file.hpp"

#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/schedule/stage_map.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/temporary_folder.hpp"

using namespace manyworlds;
namespace testing = manyworlds::experiments::testing;
using namespace manyworlds::core::workload;
using namespace manyworlds::experiments::import;
using Catch::Matchers::Contains;

namespace {

/// As PyTorch writes it: a line a rank, stage, kind and micro-batch in each cell.
std::string text_of(const std::vector<PassOrder>& orders, const StageMap& stage_map) {
  std::string text;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const PassOrder& order = orders[rank];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto cell = [&](const PipelinePass& slot) {
        return fmt::format("{}{}{}", stage_map.of(static_cast<std::int64_t>(rank), slot.chunk),
                           "FBIW"[static_cast<std::size_t>(slot.kind)], slot.micro_batch);
      };
      text += i > 0 ? "," : "";
      if (order[i].overlaps_next) {
        text += fmt::format("({};{})OVERLAP_F_B", cell(order[i]), cell(order[i + 1]));
        ++i;
      } else {
        text += cell(order[i]);
      }
    }
    text += "\n";
  }
  return text;
}

std::string fault_of(const std::string& text) {
  try {
    parse_schedule(text, "s.csv");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every schedule that is no mirror is read from a file as it was written") {
  std::size_t read = 0;
  for (const ScheduleType& type : schedules())
    for (const std::int64_t ranks : {2, 3, 4, 8})
      for (const std::int64_t chunks : {1, 2, 3}) {
        const Pipeline pipeline{ranks, 2 * ranks, chunks};
        if (type.stage_placement == StagePlacement::bidirectional ||
            !schedule_infeasible_reason(type, pipeline).empty())
          continue;
        CAPTURE(type.name, ranks, chunks);
        const auto orders = type.orders(pipeline);
        const WrittenSchedule result = parse_schedule(text_of(orders, {type.stage_placement, ranks, chunks}), "s.csv");
        REQUIRE(result.orders == orders);
        REQUIRE(result.stage_placement == type.stage_placement);
        REQUIRE(result.ranks == ranks);
        REQUIRE(result.chunks == chunks);
        REQUIRE(result.micro_batches == 2 * ranks);
        ++read;
      }
  CHECK(read > 30);
}

TEST_CASE("comments, empty cells and empty lines are passed over") {
  const WrittenSchedule result = parse_schedule("# two ranks\n\n0F0,,0F1,0B0, 0B1\n,1F0,1I0,1W0,1F1,1B1,\n", "s.csv");
  CHECK(result.ranks == 2);
  CHECK(result.micro_batches == 2);
  CHECK(result.orders[1][1] == PipelinePass{PassKind::input_gradient, 0, 0});
}

TEST_CASE("a schedule that is none is refused with its line and what is wrong") {
  CHECK_THAT(fault_of(""), Contains("the schedule has no rank"));
  CHECK_THAT(fault_of("0F0,0B0\n1F0,1X0\n"), Contains("s.csv:2") && Contains("'1X0' is no action"));
  CHECK_THAT(fault_of("0F0,0B0,0F\n"), Contains("'0F' is no action"));
  CHECK_THAT(fault_of("(0B0;0F0)OVERLAP_F_B\n"), Contains("is no action"));
  CHECK_THAT(fault_of("0F99999999\n"), Contains("micro-batches below 1000000"));
  CHECK_THAT(fault_of("0F0,0B0\n0F1,0B1\n"), Contains("s.csv:2") && Contains("stage 0 is on rank 0 and on rank 1"));
  CHECK_THAT(fault_of("0F0,0B0\n2F0,2B0\n"), Contains("without gaps"));
  CHECK_THAT(fault_of("1F0,1B0\n0F0,0B0\n"), Contains("in a loop"));
  CHECK_THAT(fault_of("0F0,0B0,0F0\n"), Contains("forward of micro-batch 0, chunk 0 is there twice"));
  CHECK_THAT(fault_of("0B0,0F0\n"), Contains("backward of micro-batch 0, chunk 0 comes too early"));
  CHECK_THAT(fault_of("0F0,0I0\n"), Contains("weight gradients of micro-batch 0, chunk 0 is missing"));
  CHECK_THAT(fault_of("0F0,0B0,0F1,0B1\n1F0,1B0\n"),
             Contains("s.csv:2") && Contains("rank 1: forward of micro-batch 1, chunk 0 is missing"));
}

TEST_CASE("orders that wait for each other for ever are refused with the two passes") {
  // Rank 0 wants the gradients of micro-batch 0 before it runs micro-batch 1 forward; rank 1 begins with micro-batch 1.
  CHECK_THAT(fault_of("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n"),
             Contains("the schedule cannot run: backward of micro-batch 0, chunk 0 on rank 0 waits for backward of "
                      "micro-batch 0, chunk 0 on rank 1, which is queued behind forward of micro-batch 1, chunk 0"));
}

TEST_CASE("a schedule from a file runs as the one it was written from, and only where it fits") {
  // The layout of kSingle: two pipeline ranks, four micro-batches.
  const TemporaryFolder folder;
  folder.put("s.csv",
             text_of(schedule_type(schedule_by_name("zb_h1")).orders({2, 4, 1}), {StagePlacement::loop, 2, 1}));
  const std::string file = "strategy.schedule_file=" + (folder / "s.csv").string();
  const auto orders_of = [](const std::vector<std::string>& sets) {
    const auto sweep = testing::read(testing::kSingle, sets);
    const auto configuration = sweep.experiments.front().config().configuration;
    return pipeline_orders(configuration.model, configuration.strategy, configuration.gpu);
  };
  CHECK(orders_of({file, "strategy.schedule=written"}) == orders_of({"strategy.schedule=zb_h1"}));
  CHECK_THAT(testing::error_of(testing::kSingle, {file}), Contains("violates rule schedule_file_wanted: "));
  CHECK_THAT(testing::error_of(testing::kSingle, {file, "strategy.schedule=written", "strategy.global_batch=16"}),
             Contains("the schedule_file is for pp 2, virtual_stages 1 and 4 micro-batches"));
  folder.put("s.csv", "0F0,0B0\n1F0\n");
  CHECK_THAT(testing::error_of(testing::kSingle, {file, "strategy.schedule=written"}),
             Contains("s.csv:2") && Contains("is missing"));
}

TEST_CASE("files that a sweep names have 64 MiB together, whatever they are called") {
  const TemporaryFolder folder;
  const std::string orders =
      text_of(schedule_type(schedule_by_name("zb_h1")).orders({2, 4, 1}), {StagePlacement::loop, 2, 1}) + "#";
  folder.put("s.csv", orders + std::string((8u << 20) - orders.size(), ' '));
  const auto named = [&](int times) {  // the same file by another path each time
    std::string paths, path = folder.path.string();
    for (int i = 0; i < times; ++i) paths += (i == 0 ? "" : ", ") + (path += "/.") + "/s.csv";
    return testing::error_of(std::string(testing::kSingle) + "axes: {strategy.schedule_file: [" + paths + "]}\n",
                             {"strategy.schedule=written"});
  };
  CHECK(named(8) == "(no error)");
  CHECK_THAT(named(9), Contains("more than 67108864 bytes together"));
}

TEST_CASE("activations leave the GPU under no order that runs two passes as one, named or written") {
  const TemporaryFolder folder;
  const auto written = [&](const char* name) {
    folder.put("s.csv",
               text_of(schedule_type(schedule_by_name(name)).orders({2, 4, 2}), {StagePlacement::v_shape, 2, 2}));
    return testing::error_of(testing::kSingle,
                             {"strategy.schedule=written", "strategy.schedule_file=" + (folder / "s.csv").string(),
                              "strategy.virtual_stages=2", "strategy.offload_modules=attn_norm"});
  };
  CHECK_THAT(written("dualpipev"), Contains("violates rule offload_alone: "));
  CHECK(written("zb_v") == "(no error)");
}
