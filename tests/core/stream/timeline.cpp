// The stream engine under a network that is free: pipeline schedules meet their published makespans.
#include <catch2/catch.hpp>

#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "core/stream/timeline.hpp"
#include "tests/core/workload/schedule/play_pipeline.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::stream;
using workload::Op, workload::Program, workload::Role, workload::PipelinePass, workload::Stream;

namespace {

Op kernel(Time duration, workload::StepPart category = workload::StepPart::forward) {
  return {.action = workload::KernelOp{category, duration}};
}

Op call(Stream stream, Role role, collective::Kind kind = collective::Kind::send) {
  return {.stream = stream, .action = workload::CollectiveCall{role, kind}};
}

std::uint32_t add(Program& program, Op op, std::vector<std::uint32_t> waits = {}) {
  op.waits_begin = static_cast<std::uint32_t>(program.waits.size());
  program.waits.insert(program.waits.end(), waits.begin(), waits.end());
  op.waits_end = static_cast<std::uint32_t>(program.waits.size());
  program.ops.push_back(op);
  return static_cast<std::uint32_t>(program.ops.size() - 1);
}

/// Operations on all streams, each waiting for some before it.
Program drawn_program(std::mt19937_64& random) {
  Program program;
  program.labels = {"drawn"};
  for (std::uint32_t i = 0; i < 40; ++i) {
    Op op = kernel(static_cast<Time>(random() % 4) * 10, static_cast<workload::StepPart>(random() % 4));
    if (random() % 2 == 0) {
      op = call(Stream::tensor, random() % 3 == 0 ? Role::recv_forward : Role::tensor);
      if (random() % 2 == 0) op.stream = random() % 3 == 0 ? Stream::compute : Stream::data;
    } else if (random() % 4 == 0) {
      op.stream = Stream::offload;
    }
    std::vector<std::uint32_t> waits;
    for (std::uint32_t before = 0; before < i; ++before)
      if (random() % 12 == 0) waits.push_back(before);
    add(program, op, waits);
  }
  return program;
}

/// How long the collective `op` lasts for a rank, mostly the same for all; of some operations always.
struct Lasting {
  Time lasts, began;  // after the entry
  bool for_all;
};
Lasting lasting(std::uint64_t seed, RepresentativeId rank, std::uint32_t op) {
  const std::uint64_t draw = (seed + op) * 0x9E3779B97F4A7C15ull, own = (draw ^ rank.value()) * 0xD1342543DE82EF95ull;
  const bool for_all = draw >> 62 == 0, alike = for_all || own >> 60 != 0;
  const Time lasts = static_cast<Time>((alike ? draw : own) >> 33 & 3) * 7 + 1;
  return {lasts, alike ? 0 : lasts / 2, for_all};
}

/// Takes the collectives that last equally long for all.
struct LastingForAll final : WholeCollectives {
  explicit LastingForAll(std::uint64_t with_seed) : seed(with_seed) {}
  std::vector<RepresentativeId> leaders(const std::vector<RepresentativeId>& ranks, std::uint32_t) const override {
    return ranks;
  }
  Time enter_whole(const std::vector<RepresentativeId>& leaders, std::uint32_t op) override {
    const Lasting of = lasting(seed, leaders.front(), op);
    taken += of.for_all;
    return of.for_all ? of.lasts : kNever;
  }
  std::uint64_t order_of(RepresentativeId, std::uint32_t op) const override { return op; }
  std::uint64_t seed;
  std::size_t taken = 0;
};

/// Plays collectives as lasting() says; those that end at one instant do so in the order of their numbers. `joined`, if
/// given, counts how often the lockstep group of rank 0 has grown.
Timeline play_alone(const std::vector<Program>& programs, std::vector<std::uint32_t> of_rank, std::uint64_t seed,
                    std::size_t* joined = nullptr, WholeCollectives* whole = nullptr) {
  Timeline timeline(programs, std::move(of_rank), 200'000);
  std::set<std::tuple<Time, std::uint32_t, RepresentativeId, Time>> ends;  // (end, op, rank, began)
  std::vector<Entry> entries;
  timeline.begin(entries, whole);
  std::size_t together = timeline.lockstep_ranks(RepresentativeId(0)).size();
  for (Time now = 0;; timeline.advance(now, entries, whole)) {
    const std::size_t before = std::exchange(together, timeline.lockstep_ranks(RepresentativeId(0)).size());
    if (joined != nullptr && together > before) ++*joined;
    for (const Entry& entry : entries) {
      const Lasting of = lasting(seed, entry.rank, entry.op);
      ends.emplace(now + of.lasts, entry.op, entry.rank, now + of.began);
    }
    entries.clear();
    now = std::min(timeline.next_end(), ends.empty() ? kNever : std::get<0>(*ends.begin()));
    if (now == kNever) break;
    for (; !ends.empty() && std::get<0>(*ends.begin()) == now; ends.erase(ends.begin())) {
      const auto& [end, op, rank, began] = *ends.begin();
      timeline.complete(rank, op, began);
    }
  }
  timeline.close_accounts();
  return timeline;
}

}  // namespace

TEST_CASE("a transfer between two stages is exposed on the receiver, and on a sender that has nothing left to run") {
  const auto programs = pipeline_programs(workload::type_of("gpipe"), {2, 1, 1}, {100, 100, 100});
  Timeline timeline = play(programs, 7);
  CHECK(timeline.end() == 100 + 7 + 100 + 200 + 7 + 200);
  timeline.close_accounts();
  const auto waited = [&](std::size_t rank, StepPart wait) { return timeline.accounts()[rank][wait]; };
  CHECK(waited(1, StepPart::bubble) == 100 + 200);  // until the first stage sends, and while it runs backward
  CHECK(waited(1, StepPart::exposed_pp) == 7 + 7);  // its input, and what it sends at its end
  CHECK(waited(0, StepPart::bubble) == 7 + 300);
  CHECK(waited(0, StepPart::exposed_pp) == 7);
}

TEST_CASE("every rank's account adds up to the step") {
  const auto programs = pipeline_programs(workload::type_of("1f1b"), {4, 6, 1}, {130, 110, 100});
  Timeline timeline = play(programs, 11);
  timeline.close_accounts();
  for (const Account& account : timeline.accounts()) {
    Time sum = 0;
    for (const Time part : account) sum += part;
    CHECK(sum == timeline.end());
  }
}

TEST_CASE("kernels of different streams overlap and a wait orders them") {
  Program program;
  program.labels = {"k"};
  Op copy = kernel(50);
  copy.stream = Stream::offload;
  const auto a = add(program, kernel(100));
  add(program, copy);
  add(program, copy, {a});
  const std::vector<Program> programs{program};
  Timeline timeline(programs, {0});
  std::vector<Entry> entries;
  timeline.begin(entries);
  while (timeline.next_end() != kNever) timeline.advance(timeline.next_end(), entries);
  CHECK(timeline.finished());
  CHECK(timeline.end() == 150);
}

TEST_CASE("a wait for a stream of the program's own is divided among the operations that ran there") {
  constexpr auto kOwn = static_cast<Stream>(workload::kStreams);
  const auto own = [](Time duration, StepPart part) {
    Op op = kernel(duration, part);
    op.stream = kOwn;
    return op;
  };
  Program program;
  program.labels = {"k"};
  program.own_streams = {"copies"};
  add(program, own(900, StepPart::exposed_offload));
  const auto ready = add(program, own(40, StepPart::kernels));
  const auto last = add(program, kernel(60), {ready});
  add(program, own(300, StepPart::exposed_offload), {last});
  add(program, own(10, StepPart::kernels));
  const std::vector<Program> programs{program};
  Timeline timeline(programs, {0});
  std::vector<Entry> entries;
  timeline.begin(entries);
  while (timeline.next_end() != kNever) timeline.advance(timeline.next_end(), entries);
  timeline.close_accounts();
  REQUIRE(timeline.end() == 900 + 40 + 60 + 300 + 10);
  const Account account = timeline.accounts()[0];
  CHECK(account[StepPart::exposed_offload] == 900 + 300);
  CHECK(account[StepPart::kernels] == 40 + 10);
  CHECK(account[StepPart::forward] == 60);
  CHECK(account[StepPart::bubble] == 0);
}

TEST_CASE("what a rank has left to run behind its last kernel is told by its parts, and the rest is bubble") {
  Program program;
  program.labels = {"k"};
  const auto last = add(program, kernel(50));
  add(program, call(Stream::data, Role::data, collective::Kind::all_reduce), {last});
  add(program, call(Stream::data, Role::tensor, collective::Kind::all_gather));
  Program longer;
  longer.labels = {"k"};
  add(longer, kernel(100));
  const std::vector<Program> programs{program, longer};
  Timeline timeline(programs, {0, 1});
  std::vector<Entry> entries;
  timeline.begin(entries);
  const auto end_at = [&](Time at, std::uint32_t op, Time began) {
    timeline.complete(RepresentativeId(0), op, began);
    timeline.advance(at, entries);
  };
  timeline.advance(50, entries);
  end_at(70, 1, 55);
  end_at(78, 2, 70);
  timeline.advance(100, entries);
  timeline.close_accounts();
  const Account account = timeline.accounts()[0];
  CHECK(account[StepPart::stall] == 5);
  CHECK(account[StepPart::exposed_dp] == 70 - 55);
  CHECK(account[StepPart::exposed_tp] == 78 - 70);
  CHECK(account[StepPart::bubble] == 100 - 78);
}

TEST_CASE("a deadlock is reported with the operation that waits and the one it waits for") {
  Program program;
  program.labels = {"backward of micro-batch 0", "receive gradients"};
  Op receive = call(Stream::recv_backward, Role::recv_backward);
  receive.label = 1;
  const auto hangs = add(program, receive);
  add(program, kernel(100), {hangs});
  const std::vector<Program> programs{program};
  Timeline timeline(programs, {0});
  std::vector<Entry> entries;
  timeline.begin(entries);
  CHECK(timeline.next_end() == kNever);
  CHECK_FALSE(timeline.finished());
  CHECK(timeline.deadlock() ==
        "deadlock: 'backward of micro-batch 0' (operation 1 of rank 0, stream compute) waits for "
        "'receive gradients' (operation 0 of rank 0, stream recv_backward)");
}

TEST_CASE("ranks that stand together until something ends for some of them fare as each alone") {
  constexpr std::uint32_t kRanks = 7;
  std::size_t representatives = 0, joined = 0, taken = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const Program program = drawn_program(random);
    std::vector<std::uint32_t> own(kRanks);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) own[rank] = rank;
    const Program other = drawn_program(random);
    const std::vector<Program> copies(kRanks, program), one{program, other};
    const Timeline apart = play_alone(copies, own, seed);
    const Timeline together = play_alone(one, std::vector<std::uint32_t>(kRanks, 0), seed, &joined);
    LastingForAll lasting_for_all(seed);
    const Timeline whole = play_alone(one, std::vector<std::uint32_t>(kRanks, 0), seed, nullptr, &lasting_for_all);
    taken += lasting_for_all.taken;
    INFO("seed " << seed);
    REQUIRE(apart.finished());
    REQUIRE(together.finished());
    REQUIRE(together.end() == apart.end());
    REQUIRE(whole.finished());
    REQUIRE(whole.end() == apart.end());
    REQUIRE(whole.accounts() == together.accounts());
    const auto a = apart.accounts(), b = together.accounts();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      REQUIRE(b[rank] == a[rank]);
      representatives += a[rank] != a[0];
    }
  }
  CHECK(representatives > 300);  // they do part
  INFO(joined << " joins, " << taken << " whole collectives");
  CHECK((joined > 100 && taken > 1'000));
}

TEST_CASE("kernels last whole ticks, the nearest number of them") {
  for (const auto& [lasts, ticked] : std::vector<std::pair<Time, Time>>{
           {0, 0}, {49, 0}, {50, 100}, {149, 100}, {150, 200}, {1'000, 1'000}, {1'049, 1'000}}) {
    std::vector<Program> programs(1);
    add(programs[0], kernel(300));
    add(programs[0], kernel(lasts));
    Timeline timeline(programs, {0}, 0, 100);
    std::vector<Entry> entries;
    timeline.begin(entries);
    while (timeline.next_end() != kNever) timeline.advance(timeline.next_end(), entries);
    CHECK(timeline.finished());
    CHECK(timeline.end() == 300 + ticked);
    CHECK(timeline.accounts()[0][StepPart::forward] == 300 + ticked);
  }
}

TEST_CASE("a kernel whose pace changes ends on the tick nearest to when what is left of it would") {
  std::vector<Program> programs(1);
  const auto collective = add(programs[0], call(Stream::data, Role::data, collective::Kind::all_reduce));
  add(programs[0], kernel(1'000));
  const auto run = [&](Time until) {
    Timeline timeline(programs, {0}, 250'000, 100);
    std::vector<Entry> entries;
    timeline.begin(entries);
    for (bool ended = false; !timeline.finished();) {
      const Time at = ended ? timeline.next_end() : std::min(timeline.next_end(), until);
      if (!std::exchange(ended, ended || at == until)) {
        if (at == until) timeline.complete(RepresentativeId(0), collective, 0);
      }
      timeline.advance(at, entries);
    }
    return timeline.end();
  };
  CHECK(run(500) == 1'100);    // 400 done, 600 left
  CHECK(run(300) == 1'100);    // 240 done, 760 left: 1,060
  CHECK(run(200) == 1'000);    // 160 done, 840 left: 1,040
  CHECK(run(1'300) == 1'300);  // beside it to its end: 1,250
  Timeline timeline(programs, {0}, 0, 100);
  std::vector<Entry> entries;
  timeline.begin(entries);
  CHECK_THROWS_AS(timeline.advance(150, entries), InternalError);
}

TEST_CASE("a kernel beside a collective takes longer by the slow-down for as long as the collective lasts") {
  std::vector<Program> programs(1);
  const auto collective = add(programs[0], call(Stream::data, Role::data, collective::Kind::all_reduce));
  add(programs[0], kernel(1'000));
  add(programs[0], kernel(100));
  const auto run = [&](Time until) {  // the collective ends at `until`
    Timeline timeline(programs, {0}, 250'000);
    std::vector<Entry> entries;
    timeline.begin(entries);
    bool ended = false;
    while (!timeline.finished()) {
      const Time kernel_end = timeline.next_end();
      const Time at = ended ? kernel_end : std::min(kernel_end, until);
      if (!ended && at == until) timeline.complete(RepresentativeId(0), collective, 0), ended = true;
      timeline.advance(at, entries);
    }
    timeline.close_accounts();
    return std::pair{timeline.end(), timeline.accounts()[0][StepPart::slowed]};
  };
  // 500 ps beside it do 400 ps of work, so that 600 are left.
  CHECK(run(500) == std::pair<Time, Time>{1'100 + 100, 100});
  CHECK(run(0) == std::pair<Time, Time>{1'100, 0});
  // Both kernels take a quarter longer.
  CHECK(run(1'375) == std::pair<Time, Time>{1'250 + 125, 275});
}

TEST_CASE(
    "a kernel beside collectives that take n of SM units takes SM / (SM - n) times as long, and alone no longer") {
  std::vector<Program> programs(1);
  const std::vector<std::uint32_t> collectives{
      add(programs[0], call(Stream::data, Role::data, collective::Kind::all_reduce)),
      add(programs[0], call(Stream::expert, Role::expert, collective::Kind::all_gather)),
      add(programs[0], call(Stream::recv_context, Role::recv_context))};
  add(programs[0], kernel(11'200));
  // When each of the three ends: an all-reduce, an all-gather, and the receiving half of an exchange.
  const auto run = [&](std::vector<Time> ends, std::int64_t units_to_move, std::int64_t units_to_reduce) {
    Interference interference;
    interference.units = 132, interference.units_to_move = units_to_move,
    interference.units_to_reduce = units_to_reduce;
    Timeline timeline(programs, {0}, interference);
    std::vector<Entry> entries;
    timeline.begin(entries);
    while (!timeline.finished()) {
      const Time at = std::min(timeline.next_end(), *std::min_element(ends.begin(), ends.end()));
      for (std::size_t i = 0; i < ends.size(); ++i)
        if (ends[i] == at) timeline.complete(RepresentativeId(0), collectives[i], 0), ends[i] = kNever;
      timeline.advance(at, entries);
    }
    timeline.close_accounts();
    return timeline.accounts()[0][StepPart::forward] + timeline.accounts()[0][StepPart::slowed];
  };
  constexpr Time kLate = 100'000;
  CHECK(run({0, 0, kLate}, 20, 20) == 11'200);
  CHECK(run({kLate, 0, kLate}, 20, 20) == 13'200);  // 132 / 112
  CHECK(run({0, kLate, kLate}, 20, 20) == 13'200);
  CHECK(run({kLate, kLate, kLate}, 20, 20) == 16'070);     // 132 / 92, rounded up
  CHECK(run({1'320, 10'000, kLate}, 20, 20) == 12'916);    // 920 beside both, 7,364 beside one, 2,916 alone
  CHECK(run({6'600, 0, kLate}, 20, 20) == 6'600 + 5'600);  // 6,600 beside it do 5,600 of work
  CHECK(run({0, kLate, kLate}, 0, 20) == 11'200);          // copy engines move
  CHECK(run({kLate, 0, kLate}, 0, 20) == 13'200);          // but do not add up
  CHECK(run({kLate, kLate, kLate}, 0, 0) == 11'200);
}
