// What a step records of its ranks: every operation once, times that fill the step, the same in both compositions.
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "core/step/run/critical_path.hpp"
#include "core/step/run/recording.hpp"
#include "core/workload/build/build_program.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;
using step::Recording;
using workload::Op;

namespace {

struct Recorded {
  step::CompiledStep compiled;
  step::StepResult result;
  Recording recording;
};

/// Of all ranks, unless some are named.
Recorded record(step::Configuration configuration, step::Composition composition,
                std::vector<std::uint32_t> ranks = {}) {
  configuration.composition = composition;
  step::SimulationContext context;
  step::IsolatedResults results;
  Recorded recorded{context.compile(configuration), {}, {}};
  if (ranks.empty()) {
    ranks.resize(recorded.compiled.layout().ranks());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  for (const std::uint32_t rank : ranks) recorded.recording.ranks.push_back({step::RankId(rank)});
  recorded.result = context.run(recorded.compiled, results, &recorded.recording);
  return recorded;
}

/// With traffic of every kind: every third has context parallelism or experts, every second slows kernels down, some
/// have a clock that ticks.
step::Configuration draw_any(std::uint64_t seed) {
  step::Configuration configuration = draw_configuration(seed);
  workload::Strategy& s = configuration.strategy;
  if (seed % 3 == 0 && s.dp % 2 == 0) {
    s.cp = 2, s.dp /= 2, s.global_batch /= 2;
    if (s.replicas() == 1) s.zero = 0;
  } else if (seed % 3 == 1 && (s.tp == 1 || s.sequence_parallel)) {
    configuration.model.experts = 8, configuration.model.experts_per_token = 2;
    s.ep = std::min<std::int64_t>(s.tp * s.replicas(), 8);
    s.stack.overlap_experts = seed % 2 == 0;
  }
  if (seed % 2 == 0) configuration.gpu.communication_slowdown = 0.3;
  if (seed % 5 == 0) configuration.tick_ns = 200;
  return configuration;
}

const Op& op_of(const Recorded& recorded, step::RankId rank, const stream::Span& span) {
  return recorded.compiled.programs()[recorded.compiled.layout().class_of(rank)].ops.at(span.op);
}

/// Kernels of the compute stream and what it waits for fill the step; other streams are in order.
void require_streams_in_order(const Recorded& recorded, const Recording::Rank& rank) {
  const stream::Record& record = recorded.recording.records.at(rank.record);
  std::array<Time, workload::kStreams> until{};
  std::vector<std::pair<Time, Time>> compute;
  for (const stream::Span& span : record.spans) {
    const Op& op = op_of(recorded, rank.rank, span);
    Time& before = until.at(static_cast<std::size_t>(op.stream));
    REQUIRE(span.begin >= before);
    REQUIRE(span.end >= span.begin);
    before = span.end;
    if (op.stream == workload::Stream::compute) compute.emplace_back(span.begin, span.end);
    if (op.collective()) REQUIRE(span.slowed == 0);
  }
  for (const stream::Idle& idle : record.idle) {
    REQUIRE(idle.end > idle.begin);
    compute.emplace_back(idle.begin, idle.end);
  }
  std::sort(compute.begin(), compute.end());
  Time filled = 0;
  for (const auto& [begin, end] : compute) {
    REQUIRE(begin == filled);
    filled = end;
  }
  REQUIRE(filled == recorded.recording.end);
}

void require_every_operation_once(const Recorded& recorded, const Recording::Rank& rank) {
  std::vector<int> times(recorded.compiled.programs()[recorded.compiled.layout().class_of(rank.rank)].ops.size(), 0);
  for (const stream::Span& span : recorded.recording.records.at(rank.record).spans) ++times.at(span.op);
  REQUIRE(std::all_of(times.begin(), times.end(), [](int count) { return count == 1; }));
}

/// The mean over ranks in seconds, added up from the records alone.
void require_breakdown(const Recorded& recorded) {
  workload::ByPart<Int128> sums;
  for (const Recording::Rank& rank : recorded.recording.ranks) {
    const stream::Record& record = recorded.recording.records.at(rank.record);
    for (const stream::Span& span : record.spans) {
      const Op& op = op_of(recorded, rank.rank, span);
      if (op.stream != workload::Stream::compute) continue;
      sums[op.kernel()->category] += span.end - span.begin - span.slowed;
      sums[workload::StepPart::slowed] += span.slowed;
    }
    for (const stream::Idle& idle : record.idle) sums[idle.why] += idle.end - idle.begin;
  }
  for (const workload::StepPartInfo& part : workload::kStepParts) {
    INFO(part.name());
    const double ranks = static_cast<double>(recorded.recording.ranks.size());
    CHECK(static_cast<double>(sums[part.part]) / ranks * 1e-12 == recorded.result.breakdown[part.part]);
  }
}

/// Courses of collectives against the spans of all members.
void require_courses(const Recorded& recorded) {
  std::map<step::InstanceId, std::pair<std::vector<Time>, std::vector<Time>>> members;  // entries, exits; by instance
  for (const Recording::Rank& rank : recorded.recording.ranks)
    for (const stream::Span& span : recorded.recording.records.at(rank.record).spans)
      if (op_of(recorded, rank.rank, span).collective()) {
        auto& [entries, exits] =
            members[recorded.compiled
                        .instance_entered_by(recorded.compiled.symmetry().representative_of[rank.rank], span.op)
                        .instance];
        entries.push_back(span.begin), exits.push_back(span.end);
      }
  REQUIRE(members.size() == recorded.compiled.instances());
  for (auto& [instance, times] : members) {
    auto& [entries, exits] = times;
    REQUIRE(entries.size() == recorded.compiled.collective_op_of(instance).shape.members);
    std::sort(entries.begin(), entries.end());
    const step::CollectiveInterval expected{entries.front(), entries.at(1), entries.back(),
                                            *std::max_element(exits.begin(), exits.end())};
    REQUIRE(recorded.recording.intervals[instance] == expected);
  }
}

/// Every byte of every transfer with its headers, link by link.
std::map<std::uint32_t, std::int64_t> bytes_on_network(const step::CompiledStep& compiled) {
  std::map<std::uint32_t, std::int64_t> bytes;
  const network::Transport& transport = compiled.transport();
  for (const step::InstanceId instance : compiled.instance_ids()) {
    const step::CollectiveOp& use = compiled.collective_op_of(instance);
    for (const collective::Transfer& transfer : use.dag->transfers)
      for (const std::uint32_t link : use.connections->routes[transfer.pair]) {
        if (compiled.layout().graph().links[link].kind != network::LinkKind::network) continue;
        std::int64_t left = transfer.bytes;  // nothing at all is a header alone
        do {
          bytes[link] += std::clamp<std::int64_t>(left, 0, transport.payload_bytes) + transport.header_bytes;
          left -= transport.payload_bytes;
        } while (left > 0);
      }
  }
  return bytes;
}

double carried(const step::LinkUtilization& course) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < course.rates.size(); ++i)
    sum += course.rates[i].second * seconds(course.rates[i + 1].first - course.rates[i].first);
  return sum;
}

}  // namespace

