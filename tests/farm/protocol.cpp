// The protocol against every fault a cluster has, by seed and in virtual time.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>

#include "tests/farm/virtual_farm.hpp"

using namespace manyworlds::farm;
using namespace manyworlds::farm::synthetic;

namespace {

void check_answer(const VirtualFarm& farm, const std::vector<std::string>& expected) {
  REQUIRE(farm.times_settled.size() == expected.size());
  for (const auto& [task, times] : farm.times_settled) {
    REQUIRE(times == 1);
    REQUIRE(farm.outcomes.at(task).status == Status::ok);
    REQUIRE(farm.outcomes.at(task).bytes == expected[task]);
  }
  REQUIRE(farm.settled_before_counted);
}

}  // namespace

TEST_CASE("without faults every task runs once and gives what a plain loop gives") {
  const std::string serialized = "tasks=200 seed=3";
  VirtualFarm farm(serialized, 4, {});
  REQUIRE(farm.run());
  check_answer(farm, plain_loop(serialized));
  for (const auto& [task, runs] : farm.runs) CHECK(runs == 1);
}

TEST_CASE(
    "under delay, reordering, loss, doubling and vanishing workers every task settles exactly once, for 2000 seeds") {
  std::uint64_t redone = 0;
  int answers = 0;
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    INFO("seed " << seed);
    const std::string serialized = "tasks=" + std::to_string(5 + seed % 40) + " seed=" + std::to_string(seed);
    Trouble trouble{.faults = {.seed = seed,
                               .loss_probability = 0.02 * static_cast<double>(seed % 11),
                               .duplication_probability = 0.03 * static_cast<double>(seed % 7),
                               .delay_min_ms = 0,
                               .delay_max_ms = static_cast<std::int64_t>(seed % 5) * 60},
                    .kill_per_s = 0.4 * static_cast<double>(seed % 3)};
    if (seed % 2 == 0) trouble.crash_once = {0, 3, 4};
    VirtualFarm farm(serialized, 2 + static_cast<int>(seed % 4), trouble);
    REQUIRE(farm.run());
    check_answer(farm, plain_loop(serialized));
    for (const auto& [task, runs] : farm.runs) redone += static_cast<std::uint64_t>(runs - 1);
    answers += farm.answers;
    // Another life of a worker counts its questions anew, and the answers are told apart by what they are about.
    if (seed % 3 == 0) REQUIRE(farm.mixed_up == 0);
  }
  CHECK(redone > 2'000);   // the faults did bite
  CHECK(answers > 2'000);  // and help went through them
}

TEST_CASE("no task is lost and none ends in two ways when coordinators die and partitions heal, for 500 seeds") {
  int restarts = 0, cuts = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    const std::string serialized = "tasks=" + std::to_string(40 + seed % 60) + " seed=" + std::to_string(seed);
    const Trouble trouble{.faults = {.seed = seed,
                                     .loss_probability = 0.02 * static_cast<double>(seed % 6),
                                     .duplication_probability = 0.05 * static_cast<double>(seed % 3),
                                     .delay_min_ms = 0,
                                     .delay_max_ms = static_cast<std::int64_t>(seed % 4) * 50},
                          .kill_per_s = seed % 5 == 0 ? 0.3 : 0,
                          .cut_per_s = seed % 2 == 0 ? 0.6 : 0,
                          .restart_per_s = seed % 3 == 0 ? 0 : 0.5};
    VirtualFarm farm(serialized, 2 + static_cast<int>(seed % 4), trouble);
    REQUIRE(farm.run());
    check_answer(farm, plain_loop(serialized));
    restarts += farm.restarts;
    cuts += farm.cuts;
  }
  CHECK(restarts > 300);  // the faults did bite
  CHECK(cuts > 300);
}

TEST_CASE("workers that have nothing to do help the one that has, and a task of their own comes first") {
  const std::string serialized = "tasks=1 seed=4";
  VirtualFarm farm(serialized, 4, {.task_ms_max = 1});
  REQUIRE(farm.run());
  CHECK(farm.answers == 0);  // it took less than a way there and back

  Trouble long_tasks;
  long_tasks.task_ms_max = 4'000;
  VirtualFarm busy("tasks=3 seed=4", 4, long_tasks);
  busy.step_until(200);
  const int before = busy.answers;
  busy.step_until(700);
  // One has nothing to do. What it answers takes 5 to 20 ms, 12.5 in the mean.
  CHECK(busy.answers - before == Approx(500 / 12.5).epsilon(0.2));
  REQUIRE(busy.run());
  CHECK(busy.mixed_up == 0);
  check_answer(busy, plain_loop("tasks=3 seed=4"));
}

