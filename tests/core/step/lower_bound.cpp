// The lower bound beside simulated steps: below each, at every fidelity, and close to them where little is waited for.
#include "core/step/estimate/lower_bound.hpp"

#include <catch2/catch.hpp>

#include "core/step/estimate/least_times.hpp"
#include "core/step/layout/interference.hpp"
#include "core/step/network/isolated.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

struct Tightness {
  std::size_t steps = 0;
  double sum = 0;

  void add(Time bound, Time simulated) {
    ++steps;
    sum += static_cast<double>(bound) / static_cast<double>(simulated);
  }
  double mean() const { return sum / static_cast<double>(steps); }
};

void require_bound(step::Configuration configuration, Tightness& tightness) {
  configuration.transport.fidelity = network::Fidelity::analytic;
  const Time bound = step::lower_bound_ps(configuration);
  const Time analytic = run_configuration(configuration, step::Composition::composed).step_ps;
  REQUIRE(bound > 0);
  REQUIRE(bound <= analytic);
  tightness.add(bound, analytic);
}

workload::WorkItem kernel_of(Time ps) {
  workload::KernelWork kernel;
  kernel.cost.ps = ps;
  return {kernel};
}

workload::WorkItem all_gather(std::int64_t bytes) {
  return {workload::CollectiveStart{"gather", collective::Kind::all_gather, bytes, workload::Role::tensor}};
}

}  // namespace

TEST_CASE("kernels lose their share beside collectives that are waited for") {
  step::Configuration configuration = config_of(Cluster(), 4, 1, 2);
  configuration.transport.fidelity = network::Fidelity::packet;
  const step::Links links = step::fastest_links(*configuration.graph);
  step::LeastTimes least(configuration, links);
  constexpr std::int64_t kBytes = 64 << 20;
  const Time gather = least.of(workload::Role::tensor, collective::Kind::all_gather, kBytes);
  REQUIRE(gather > 100'000'000);
  stream::Interference units;
  units.units = 100, units.units_to_move = 20, units.units_to_reduce = 30;
  // Beside a collective kernels take a quarter longer: of its time they lose a fifth.
  for (const stream::Interference& interference : {stream::Interference(250'000), units}) {
    const auto now_after = [&](const workload::OpList& ops, bool interleaved = false) {
      step::Chain chain(least, interference, interleaved);
      chain.add({{workload::StepPart::forward, ops}});
      return static_cast<double>(chain.now());
    };
    const auto expected = [](double ps) { return Approx(ps).epsilon(1e-6); };
    const workload::WorkItem join{workload::Join{}}, long_one = kernel_of(2 * gather),
                                                     short_one = kernel_of(gather / 2);
    const auto g = static_cast<double>(gather);
    CHECK(now_after({all_gather(kBytes), long_one, join, short_one}) == expected(2.7 * g));
    CHECK(now_after({short_one, all_gather(kBytes), short_one, join, short_one}) == expected(2 * g));
    CHECK(now_after({all_gather(kBytes), all_gather(kBytes), long_one, join}) == expected(2.4 * g));
    // A kernel that is nearly as long: it is slowed down until the collective ends, and shorter than both in a row.
    CHECK(now_after({all_gather(kBytes), kernel_of(gather * 9 / 10), join}) == expected(1.1 * g));
    // The last collective goes on beside what follows; of another micro-batch kernels may run meanwhile.
    CHECK(now_after({all_gather(kBytes), long_one, {workload::Join{{}, 1}}, short_one}) == expected(2.5 * g));
    CHECK(now_after({all_gather(kBytes), long_one}) == expected(2 * g));
    CHECK(now_after({all_gather(kBytes), long_one, join}, true) == expected(2 * g));
  }
  configuration.transport.fidelity = network::Fidelity::analytic;
  CHECK(step::interference_of(configuration, configuration.gpu).slowdown_ppm == 0);
}

TEST_CASE("the lower bound is below drawn steps") {
  Tightness tightness;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const step::Configuration configuration = draw_configuration(seed);
    require_bound(seed % 3 == 0 ? with_calibrated_library(configuration) : configuration, tightness);
  }
  CHECK(tightness.mean() > 0.6);
}

TEST_CASE("the lower bound is below drawn steps with ZeRO, context parallelism, experts and overlaps") {
  Tightness tightness;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    if (seed % 2 == 0) configuration = with_overlaps(configuration, seed);
    workload::Strategy& s = configuration.strategy;
    if (s.replicas() > 1) {
      s.zero = static_cast<std::int64_t>(seed % 4);
      s.stack.overlap_parameters = s.zero > 0 && s.zero < 3 && seed % 3 == 0;
    }
    require_bound(configuration, tightness);
  }
  CHECK(tightness.mean() > 0.5);
}

