// Bubbles of pipeline schedules on the streams, against what their papers promise: programs as they are built, passes
// of given lengths, transfers that take no time.
#include <catch2/catch.hpp>

#include "tests/core/workload/schedule/play_pipeline.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::stream;
using workload::Pipeline;
using workload::schedule_infeasible_reason;
using workload::type_of;

namespace {

struct Played {
  Time step = 0;   // from the first pass of any rank to the last end
  Time apart = 0;  // of the rank that is longest from its own first pass to its own end
  Time busy = 0;   // of the busiest rank
  Time idle = 0;   // of the most idle rank, in `step`
  Time idle_apart = 0;
};

Played played(const char* name, const Pipeline& pipeline, const PassTimes& times) {
  REQUIRE(schedule_infeasible_reason(type_of(name), pipeline).empty());
  const auto programs = pipeline_programs(type_of(name), pipeline, times);
  Played result;
  Timeline together = play(programs), apart = play(programs, 0, true);
  REQUIRE(together.finished());
  together.close_accounts(), apart.close_accounts();
  result.step = together.duration();
  result.apart = apart.duration();
  const auto busy_and_idle = [](const Account& account) {
    std::pair<Time, Time> sums;
    for (const workload::StepPartInfo& part : workload::kStepParts)
      (part.part <= workload::StepPart::host ? sums.first : sums.second) += account[part.part];
    return sums;
  };
  for (const Account& account : together.accounts()) {
    const auto [busy, idle] = busy_and_idle(account);
    REQUIRE(busy + idle == result.step);
    result.busy = std::max(result.busy, busy);
    result.idle = std::max(result.idle, idle);
  }
  for (const Account& account : apart.accounts()) {
    const auto [busy, idle] = busy_and_idle(account);
    REQUIRE(busy + idle == result.apart);
    result.idle_apart = std::max(result.idle_apart, idle);
  }
  return result;
}

/// Forward, input gradients, weight gradients.
const std::vector<PassTimes> kRatios{{100, 100, 100}, {100, 150, 50}, {100, 120, 80}, {185, 180, 93}, {100, 200, 100}};

}  // namespace

TEST_CASE("bubbles of GPipe, 1F1B, interleaved 1F1B and ZB-H1 are those of the papers for any lengths of passes") {
  for (const std::int64_t p : {2, 3, 4, 8, 16})
    for (const std::int64_t m : {p, 2 * p, 5 * p})
      for (const PassTimes& t : kRatios) {
        CAPTURE(p, m, t.forward, t.input_gradient, t.weight_gradient);
        const Time all = t.forward + t.input_gradient + t.weight_gradient;
        for (const char* name : {"gpipe", "1f1b"}) CHECK(played(name, {p, m, 1}, t).step == (m + p - 1) * all);
        for (const std::int64_t v : {2, 3}) CHECK(played("interleaved", {p, m, v}, t).step == (m * v + p - 1) * all);
        if (m > p) CHECK(played("zb_h1", {p, m, 1}, t).step == m * all + (p - 1) * (all - 2 * t.weight_gradient));
      }
}

TEST_CASE("golden steps of ZB-H1, forward, input and weight gradients a unit each") {
  const auto units = [](std::int64_t p, std::int64_t m) { return played("zb_h1", {p, m, 1}, {1, 1, 1}).step; };
  CHECK(units(4, 8) == 27);
  CHECK(units(8, 16) == 55);
  CHECK(units(8, 32) == 103);
  CHECK(units(16, 64) == 207);
  CHECK(played("1f1b", {16, 64, 1}, {1, 1, 1}).step == 237);
  CHECK(played("zb_h1", {8, 32, 1}, {10, 15, 5}).idle == 140);
  CHECK(played("zb_h1", {8, 32, 1}, {10, 12, 8}).idle == 98);
}

TEST_CASE("ZB-H2's ranks are idle (p - 1)(F + B - 2W) of their own steps, none where passes take as long") {
  for (const std::int64_t p : {2, 4, 8, 16})
    for (const std::int64_t m : {2 * p, 3 * p, 6 * p})
      for (const PassTimes& t : {PassTimes{100, 100, 100}, PassTimes{100, 150, 50}, PassTimes{100, 120, 80}}) {
        CAPTURE(p, m, t.forward, t.input_gradient, t.weight_gradient);
        CHECK(played("zb_h2", {p, m, 1}, t).idle_apart ==
              (p - 1) * (t.forward + t.input_gradient - 2 * t.weight_gradient));
      }
}