TEST_CASE("a recording has every operation once, fills the step, and adds up to the breakdown") {
  std::size_t parted = 0, waits = 0, slowed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Recorded recorded = record(draw_any(seed), step::Composition::composed);
    REQUIRE(recorded.recording.end == recorded.result.step_ps);
    const std::size_t of_stage = recorded.compiled.layout().ranks_per_stage();
    for (const Recording::Rank& rank : recorded.recording.ranks) {
      require_every_operation_once(recorded, rank);
      require_streams_in_order(recorded, rank);
      const auto same = std::count_if(recorded.recording.ranks.begin(), recorded.recording.ranks.end(),
                                      [&](const Recording::Rank& other) { return other.record == rank.record; });
      REQUIRE(same == rank.lockstep_count);
      parted += rank.lockstep_count < of_stage;
      waits += recorded.recording.records[rank.record].idle.size();
    }
    require_breakdown(recorded);
    require_courses(recorded);
    slowed += recorded.result.breakdown[workload::StepPart::slowed] > 0;
  }
  CHECK(parted > 50);  // ranks of a stage do come to differ
  CHECK(waits > 1'000);
  CHECK(slowed > 10);
}

TEST_CASE("the critical path fills the step, and each of its parts begins because the one before it ended") {
  std::size_t hops = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    step::Configuration configuration = draw_any(seed);
    if (configuration.strategy.stack.post_validation) continue;
    const Recorded recorded = record(std::move(configuration), step::Composition::composed);
    CAPTURE(seed);
    const std::vector<step::CriticalSpan> path = step::critical_path(recorded.compiled, recorded.recording);
    REQUIRE(!path.empty());
    Time at = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      REQUIRE(path[i].begin == at);
      at = path[i].end;
      const auto& program = recorded.compiled.programs()[recorded.compiled.layout().class_of(path[i].rank)];
      const Op& op = program.ops.at(path[i].op);
      // As the record has it: kernels whole, collectives until they end for some member.
      const stream::Record& record =
          recorded.recording.records.at(recorded.recording.ranks.at(path[i].rank.value()).record);
      const auto span = std::find_if(record.spans.begin(), record.spans.end(),
                                     [&](const stream::Span& one) { return one.op == path[i].op; });
      REQUIRE(span != record.spans.end());
      REQUIRE(span->begin == path[i].begin);
      if (op.kernel() != nullptr) {
        REQUIRE(span->end == path[i].end);
        REQUIRE(span->slowed == path[i].slowed);
      }
      if (i == 0) continue;
      const step::CriticalSpan& before = path[i - 1];
      hops += before.rank == path[i].rank ? 0 : 1;
      // What ended is waited for by this rank: on its stream, or by name; of a collective it may be another member's.
      const auto& before_program = recorded.compiled.programs()[recorded.compiled.layout().class_of(before.rank)];
      const Op& op_before = before_program.ops.at(before.op);
      bool waits = false;
      for (std::uint32_t other = 0; other < path[i].op && !waits; ++other) {
        const Op& candidate = program.ops[other];
        const auto known = std::find_if(record.spans.begin(), record.spans.end(),
                                        [&](const stream::Span& one) { return one.op == other; });
        if (known->end != path[i].begin) continue;
        const bool is_waited_for =
            candidate.stream == op.stream ||
            std::find(program.waits.begin() + op.waits_begin, program.waits.begin() + op.waits_end, other) !=
                program.waits.begin() + op.waits_end;
        if (!is_waited_for) continue;
        if (before.rank == path[i].rank && before.op == other) waits = true;
        if (op_before.collective() == nullptr || candidate.collective() == nullptr) continue;
        const auto instance_of = [&](step::RankId rank, std::uint32_t number) {
          return recorded.compiled.instance_entered_by(recorded.compiled.symmetry().representative_of[rank], number)
              .instance;
        };
        waits = waits || instance_of(before.rank, before.op) == instance_of(path[i].rank, other);
      }
      REQUIRE(waits);
    }
    REQUIRE(at == recorded.recording.end);
  }
  CHECK(hops > 100);
}