TEST_CASE("the lower bound is below steps whose replicas communicate beside passes and launches") {
  // From NICs so slow that little but this communication counts to such as it hides behind passes.
  Tightness tightness;
  for (const std::int64_t gbps : {1, 4, 16, 64, 200})
    for (const double host_kernel_us : {0.5, 45.0})
      for (const std::int64_t zero : {1, 2, 3})
        for (const std::int64_t experts : {0, 8})
          for (const bool overlaps : {false, true}) {
            INFO(gbps << " Gb/s, " << host_kernel_us << " us, ZeRO " << zero << ", " << experts << " experts");
            Cluster cluster;
            cluster.nic = cluster.uplink = gbps * 1'000'000'000;
            step::Configuration configuration = config_of(cluster, 1, 1, 6);
            configuration.model.experts = experts;
            configuration.model.experts_per_token = experts > 0 ? 2 : 0;
            workload::Strategy& s = configuration.strategy;
            s.ep = experts > 0 ? 2 : 1;
            s.zero = zero;
            s.overlap_grad_reduce = overlaps;
            s.stack.host_kernel_us = host_kernel_us;
            require_bound(configuration, tightness);
          }
  CHECK(tightness.mean() > 0.6);
}

TEST_CASE("the lower bound counts the rounds in which experts exchange tokens") {
  // Slow NICs, so that nearly all of the step is exchanges. Their launch alone would be a small part of it.
  for (const auto dispatcher : {workload::Dispatcher::all_to_all, workload::Dispatcher::hybrid_ep}) {
    Cluster cluster;
    cluster.nic = cluster.uplink = 1'000'000'000;
    step::Configuration configuration = config_of(cluster, 1, 1, 4);
    configuration.model.experts = 8;
    configuration.model.experts_per_token = 2;
    configuration.strategy.ep = 8;
    configuration.strategy.stack.dispatcher = dispatcher;
    Tightness tightness;
    require_bound(configuration, tightness);
    CHECK(tightness.mean() > 0.7);
  }
}

TEST_CASE("the lower bound is below drawn steps with unequal experts") {
  Tightness tightness;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    require_bound(draw_routed(seed), tightness);
  }
  CHECK(tightness.mean() > 0.4);
}

TEST_CASE("the lower bound is below steps of every schedule") {
  for (const workload::ScheduleType& type : workload::schedules()) {
    if (type.chunks == workload::ScheduleType::kAsWritten) continue;
    Tightness tightness;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      step::Configuration configuration = with_schedule(draw_configuration(seed), type);
      if (seed % 3 == 0) configuration = with_context_and_experts(configuration, seed);
      if (seed % 3 == 1) configuration.strategy.stack.overlap_transfers = false;
      configuration.strategy.stack.post_validation = seed % 4 == 0;
      INFO(type.name << ", seed " << seed);
      require_bound(configuration, tightness);
    }
    CHECK(tightness.mean() > 0.3);
  }
}

TEST_CASE("a bound of open replicas is below those of all that they may do") {
  std::size_t bounds = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    INFO("seed " << seed);
    step::Configuration configuration = with_context_and_experts(draw_configuration(seed), seed);
    workload::Strategy& s = configuration.strategy;
    s.zero = 0;
    s.stack.overlap_parameters = false;
    const Time open = step::lower_bound_ps(configuration, step::Replicas::open);
    REQUIRE(open > 0);
    for (s.zero = 0; s.zero <= (s.replicas() > 1 ? 3 : 0); ++s.zero)
      for (const int flags : {0, 1, 2, 3, 4, 5, 6, 7}) {
        s.overlap_grad_reduce = (flags & 1) != 0;
        s.stack.reduce_in_16bit = (flags & 2) != 0;
        s.stack.overlap_parameters = s.zero > 0 && s.zero < 3 && (flags & 4) != 0;
        REQUIRE(open <= step::lower_bound_ps(configuration));
        ++bounds;
      }
  }
  CHECK(bounds > 2'000);
}

TEST_CASE("a step of one rank without communication is its bound") {
  Cluster cluster;
  cluster.nodes = 1;
  cluster.gpus_per_node = 1;
  const step::Configuration configuration = config_of(cluster, 1, 1, 4);
  CHECK(
      step::lower_bound_ps(configuration) ==
      Approx(static_cast<double>(run_configuration(configuration, step::Composition::composed).step_ps)).epsilon(1e-3));
}
