// Ranks that are held to their recording while others change.
#include "experiments/edits/edited.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/experiments/kineto_traces.hpp"

using namespace manyworlds::tests;
using namespace manyworlds::experiments::edits;
using namespace manyworlds::experiments::programs;
using namespace manyworlds;

namespace {

constexpr Time kUs = core::kMicrosecond;
constexpr std::int64_t kBytes = 1 << 16;

/// Rank 0 was recorded: 10 us at 0, 10 us at 50, an all-reduce at 100 and 10 us at 130. Rank 1 was not, and reaches the
/// all-reduce after `other_us`; 10 us follow.
std::string two_ranks(double other_us) {
  return fmt::format(
      "{{\"manyworlds_program\":1,\"name\":\"two\",\"slowdown\":{{\"by\":\"none\"}}}}\n{{\"dimension\":\"dp\"}}\n"
      "{{\"groups\":\"dp\",\"ranks\":[[0,1]]}}\n{{\"program\":\"p\",\"ranks\":\"0\",\"streams\":[\"s\"]}}\n"
      "{{\"allocate\":512}}\n{{\"kernel\":\"a\",\"us\":10,\"stream\":\"s\",\"began\":0}}\n"
      "{{\"kernel\":\"b\",\"us\":10,\"stream\":\"s\",\"began\":50}}\n{{\"free\":512}}\n"
      "{{\"collective\":\"all_reduce\",\"in\":\"dp\",\"bytes\":{0},\"stream\":\"s\",\"began\":100}}\n"
      "{{\"kernel\":\"c\",\"us\":10,\"stream\":\"s\",\"began\":130}}\n"
      "{{\"program\":\"q\",\"ranks\":\"1\",\"streams\":[\"s\"]}}\n"
      "{{\"kernel\":\"x\",\"us\":{1},\"stream\":\"s\"}}\n"
      "{{\"collective\":\"all_reduce\",\"in\":\"dp\",\"bytes\":{0},\"stream\":\"s\"}}\n"
      "{{\"kernel\":\"y\",\"us\":10,\"stream\":\"s\"}}\n",
      kBytes, other_us);
}

StreamPrograms edited(const std::string& text, const std::string& edits) {
  StreamPrograms programs = parse_program_file(text, "two");
  make_edits(programs, parse_edits(edits, "e.yaml"));
  return programs;
}

Time step_ps(const std::string& text, const std::string& edits) {
  return step_of(edited(text, edits)).step_ps;
}

}  // namespace

TEST_CASE("a held rank begins nothing before it did, and waits for others as it would") {
  const Time reduces = alone("all_reduce", kBytes, "[0,1]", 2);
  REQUIRE(reduces < 30 * kUs);
  const std::string none = "- {select: {kernel: x}, scale: {time: 1}}";
  // Not held, rank 0 reaches the all-reduce after 20 us, rank 1 after 30 us.
  CHECK(step_ps(two_ranks(30), none) == 30 * kUs + reduces + 10 * kUs);
  // Held, it is there at 100 us, where rank 1 waits for it; c begins at 130 us, after the all-reduce.
  CHECK(step_ps(two_ranks(30), "- hold: 0") == 140 * kUs);
  // Rank 1 is later: the recording cannot be kept, and what is later is as late as rank 1 lets it be.
  CHECK(step_ps(two_ranks(200), "- hold: 0") == 200 * kUs + reduces + 10 * kUs);
  // The others may be changed besides, before or after.
  CHECK(step_ps(two_ranks(30), "- hold: 0\n- {select: {kernel: x}, scale: {time: 10}}") ==
        300 * kUs + reduces + 10 * kUs);
}

TEST_CASE("holding a rank adds one thread of the host, and keeps all else in its order") {
  const StreamPrograms before = parse_program_file(two_ranks(30), "two"), after = edited(two_ranks(30), "- hold: 0");
  const RankProgram &free = before.programs[0], &held = after.programs[0];
  REQUIRE(held.ops.size() == 2 * free.ops.size());
  CHECK(held.streams.back() == StreamInfo{"recording", StreamKind::host});
  for (std::size_t i = 0; i < free.ops.size(); ++i) {
    const StreamOp& op = held.ops[free.ops.size() + i];
    CHECK(after.names[op.name] == before.names[free.ops[i].name]);
    CHECK(op.work == free.ops[i].work);
    CHECK(op.after == std::vector<std::uint32_t>{static_cast<std::uint32_t>(i)});
  }
  CHECK(held.allocations == std::vector<Allocation>{{4, 512}, {6, -512}});
  CHECK(after.programs[1] == before.programs[1]);
  // What was written and read again is the same.
  CHECK(step_of(parse_program_file(program_file_text(after), "again")).step_ps == step_of(after).step_ps);
  CHECK(parse_program_file(program_file_text(before), "again").programs == before.programs);
}

TEST_CASE("ranks without a recording, and what else a hold must not be, are refused") {
  const auto error = [](const std::string& edits) { return error_of([&] { edited(two_ranks(30), edits); }); };
  CHECK(error("- hold: 1").find("e.yaml:1: no operation of these ranks says when it began") == 0);
  CHECK(error("- hold: 0-5").find("e.yaml:1: 'ranks' must be below 2") == 0);
  CHECK(error("- hold: x").find("e.yaml:1: ") == 0);
  CHECK(error("- hold: 0\n- hold: 0").find("e.yaml:2: holds ranks that an edit before it holds") == 0);
  CHECK(error("- {hold: 0, select: {kernel: a}}").find("e.yaml:1: ") == 0);
}

TEST_CASE("a trace held to itself spans what it did") {
  TraceText text;
  // Kernels of 10 us, 5 us and 7 us with gaps that nothing in the trace explains.
  text.launched("a", 0, 10, 10, 7, 1);
  text.launched("b", 10, 40, 5, 7, 2);
  text.launched("c", 20, 90, 7, 7, 3);
  StreamPrograms programs = import_text({text.text()}).programs;
  for (const StreamOp& op : programs.programs[0].ops)
    if (!std::holds_alternative<HostWork>(op.work)) CHECK(op.began_us >= 0);
  const Time own = step_of(programs).step_ps;
  make_edits(programs, parse_edits("- hold: 0", "e.yaml"));
  const Time held = step_of(programs).step_ps;
  CHECK(held >= own);
  CHECK(held == 97 * kUs);
}