TEST_CASE("ZB-V's ranks are never idle in their own steps where passes take as long") {
  for (const std::int64_t p : {2, 3, 4, 5, 8, 16})
    for (const std::int64_t m : {2 * p, 3 * p, 5 * p}) {
      CAPTURE(p, m);
      CHECK(played("zb_v", {p, m, 2}, {100, 100, 100}).idle_apart == 0);
    }
}

TEST_CASE("V-Half has half of 1F1B's bubble and V-Min two thirds, where passes take as long") {
  for (const std::int64_t p : {4, 5, 6, 7, 8, 12, 16}) {
    const std::int64_t m = 4 * p, bubble = 6 * (p - 1);  // in chunks, of which 1F1B's passes have two
    CAPTURE(p);
    // V-Min waits as long as its first micro-batch is on its way, 4p units and the gap, but for what it does then.
    CHECK(played("v_min", {p, m, 2}, {1, 1, 1}).idle == 4 * p - 5 + (p % 3 == 0 ? 2 : 0));
    CHECK(played("v_half", {p, m, 2}, {1, 1, 1}).idle == bubble / 2 - p % 2);
  }
}

TEST_CASE("golden steps of DualPipeV, and its bubble (p - 1)(F&B + B - 3W)") {
  const auto steps = [](std::int64_t p, std::int64_t m, std::int64_t percent) {
    return played("dualpipev", {p, m, 2}, {100, 100, 100, percent});
  };
  CHECK(steps(4, 10, 100).step == 6'600);
  CHECK(steps(4, 16, 100).step == 10'200);
  CHECK(steps(8, 20, 100).step == 13'400);
  CHECK(steps(8, 32, 100).step == 20'600);
  CHECK(steps(4, 10, 85).step == 5'970);
  CHECK(steps(4, 16, 85).step == 9'030);
  CHECK(steps(8, 20, 85).step == 12'050);
  CHECK(steps(8, 32, 85).step == 18'170);
  CHECK(steps(4, 10, 85).idle == 465);
  CHECK(steps(8, 20, 85).idle == 1'085);
}

TEST_CASE("DualPipe and DualPipeV are idle as DeepSeek's table says where gradients take as long, else no longer") {
  for (const std::int64_t p : {2, 4, 8, 12})
    for (const std::int64_t m : {2 * p, 3 * p, 6 * p})
      for (const PassTimes& t : {PassTimes{100, 100, 100}, PassTimes{100, 100, 100, 85}, PassTimes{100, 120, 100},
                                 PassTimes{100, 120, 80, 90}}) {
        CAPTURE(p, m, t.input_gradient, t.weight_gradient, t.together_percent);
        const Time backward = t.input_gradient + t.weight_gradient;
        const Time together = (t.forward + backward) * t.together_percent / 100;
        const Time bubble = together + backward - 3 * t.weight_gradient;
        const Time folded = played("dualpipev", {p, m, 2}, t).idle, mirrored = played("dualpipe", {p, m, 2}, t).idle;
        CHECK(folded <= (p - 1) * bubble);
        CHECK(mirrored <= (p / 2 - 1) * bubble);
        if (t.input_gradient != t.weight_gradient) continue;
        CHECK(folded == (p - 1) * bubble);
        CHECK(mirrored == (p / 2 - 1) * bubble);
      }
}

TEST_CASE("schedules made for what passes cost are no worse than ZB-H1 and ZB-H2 where those are at home") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {3 * p, 8 * p}) {
      CAPTURE(p, m);
      const PassTimes units{100, 100, 100};
      CHECK(played("zb_2p", {p, m, 1}, units).apart <= played("1f1b", {p, m, 1}, units).apart);
      CHECK(played("zb_1p", {p, m, 1}, units).apart <= played("1f1b", {p, m, 1}, units).apart);
    }
}

TEST_CASE("every schedule runs to its end on every pipeline it fits, and no rank works more than its share") {
  for (const auto& [type, pipeline] : workload::every_pipeline()) {
    if (pipeline.ranks > 8 || pipeline.micro_batches > 24) continue;
    CAPTURE(type->name, pipeline.ranks, pipeline.micro_batches, pipeline.chunks);
    const PassTimes times{100, 130, 70};
    const Played result = played(type->name.c_str(), pipeline, times);
    const std::int64_t passes = pipeline.micro_batches * pipeline.chunks /
                                (type->stage_placement == workload::StagePlacement::bidirectional ? 2 : 1);
    CHECK(result.busy == passes * 300);
    CHECK(result.apart <= result.step);
  }
}