TEST_CASE("both compositions give the same recording, and recording changes no result") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_any(seed);
    const Recorded composed = record(configuration, step::Composition::composed);
    REQUIRE(composed.recording == record(configuration, step::Composition::coupled).recording);
    step::StepResult plain = run_configuration(configuration, step::Composition::composed), recorded = composed.result;
    plain.computed = recorded.computed = {}, plain.cpu_s = recorded.cpu_s = 0;
    REQUIRE(step::encode(plain) == step::encode(recorded));
  }
}

TEST_CASE("what is recorded of a rank does not depend on which others are") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_any(seed);
    const Recorded all = record(configuration, step::Composition::composed);
    std::vector<std::uint32_t> some;
    for (std::uint32_t rank = static_cast<std::uint32_t>(seed % 2); rank < all.compiled.layout().ranks(); rank += 3)
      some.push_back(rank);
    const Recorded part = record(configuration, step::Composition::composed, some);
    REQUIRE(part.recording.ranks.size() == some.size());
    REQUIRE(part.recording.intervals == all.recording.intervals);
    for (const Recording::Rank& rank : part.recording.ranks) {
      const Recording::Rank& same = all.recording.ranks.at(rank.rank.value());
      REQUIRE(rank.rank == same.rank);
      REQUIRE(rank.lockstep_count == same.lockstep_count);
      REQUIRE(part.recording.records.at(rank.record) == all.recording.records.at(same.record));
    }
  }
}

namespace {

/// When the kernels of a pass run, by the labels that people read.
std::pair<Time, Time> kernels_of(const Recorded& recorded, const Recording::Rank& rank,
                                 const workload::PipelinePass& pass) {
  const workload::Program& program = recorded.compiled.programs()[recorded.compiled.layout().class_of(rank.rank)];
  constexpr std::array<const char*, 4> kNames{"forward", "backward", "input gradients", "weight gradients"};
  const std::string label = fmt::format("{} of micro-batch {}, chunk {}",
                                        kNames.at(static_cast<std::size_t>(pass.kind)), pass.micro_batch, pass.chunk);
  std::pair<Time, Time> times{kNever, 0};
  for (const stream::Span& span : recorded.recording.records.at(rank.record).spans)
    if (program.labels.at(program.ops.at(span.op).label) == label)
      times = {std::min(times.first, span.begin), std::max(times.second, span.end)};
  return times;
}

}  // namespace

