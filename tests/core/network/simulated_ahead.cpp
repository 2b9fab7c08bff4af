// Components of flows that helpers simulate ahead, and those whose outcome is never asked for.
#include <catch2/catch.hpp>

#include "core/base/error.hpp"
#include "core/network/flows/component_answerer.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/component_messages.hpp"
#include "tests/core/network/network_problems.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::network;
using namespace manyworlds::tests;

namespace {

/// A helper that does every other task as soon as it is offered, on a thread number of its own.
class PromptHelper final : public HelperThreads {
 public:
  std::size_t threads() const override { return 2; }
  void offer(const std::shared_ptr<AheadTask>& task) override {
    if (++offered_ % 2 == 0) task->run(1);
  }
  bool help() override { return false; }
  std::int64_t offered() const { return offered_; }

 private:
  std::int64_t offered_ = 0;
};

/// A helper in another process, as far as messages go: it answers every other task as soon as it is offered, if it is
/// not `mute`, but first with a damaged answer and that to another question.
class RemoteHelper final : public HelperThreads {
 public:
  std::size_t threads() const override { return 1; }
  bool may_help() override { return true; }
  void offer(const std::shared_ptr<AheadTask>& task) override {
    if (++offered_ % 2 == 0) return;
    const std::string answer = answerer_.answer(task->question());
    std::string damaged = answer;
    damaged[offered_ % damaged.size()] ^= 1;
    refused_ += !task->answer(damaged) && !task->is_done();
    if (!last_.empty() && last_ != answer) refused_ += !task->answer(last_) && !task->is_done();
    answered_ += task->answer(answer) && task->is_done() && !task->run(0);
    last_ = answer;
  }
  bool help() override { return false; }
  std::size_t answered() const { return answered_; }
  std::size_t refused() const { return refused_; }

 private:
  ComponentAnswerer answerer_;
  std::string last_;
  std::size_t offered_ = 0, answered_ = 0, refused_ = 0;
};

struct Played {
  std::vector<Completion> done;
  Counters counters;
};

Played play_decomposed(const Problem& problem, ComponentCache& cache) {
  Played played;
  const auto flows = make_decomposed_flows(problem.transport, cache);
  played.done = play(problem, *flows, played.counters);
  return played;
}

std::int64_t hops_of(const LinkHops& hops) {
  return hops.simulated + hops.periods + hops.rate;
}

/// One flow on an empty path, and another that meets it on the last link after `wait` packets.
Problem two_flows(std::int64_t wait) {
  Problem problem;
  problem.transport.kind = "static_window";
  problem.transport.window_bytes = std::int64_t{1} << 30;  // never limits
  problem.links = {spec(kRate, kMicrosecond, true, false), spec(kRate, kMicrosecond, true, false),
                   spec(kRate, kMicrosecond, false, true)};
  problem.routes = {{0, 2}, {1, 2}};
  problem.arrivals = {{0, {0, 0}, 0, 1'000 * 4'096}, {wait * kPacket, {0, 1}, 1, 1'000 * 4'096}};
  problem.ranks = {0};
  return problem;
}

/// Requires the same times, counts and memories of a cache that has helpers as of one that has none.
void require_same(const Problem& problem, ComponentCache& alone, ComponentCache& helped) {
  const Played expected = play_decomposed(problem, alone), played = play_decomposed(problem, helped);
  REQUIRE(expected.done == played.done);
  REQUIRE(expected.counters.ecn_marks == played.counters.ecn_marks);
  REQUIRE(expected.counters.pauses == played.counters.pauses);
  REQUIRE(alone.hits() == helped.hits());
  REQUIRE(alone.misses() == helped.misses());
  REQUIRE(hops_of(alone.link_hops()) == hops_of(helped.link_hops()));
  REQUIRE(alone.balance == helped.balance);
}

}  // namespace