TEST_CASE("a helper that vanishes costs answers and nothing else") {
  const std::string serialized = "tasks=1 seed=4";
  Trouble long_task;
  long_task.task_ms_max = 40'000;
  VirtualFarm farm(serialized, 2, long_task);
  farm.step_until(500);
  const int idle = farm.started.empty() ? -1 : farm.busy_endpoint() == 0 ? 1 : 0;
  REQUIRE(idle == 1);
  CHECK(farm.answers > 0);
  farm.kill(idle);
  farm.step_until(600);
  const int answers = farm.answers;
  farm.step_until(2'000);
  CHECK(farm.answers == answers);
  REQUIRE(farm.run());
  check_answer(farm, plain_loop(serialized));
}

TEST_CASE("a task in which two simulators died is failed as a crash, and only what needs it fails with it") {
  const std::string serialized = "tasks=60 seed=9";
  Trouble trouble{.faults = {.seed = 9, .duplication_probability = 0.5, .delay_max_ms = 40}};
  trouble.crash_always = {7};
  VirtualFarm farm(serialized, 3, trouble);
  REQUIRE(farm.run());
  const auto expected = plain_loop(serialized);
  CHECK(farm.runs[7] == 2);
  CHECK(farm.outcomes[7].status == Status::crash);
  std::set<std::uint32_t> failed{7};
  for (std::uint32_t task = 0; task < expected.size(); ++task) {
    if (task == 7) continue;
    const auto& inputs = farm.job.tasks()[task].inputs;
    const bool fails = std::any_of(inputs.begin(), inputs.end(), [&](auto input) { return failed.contains(input); });
    if (fails) failed.insert(task);
    CHECK(farm.outcomes[task].status == (fails ? Status::input : Status::ok));
    if (!fails) CHECK(farm.outcomes[task].bytes == expected[task]);
  }
  CHECK(failed.size() > 1);
  CHECK(farm.schedule().failed() == failed.size());
}

TEST_CASE("a crash reported twice by a doubling network counts once") {
  const std::string serialized = "tasks=30 seed=5";
  Trouble trouble{.faults = {.seed = 5, .duplication_probability = 1}};
  trouble.crash_once = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  VirtualFarm farm(serialized, 3, trouble);
  REQUIRE(farm.run());
  check_answer(farm, plain_loop(serialized));
}

TEST_CASE("the task with which the longest way to the end begins is handed out first") {
  VirtualFarm farm("tasks=20 seed=2", 1, {});
  const auto& tasks = farm.job.tasks();
  // The oracle walks every chain of tasks that wait for each other.
  const std::function<double(std::uint32_t)> way = [&](std::uint32_t from) {
    double behind = 0;
    for (std::uint32_t task = from + 1; task < tasks.size(); ++task)
      if (std::count(tasks[task].inputs.begin(), tasks[task].inputs.end(), from) > 0)
        behind = std::max(behind, way(task));
    return tasks[from].cost + behind;
  };
  REQUIRE(farm.run());
  double last = 1e9;
  for (const auto task : farm.started) {
    if (!tasks[task].inputs.empty()) continue;  // it became ready meanwhile
    CHECK(way(task) <= last);
    last = way(task);
  }
}

TEST_CASE("short tasks that long ones wait for do not wait for other long ones") {
  // Two long tasks wait for a short one each; others are of middling length.
  std::vector<Task> tasks(12);
  for (std::uint32_t task = 0; task < 12; ++task) tasks[task].cost = task < 2 ? 1 : task < 10 ? 50 : 100;
  tasks[10].inputs = {0};
  tasks[11].inputs = {1};
  TaskQueue schedule(tasks);
  CHECK(schedule.take() == 0U);
  CHECK(schedule.take() == 1U);
  CHECK(schedule.take() == 2U);
  schedule.settle(1, {Status::ok, "", 1});
  CHECK(schedule.take() == 11U);
}

TEST_CASE("of tasks about as urgent as the first the one that fits best is taken, and never one half as urgent") {
  std::vector<Task> tasks(100);
  for (std::uint32_t task = 0; task < 100; ++task)
    tasks[task].cost = 200 - task, tasks[task].locality_group = task / 10;
  TaskQueue schedule(tasks);
  const auto likes = [](std::uint32_t locality_group) {
    return [locality_group](const Task& task) { return task.locality_group == locality_group ? 0 : 1; };
  };
  CHECK(schedule.take(likes(3)) == 30U);
  CHECK(schedule.take(likes(3)) == 31U);
  CHECK(schedule.take(likes(99)) == 0U);
  CHECK(schedule.take(likes(9)) == 1U);  // as many are not looked at
  tasks[50].cost = 1'000;
  TaskQueue other(tasks);
  CHECK(other.take(likes(3)) == 50U);
}

TEST_CASE("a worker stays with tasks of one family, and workers with different ones, while there is a choice") {
  struct Families final : Job {
    Families() : all(60) {
      for (std::uint32_t task = 0; task < 60; ++task) {
        all[task].key.digest[0] = task;
        all[task].cost = 100 + task;
        all[task].locality_group = task % 3;
      }
    }
    const std::vector<Task>& tasks() const override { return all; }
    std::string common_spec() const override { return "families"; }
    std::string spec(std::uint32_t) const override { return ""; }
    std::vector<Task> all;
  } const job;
  InProcessNetwork network(2);
  TaskQueue schedule(job.tasks());
  Coordinator coordinator(schedule, network.endpoint(0), job, {.hide_latency_us = 0});
  std::map<int, std::set<std::uint32_t>> families;
  std::uint64_t number = 0;
  for (const int worker : {0, 1})
    coordinator.receive(worker, {.kind = MessageKind::report, .number = job_signature("families")}, 0);
  for (bool any = true; any && schedule.ready() >= 8;) {
    any = false;
    for (const int worker : {0, 1})
      while (const auto envelope = network.endpoint(worker).receive()) {
        for (const Assignment& given : decode_message(envelope->message).assignments) {
          any = true;
          families[worker].insert(job.tasks()[given.task].locality_group);
          coordinator.receive(
              worker,
              {.kind = MessageKind::result, .number = ++number, .results = {{given.task, {Status::ok, "", 1'000}}}}, 0);
        }
      }
  }
  CHECK(schedule.ready() < 8);
  // 20 of a family: each had its own, and somebody took the third besides.
  CHECK(families[0].size() + families[1].size() <= 4);
  CHECK(families[0] != families[1]);
}

TEST_CASE("what is known from the start is never handed out") {
  const std::string serialized = "tasks=40 seed=8";
  const auto expected = plain_loop(serialized);
  VirtualFarm farm(serialized, 2, {});
  for (std::uint32_t task = 0; task < 40; task += 2) farm.schedule().settle(task, {Status::ok, expected[task], 0});
  REQUIRE(farm.run());
  check_answer(farm, expected);
  for (const auto& [task, runs] : farm.runs) CHECK(task % 2 == 1);
}

TEST_CASE("draining finishes what runs, starts nothing more, and the rest completes in another life") {
  const std::string serialized = "tasks=100 seed=4";
  VirtualFarm farm(serialized, 3, {});
  farm.step_until(1'000);
  farm.coordinator().drain(farm.now_ms);
  const std::size_t started = farm.started.size();
  REQUIRE(farm.run(2'000));
  CHECK_FALSE(farm.coordinator().complete());
  CHECK(farm.started.size() == started);
  CHECK(farm.outcomes.size() == started);  // all that ran is settled

  VirtualFarm second(serialized, 2, {});
  for (const auto& [task, outcome] : farm.outcomes) second.schedule().settle(task, outcome);
  REQUIRE(second.run());
  check_answer(second, plain_loop(serialized));
}

TEST_CASE("workers leave when the coordinator falls silent") {
  VirtualFarm farm("tasks=1000 seed=6", 3, {});
  farm.step_until(1'000);
  farm.silence_coordinator();
  farm.step_until(3'500);
  CHECK_FALSE(farm.left(1));
  farm.step_until(5'000);
  for (const int endpoint : {1, 2}) {
    CHECK(farm.left(endpoint));
    CHECK(farm.abandoned(endpoint));
  }
}

TEST_CASE("a large job is on its way to as many workers as there is room for, and to the others later") {
  InProcessNetwork network(4);
  const std::string serialized = "tasks=4";
  SyntheticJob job(serialized);
  TaskQueue schedule(job.tasks());
  Coordinator coordinator(schedule, network.endpoint(0), job, {.job_bytes = 2 * serialized.size()});
  const auto told = [&](int worker, bool building) {
    coordinator.receive(worker, {.kind = MessageKind::hello, .flag = building}, 0);
    const auto answer = network.endpoint(worker).receive();
    REQUIRE(answer);
    return decode_message(answer->message).kind == MessageKind::job;
  };
  CHECK(told(1, false));
  CHECK(told(2, false));
  CHECK_FALSE(told(3, false));
  CHECK(told(2, false));  // its copy was lost: it asks again, and takes no more room than before
  CHECK_FALSE(told(1, true));
  CHECK(told(3, false));
  coordinator.tick(60'000);  // nobody said a word since: there is room again
  CHECK(told(0, false));
}

TEST_CASE("a worker that serves another job is sent away and gets no work") {
  InProcessNetwork network(2);
  SyntheticJob job("tasks=4");
  TaskQueue schedule(job.tasks());
  Coordinator coordinator(schedule, network.endpoint(0), job);
  coordinator.receive(1, {.kind = MessageKind::report, .number = job_signature("tasks=5")}, 0);
  const auto answer = network.endpoint(1).receive();
  REQUIRE(answer);
  CHECK(decode_message(answer->message).kind == MessageKind::leave);
  CHECK(schedule.ready() == 4 - 1);  // task 3 waits for an input; nothing was handed out
  coordinator.receive(0, {.kind = MessageKind::incompatible, .text = "no such file"}, 0);
  CHECK(coordinator.finished(0));
  REQUIRE(coordinator.unserved(0));
  CHECK(coordinator.unserved(0)->reason == "no such file");
  CHECK_FALSE(coordinator.unserved(0)->out_of_memory);
  coordinator.receive(0, {.kind = MessageKind::incompatible, .flag = true, .text = "out of memory"}, 0);
  CHECK(coordinator.unserved(0)->out_of_memory);
}
