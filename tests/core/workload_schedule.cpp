// Pipeline schedules: each pass once, in an order that can run, with the memory the papers promise.
#include "core/workload/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "workload_models.hpp"

using namespace manyworlds::core::workload;

namespace {

Strategy strategy_of(ScheduleKind kind, std::int64_t pp, std::int64_t micro_batches, std::int64_t virtual_stages) {
  Strategy strategy = layout(1, pp, 1, micro_batches, virtual_stages);
  strategy.schedule = kind;
  return strategy;
}

/// Every strategy of a grid, all schedules.
std::vector<Strategy> grid() {
  std::vector<Strategy> all;
  for (const ScheduleEntry& entry : registered_schedules())
    for (const std::int64_t pp : {1, 2, 3, 4, 8})
      for (const std::int64_t groups : {1, 2, 3, 7})
        for (const std::int64_t chunks : {1, 2, 3, 5})
          if (chunks == 1 || entry.kind == ScheduleKind::interleaved)
            all.push_back(strategy_of(entry.kind, pp, groups * pp, chunks));
  return all;
}

std::int64_t most_alive(const Schedule& order) {
  std::int64_t alive = 0, most = 0;
  for (const Slot& slot : order) most = std::max(most, alive += slot.forward ? 1 : -1);
  return most;
}

}  // namespace

TEST_CASE("every schedule runs each micro-batch of each chunk forward once, then backward once") {
  for (const Strategy& strategy : grid())
    for (std::int64_t stage = 0; stage < strategy.pp; ++stage) {
      std::map<std::pair<std::int32_t, std::int32_t>, int> passes;  // 1: forward done, 2: both
      for (const Slot& slot : schedule(strategy, stage)) {
        int& done = passes[{slot.micro_batch, slot.chunk}];
        REQUIRE(done == (slot.forward ? 0 : 1));
        ++done;
      }
      REQUIRE(passes.size() == static_cast<std::size_t>(strategy.micro_batches() * strategy.virtual_stages));
      const auto both = [](const auto& pass) { return pass.second == 2; };
      REQUIRE(std::all_of(passes.begin(), passes.end(), both));
      REQUIRE(passes.rbegin()->first.first == strategy.micro_batches() - 1);
    }
}

TEST_CASE("GPipe keeps every micro-batch alive, 1F1B at most pp - stage") {
  for (const std::int64_t pp : {1, 2, 4, 8})
    for (const std::int64_t m : {1, 3, 8, 21})
      for (std::int64_t stage = 0; stage < pp; ++stage) {
        CHECK(most_alive(schedule(strategy_of(ScheduleKind::gpipe, pp, m, 1), stage)) == m);
        CHECK(most_alive(schedule(strategy_of(ScheduleKind::one_f_one_b, pp, m, 1), stage)) == std::min(m, pp - stage));
      }
}

TEST_CASE("interleaved 1F1B keeps (v - 1) p + 2 (p - stage - 1) + 1 chunks alive") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t v : {1, 2, 3})
      for (std::int64_t stage = 0; stage < p; ++stage)
        CHECK(most_alive(schedule(strategy_of(ScheduleKind::interleaved, p, 4 * p, v), stage)) ==
              (v - 1) * p + 2 * (p - stage - 1) + 1);
}

TEST_CASE("1F1B on the first of four stages begins with three forward passes") {
  const Schedule order = schedule(strategy_of(ScheduleKind::one_f_one_b, 4, 8, 1), 0);
  const Schedule begin{{true, 0, 0},  {true, 1, 0}, {true, 2, 0}, {true, 3, 0},
                       {false, 0, 0}, {true, 4, 0}, {false, 1, 0}};
  CHECK(Schedule(order.begin(), order.begin() + 7) == begin);
  CHECK(order.back() == Slot{false, 7, 0});
}

TEST_CASE("interleaved 1F1B runs as figure 4 of Narayanan et al. draws it: four stages, two chunks") {
  const Strategy strategy = strategy_of(ScheduleKind::interleaved, 4, 8, 2);
  // Device 1: 1 2 3 4 of chunk 0, 1 2 3 4 of chunk 1, 5 6 of chunk 0 warm it up; then 7 forward, 1 of chunk 1 backward.
  const Schedule first = schedule(strategy, 0);
  const Schedule begin{{true, 0, 0},  {true, 1, 0},  {true, 2, 0},  {true, 3, 0},  {true, 0, 1},
                       {true, 1, 1},  {true, 2, 1},  {true, 3, 1},  {true, 4, 0},  {true, 5, 0},
                       {true, 6, 0},  {false, 0, 1}, {true, 7, 0},  {false, 1, 1}, {true, 4, 1},
                       {false, 2, 1}, {true, 5, 1},  {false, 3, 1}, {true, 6, 1},  {false, 0, 0}};
  CHECK(Schedule(first.begin(), first.begin() + 20) == begin);
  // Device 4 turns its first micro-batch round as soon as chunk 1 has it.
  const Schedule last = schedule(strategy, 3);
  const Schedule turn{{true, 0, 0}, {true, 1, 0},  {true, 2, 0}, {true, 3, 0},
                      {true, 0, 1}, {false, 0, 1}, {true, 1, 1}};
  CHECK(Schedule(last.begin(), last.begin() + 7) == turn);
}

TEST_CASE("interleaving over one chunk and 1F1B run the same passes in an order that differs only in warm-up") {
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const Schedule a = schedule(strategy_of(ScheduleKind::interleaved, 4, 8, 1), stage);
    const Schedule b = schedule(strategy_of(ScheduleKind::one_f_one_b, 4, 8, 1), stage);
    const auto passes = [](const Schedule& order, bool forward) {
      Schedule some;
      std::copy_if(order.begin(), order.end(), std::back_inserter(some), [&](Slot s) { return s.forward == forward; });
      return some;
    };
    CHECK(passes(a, true) == passes(b, true));
    CHECK(passes(a, false) == passes(b, false));
  }
}