TEST_CASE("what helpers simulate ahead changes no picosecond, no count and nothing that is remembered") {
  std::int64_t offered = 0, ahead = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Problem problem = draw(seed, transport_kinds());
    ComponentCache alone(problem.transport), helped(problem.transport);
    PromptHelper helper;
    helped.simulate_with(&helper);
    for (int round = 0; round < 2; ++round) {
      INFO("seed " << seed << ", round " << round);
      require_same(problem, alone, helped);
    }
    offered += helper.offered(), ahead += helped.link_hops_ahead();
  }
  CHECK(offered > 2'000);
  CHECK(ahead > 100'000);
}

TEST_CASE("what other processes answer changes no picosecond, no count and nothing that is remembered") {
  std::size_t answered = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Problem problem = draw(seed, transport_kinds());
    ComponentCache alone(problem.transport), helped(problem.transport);
    RemoteHelper helper;
    helped.simulate_with(&helper);
    INFO("seed " << seed);
    require_same(problem, alone, helped);
    answered += helper.answered(), refused += helper.refused();
  }
  CHECK(answered > 1'000);
  CHECK(refused >= answered);
}

TEST_CASE("questions and answers about components are what they were after their encoding, and no others are read") {
  Problem problem = two_flows(500);
  problem.transport.kind_options["text"] = std::string("x");
  problem.transport.kind_options["real"] = 0.5;
  problem.transport.kind_options["boolean"] = true;
  problem.transport.kind_options["integer"] = std::int64_t{-3};
  problem.transport.rate_tolerance_ppm = 17;
  const ComponentQuestion question{problem.transport, false, {1, 2, 3}};
  const std::string bytes = encode(question);
  const ComponentQuestion read = decode_question(bytes);
  CHECK(read.transport == question.transport);
  CHECK(read.periods == question.periods);
  CHECK(read.words == question.words);

  ComponentCache cache(two_flows(0).transport);
  const auto state = cache.fresh({problem.links[0], problem.links[2]}, 1'000 * 4'096);
  const auto outcome = cache.outcome(*state, 500 * kPacket).outcome;
  auto all = std::make_shared<Outcome>(*outcome);
  all->deadlock = {{1, 0}, {0, 1}};
  all->completed = {0, 2};
  const std::string answer = encode(ComponentAnswer{state->digest, {all, {5, 6, 7}}});
  const ComponentAnswer back = decode_answer(answer);
  CHECK(back.digest == state->digest);
  CHECK(back.simulated.outcome->elapsed == outcome->elapsed);
  CHECK(back.simulated.outcome->deadlock == all->deadlock);
  CHECK(back.simulated.outcome->completed == all->completed);
  CHECK(back.simulated.link_hops.rate == 7);
  REQUIRE(back.simulated.outcome->parts.size() == 1);
  CHECK(back.simulated.outcome->parts[0].state->words == outcome->parts[0].state->words);
  CHECK(back.simulated.outcome->parts[0].state->least_ps == outcome->parts[0].state->least_ps);
  CHECK(encode(back) == answer);
  for (const std::string& whole : {bytes, answer})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      CHECK_THROWS_AS(decode_question(whole.substr(0, size)), InternalError);
      CHECK_THROWS_AS(decode_answer(whole.substr(0, size)), InternalError);
    }
}

TEST_CASE(
    "a flow that another joins before it can end is simulated up to there, and on from there, but not to its end") {
  const Problem problem = two_flows(500);
  ComponentCache cache(problem.transport, std::size_t{1} << 30, false);
  const Played played = play_decomposed(problem, cache);
  CHECK(played.counters.link_hops == 2 * 2 * 1'000);
  CHECK(cache.link_hops().simulated == played.counters.link_hops);
}

TEST_CASE("the least time of a flow alone on its path is what it takes, but for the packet at its NIC") {
  Problem problem = two_flows(0);
  problem.arrivals.pop_back();
  ComponentCache cache(problem.transport);
  const auto state = cache.fresh({problem.links[0], problem.links[2]}, 1'000 * 4'096);
  const Outcome whole = *cache.outcome(*state, kNever).outcome;
  CHECK(whole.elapsed == 1'001 * kPacket + 2 * kMicrosecond);  // store and forward
  CHECK(state->least_ps == whole.elapsed - kPacket);
  for (const std::int64_t packets : {1, 500, 999, 1'000, 1'001, 1'012}) {
    const Time at = packets * kPacket;
    const auto later = cache.outcome(*state, at).outcome->parts.at(0).state;
    INFO("after " << packets << " packets");
    CHECK(later->least_ps <= whole.elapsed - at);
    // At the end all that is left of its path may count for its last link alone.
    CHECK(later->least_ps >= whole.elapsed - at - 2 * kPacket - kMicrosecond);
  }
}
