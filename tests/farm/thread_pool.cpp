// Threads that simulate beside the one that asks: each task once, and the same flows for any number of them.
#include <catch2/catch.hpp>

#include <thread>

#include "core/base/error.hpp"
#include "core/network/flows/component_cache.hpp"
#include "farm/system/thread_pool.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using farm::ThreadPool;

namespace {

struct Counted final : core::AheadTask {
  void work(std::size_t) override { ++times; }
  std::atomic<int> times = 0;
};

/// Ends only while its partner is at work too.
struct Partner final : core::AheadTask {
  explicit Partner(std::atomic<int>& all) : at_work(all) {}
  void work(std::size_t thread) override {
    on = thread;
    ++at_work;
    while (at_work.load() < 2) std::this_thread::yield();
  }
  std::atomic<int>& at_work;
  std::size_t on = 0;
};

struct Failing final : core::AheadTask {
  void work(std::size_t) override { throw core::InternalError("as it should"); }
};

}  // namespace

TEST_CASE("every task is done once, by whichever thread, and waited for") {
  for (const std::size_t threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    REQUIRE(pool.threads() == threads);
    std::vector<std::shared_ptr<Counted>> tasks;
    for (int i = 0; i < 2'000; ++i) pool.offer(tasks.emplace_back(std::make_shared<Counted>()));
    for (const auto& task : tasks) pool.finish(*task);
    for (const auto& task : tasks) REQUIRE(task->times == 1);
  }
}

TEST_CASE("two tasks are at work at once") {
  ThreadPool pool(2);
  std::atomic<int> at_work = 0;
  const auto one = std::make_shared<Partner>(at_work), other = std::make_shared<Partner>(at_work);
  pool.offer(one), pool.offer(other);
  pool.finish(*one), pool.finish(*other);
  CHECK(one->on != other->on);
}

TEST_CASE("a task that nobody holds any more is not done, and one that throws says so to who asks") {
  std::atomic<int> done = 0;
  struct Noting final : core::AheadTask {
    explicit Noting(std::atomic<int>& count) : count_(count) {}
    void work(std::size_t) override { ++count_; }
    std::atomic<int>& count_;
  };
  ThreadPool pool(1);  // nobody but the caller
  pool.offer(std::make_shared<Noting>(done));
  const auto held = std::make_shared<Noting>(done);
  pool.offer(held);
  CHECK(pool.help());
  CHECK_FALSE(pool.help());
  CHECK(done == 1);
  ThreadPool two(2);
  const auto failing = std::make_shared<Failing>();
  two.offer(failing);
  CHECK_THROWS_WITH(two.finish(*failing), "as it should");
}

TEST_CASE("flows have the same times and counts for one, two and three threads, and as many link-hops are simulated") {
  std::uint64_t helped = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem = draw(seed, transport_kinds(), 4);
    core::network::ComponentCache alone(problem.transport);
    Counters expected_counters;
    const auto expected =
        play(problem, *core::network::make_decomposed_flows(problem.transport, alone), expected_counters);
    for (const std::size_t threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      core::network::ComponentCache cache(problem.transport);
      cache.simulate_with(&pool);
      Counters counters;
      INFO("seed " << seed << ", " << threads << " threads");
      REQUIRE(play(problem, *core::network::make_decomposed_flows(problem.transport, cache), counters) == expected);
      REQUIRE(counters.ecn_marks == expected_counters.ecn_marks);
      REQUIRE(counters.pauses == expected_counters.pauses);
      REQUIRE(cache.misses() == alone.misses());
      REQUIRE(cache.link_hops().simulated == alone.link_hops().simulated);
      helped += pool.tasks_done();
    }
  }
  CHECK(helped > 0);
}