TEST_CASE("a pass holds its memory from its first kernel to the end of its last, in the order of the schedule") {
  std::size_t apart = 0, beside = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Recorded recorded = record(draw_any(seed), step::Composition::composed);
    const workload::Strategy& strategy = recorded.compiled.configuration().strategy;
    const Recording::Rank& rank = recorded.recording.ranks.back();
    const auto course = step::memory_over_time(recorded.compiled, recorded.recording, rank);
    const step::Configuration& configuration = recorded.compiled.configuration();
    const auto order = workload::pipeline_orders(configuration.model, strategy, configuration.gpu)
                           .at(recorded.compiled.layout().stage_of(rank.rank));
    REQUIRE(course.size() == 1 + 2 * order.size());
    REQUIRE(course[0].at == 0);
    Time over = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [begin, end] = kernels_of(recorded, rank, order[i]);
      if (begin < over) {  // beside a backward pass, which it is held after
        REQUIRE((strategy.stack.overlap_experts && order[i].forward() && !order[i - 1].forward()));
        REQUIRE(course[1 + 2 * i].at == over);
        ++beside;
      } else {
        REQUIRE(course[1 + 2 * i].at == begin);
        ++apart;
      }
      over = std::max(end, over);
      REQUIRE(course[2 + 2 * i].at == over);
    }
  }
  CHECK(apart > 300);
  CHECK(beside > 3);
}

TEST_CASE("memory over time comes to the footprint of the stage at most, and ends as it began but for what stays") {
  std::size_t passes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Recorded recorded = record(draw_any(seed), step::Composition::composed);
    const step::Configuration& configuration = recorded.compiled.configuration();
    for (const Recording::Rank& rank : recorded.recording.ranks) {
      const auto course = step::memory_over_time(recorded.compiled, recorded.recording, rank);
      const std::int64_t stage = recorded.compiled.layout().stage_of(rank.rank);
      std::int64_t most = 0;
      Time before = 0;
      for (const step::MemoryAt& moment : course) {
        REQUIRE(moment.at >= before);
        before = moment.at;
        most = std::max(most, moment.held.total());
      }
      REQUIRE(before <= recorded.recording.end);
      REQUIRE(most == memory::footprint(configuration.model, configuration.strategy, configuration.gpu, stage).total());
      REQUIRE(course.back().held.total() == course.front().held.total());  // nothing in flight at either end
      REQUIRE(course.back().held.activations == 0);
      REQUIRE(course.size() == 1 + 4 * static_cast<std::size_t>(configuration.strategy.micro_batches() *
                                                                configuration.strategy.virtual_stages));
      passes += course.size();
    }
  }
  CHECK(passes > 1'000);
}

TEST_CASE("rates of links add up to every byte that crosses them, the busiest links first") {
  std::size_t links = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Recorded recorded = record(draw_any(seed), step::Composition::composed);
    const auto expected = bytes_on_network(recorded.compiled);
    const network::Graph& graph = recorded.compiled.layout().graph();
    const auto all = step::busiest_links(recorded.compiled, recorded.recording, SIZE_MAX);
    REQUIRE(all.size() == expected.size());
    double before = 2;
    for (const step::LinkUtilization& course : all) {
      REQUIRE(course.bytes == expected.at(course.link));
      REQUIRE(carried(course) == Approx(static_cast<double>(course.bytes)).epsilon(1e-9));
      REQUIRE(course.rates.back().second == 0);
      REQUIRE(course.rates.back().first <= recorded.recording.end);
      REQUIRE(std::is_sorted(course.rates.begin(), course.rates.end(),
                             [](const auto& a, const auto& b) { return a.first < b.first; }));
      const double share = static_cast<double>(course.bytes) * 8 /
                           static_cast<double>(graph.links[course.link].bits_per_second) /
                           seconds(recorded.recording.end);
      REQUIRE(share <= before * (1 + 1e-9));
      before = share;
    }
    if (!all.empty())
      REQUIRE(static_cast<double>(all[0].bytes) * 8 / static_cast<double>(graph.links[all[0].link].bits_per_second) /
                  seconds(recorded.recording.end) ==
              Approx(recorded.result.busiest_link_share).epsilon(1e-6));
    const auto few = step::busiest_links(recorded.compiled, recorded.recording, 2);
    REQUIRE(few.size() == std::min<std::size_t>(2, all.size()));
    for (std::size_t i = 0; i < few.size(); ++i) REQUIRE(few[i].rates == all[i].rates);
    links += all.size();
  }
  CHECK(links > 200);
}
