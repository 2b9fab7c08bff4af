// Farms of a thousand workers and more, in virtual time.
#include <catch2/catch.hpp>

#include "tests/farm/simulated_farm.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds::farm;
using namespace manyworlds::farm::synthetic;

namespace {

Work equal_tasks(std::size_t count, std::int64_t us) {
  Work work;
  for (std::size_t i = 0; i < count; ++i) {
    Task task;
    task.key.digest = {i, 1};
    task.cost = 1;
    work.all.push_back(task);
    work.us.push_back(us);
  }
  return work;
}

}  // namespace

TEST_CASE("a list schedule of three workers ends when its fullest one does") {
  CHECK(list_schedule_us({5, 4, 3, 3, 3}, 3) == 7);  // 5; 4 and 3; 3 and 3
  CHECK(list_schedule_us({9, 1, 1}, 2) == 9);
}

TEST_CASE("one simulated worker takes what its tasks take, and what stands around them") {
  const Work work = equal_tasks(10, 2'000'000);
  SimulatedFarm farm(work, 1, {.latency_ns = 0, .coordinator_ns = 0, .around_ns = 500'000, .result_bytes = 1});
  REQUIRE(farm.run());
  CHECK(farm.makespan_s() == Approx(10 * 2.0 + 11 * 0.0005));  // building the job goes through the same pipes
  CHECK(farm.runs() == 10);
}

TEST_CASE("a coordinator that is slower than its workers limits the farm to its own pace") {
  const Work work = equal_tasks(5'000, 10);
  const std::int64_t each_ns = 100'000;
  SimulatedFarm farm(work, 64, {.latency_ns = 1'000, .coordinator_ns = each_ns, .around_ns = 1'000, .result_bytes = 1});
  REQUIRE(farm.run());
  CHECK(farm.makespan_s() >= 5'000 * 1e-9 * static_cast<double>(each_ns));
  CHECK(farm.coordinator_load() > 0.3);
  CHECK(farm.coordinator_load() <= 1.01);
}

TEST_CASE("1,024 workers are busy for nine tenths of the time with 100,000 steps as long as the reference sweep's") {
  const auto measured = MeasuredTasks::read(manyworlds::source_folder() + "/tests/bench/task_durations_r1.csv");
  const Work work = measured.draw(16'000, 100'000, 10, 1);  // collectives for each step as in tests/bench/planning.yaml
  SimulatedFarm farm(work, 1'024, {});
  REQUIRE(farm.run());
  CHECK(farm.efficiency() >= 0.9);
  CHECK(farm.efficiency() <= 1);
  CHECK(farm.runs() <= work.all.size() + work.all.size() / 20);  // what is computed twice at the end is little
  CHECK(farm.coordinator_load() < 0.1);
}
