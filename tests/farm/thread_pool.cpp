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

/// Work that another process may do from its number.
struct Portable final : core::AheadTask {
  Portable(int which, double expected_ns) : AheadTask(expected_ns), number(which) {}
  std::string question() const override { return std::to_string(number); }
  void work(std::size_t) override { done_by = "here"; }
  bool take(const std::string& answer) override {
    if (answer != "answer to " + question()) return false;
    done_by = "there";
    return true;
  }
  int number;
  std::string done_by;
};

/// Processes that answer when the test says so.
struct FakeRemote final : core::RemoteHelpers {
  std::size_t listen(const std::function<void(std::uint64_t, const std::string&)>& take) override {
    for (const auto& [number, answer] : std::exchange(arrived, {})) take(number, answer);
    return places;
  }
  void ask(std::uint64_t number, const std::string& question) override { asked.emplace_back(number, question); }
  void answer(std::size_t which) { arrived.emplace_back(asked.at(which).first, "answer to " + asked[which].second); }
  std::size_t places = 0;
  std::vector<std::pair<std::uint64_t, std::string>> asked, arrived;
};

constexpr double kLong_ns = 5e6, kShort_ns = 1e5;

std::vector<std::shared_ptr<Portable>> offer(ThreadPool& pool, int tasks, double expected_ns) {
  std::vector<std::shared_ptr<Portable>> all;
  for (int number = 0; number < tasks; ++number)
    pool.offer(all.emplace_back(std::make_shared<Portable>(number, expected_ns)));
  return all;
}

}  // namespace

TEST_CASE("while there is somebody to ask, tasks that are worth the way go there, as many as there are places") {
  FakeRemote remote;
  ThreadPool pool(1, &remote);
  CHECK_FALSE(pool.may_help());
  remote.places = 2;
  bool may_help = false;
  for (int offers = 0; offers < 32; ++offers) may_help |= pool.may_help();
  CHECK(may_help);  // one of 32 offers listens
  offer(pool, 3, kShort_ns);
  CHECK(remote.asked.empty());
  const auto tasks = offer(pool, 4, kLong_ns);
  REQUIRE(remote.asked.size() == 2);
  CHECK(remote.asked[0].second == "0");
  CHECK(remote.asked[1].second == "1");
  remote.answer(0);
  pool.listen();
  CHECK(tasks[0]->is_done());
  CHECK(tasks[0]->done_by == "there");
  offer(pool, 1, kShort_ns);  // the newest that is worth it goes
  REQUIRE(remote.asked.size() == 3);
  CHECK(remote.asked[2].second == "3");
  CHECK(pool.answers_used() == 1);
}

TEST_CASE("who waits for an answer does other tasks until it is there, and then the task itself") {
  FakeRemote remote;
  remote.places = 1;
  ThreadPool pool(1, &remote);
  pool.listen();
  const auto tasks = offer(pool, 3, kLong_ns);
  REQUIRE(remote.asked.size() == 1);
  pool.finish(*tasks[0]);
  CHECK(tasks[0]->done_by == "here");
  CHECK(tasks[1]->done_by == "here");
  CHECK(tasks[2]->done_by == "here");
  remote.answer(0);  // too late
  pool.listen();
  CHECK(tasks[0]->done_by == "here");
  CHECK(pool.answers_used() == 0);

  const auto more = offer(pool, 2, kLong_ns);
  REQUIRE(remote.asked.size() == 2);
  remote.answer(1);
  pool.finish(*more[0]);
  CHECK(more[0]->done_by == "there");
  CHECK_FALSE(more[1]->is_done());
}

TEST_CASE("questions that were refused, lost or answered wrongly are done here") {
  FakeRemote remote;
  remote.places = 3;
  ThreadPool pool(2, &remote);
  pool.listen();
  const auto tasks = offer(pool, 200, kLong_ns);
  REQUIRE_FALSE(remote.asked.empty());
  const std::size_t before = remote.asked.size();
  remote.arrived = {{remote.asked[0].first, ""}};
  if (before > 1) remote.arrived.emplace_back(remote.asked[1].first, "answer to something else");
  for (const auto& task : tasks) pool.finish(*task);
  for (const auto& task : tasks) REQUIRE(task->done_by == "here");
  CHECK(pool.answers_used() == 0);
}

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
