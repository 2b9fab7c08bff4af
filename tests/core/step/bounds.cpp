// No step is faster than its bounds: the sums over one micro-batch, below the analytic step, below the step in packets
// and as fluids, over drawn configurations of every transport, routing and schedule. `sweep --best` rests on this.
#include <catch2/catch.hpp>

#include <map>

#include "core/step/estimate/lower_bound.hpp"
#include "tests/core/step/step_configurations.hpp"

using namespace manyworlds::tests;

namespace {

/// Any of the configurations of step_configurations.hpp, with any transport, routing, fabric, seed of a hash and queue
/// pair.
step::Configuration draw_any(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::uint64_t count) { return random() % count; };
  step::Configuration result = one_of(5) == 0 ? draw_routed(seed) : draw_configuration(seed);
  if (!result.model.has_experts() && one_of(2) == 0) result = with_context_and_experts(result, one_of(1'000));
  if (one_of(3) == 0) result = with_overlaps(result, one_of(1'000));
  const workload::Strategy& s = result.strategy;
  if (!result.model.has_experts() && one_of(5) == 0 && (s.pp > 1 || s.dp % 2 == 0 || s.tp % 2 == 0)) {
    const workload::ScheduleType& type = workload::schedules()[one_of(workload::schedules().size())];
    if (type.chunks != workload::ScheduleType::kAsWritten) result = with_schedule(result, type);
  }
  if (one_of(3) == 0) result = with_calibrated_library(result);
  network::Transport& transport = result.transport;
  transport.kind = network::transports()[one_of(network::transports().size())].name;
  transport.routing = static_cast<network::Routing>(one_of(5));
  transport.seed = static_cast<std::int64_t>(1 + one_of(1'000));
  if (network::spreads(transport) && transport.kind == "hpcc") transport.kind = "dcqcn";  // HPCC needs one path
  if (network::needs_per_packet(transport) && one_of(3) == 0) transport.fabric = network::Fabric::lossy;
  if (!network::spreads(transport)) {
    transport.ecmp_hash_seeds = static_cast<network::HashSeeds>(one_of(3));
    result.collectives.qps_per_connection = static_cast<std::int64_t>(1 + one_of(3));
  }
  for (const workload::Role role : {workload::Role::data, workload::Role::tensor})
    if (one_of(6) == 0)
      result.group_libraries[role] =
          collective::with_algorithms(result.collectives, {.all_reduce = any_all_reduce(one_of(1'000))});
  return result;
}

/// A composed step has no acknowledgements that are packets.
step::Composition composition_of(const step::Configuration& configuration) {
  return network::transport_type(configuration.transport).trims ? step::Composition::coupled
                                                                : step::Composition::composed;
}

struct Bounded {
  std::size_t steps = 0, violations = 0;
  std::map<std::string, std::size_t> by_transport, by_routing;
  double tightest = 0;  // the largest ratio of a bound to its step

  void add(const step::Configuration& configuration, Time bound, Time simulated) {
    ++steps, ++by_transport[configuration.transport.kind];
    ++by_routing[std::to_string(static_cast<int>(configuration.transport.routing))];
    violations += bound > simulated;
    tightest = std::max(tightest, static_cast<double>(bound) / static_cast<double>(simulated));
  }
};

/// Compares the steps of some seeds with their bounds, these being longer by a share in parts per million.
Bounded compare(std::uint64_t seeds, Time longer_ppm = 0) {
  Bounded result;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const step::Configuration configuration = draw_any(seed);
    const auto longer = [&](Time bound) { return bound + bound / 1'000'000 * longer_ppm; };
    const Time sums = step::lower_bound_ps(configuration);
    step::Configuration without_contention = configuration;
    without_contention.transport.fidelity = network::Fidelity::analytic;
    const Time sums_without_contention = step::lower_bound_ps(without_contention);
    const Time analytic = run_at(configuration, network::Fidelity::analytic).step_ps;
    const Time fluid = run_at(configuration, network::Fidelity::fluid).step_ps;
    const Time packets = run_configuration(configuration, composition_of(configuration)).step_ps;
    result.add(configuration, longer(sums_without_contention), analytic);
    result.add(configuration, longer(std::max(sums, analytic)), fluid);
    result.add(configuration, longer(std::max(sums, analytic)), packets);
    if (longer_ppm > 0) continue;
    INFO("seed " << seed << ", " << configuration.transport.kind);
    CHECK(sums_without_contention <= sums);
    CHECK(sums_without_contention <= analytic);
    CHECK(sums <= fluid);
    CHECK(sums <= packets);
    CHECK(analytic <= fluid);
    CHECK(analytic <= packets);
  }
  return result;
}

void require_every_kind(const Bounded& result) {
  CHECK(result.by_transport.size() == network::transports().size());
  CHECK(result.by_routing.size() == 5);
  CHECK(result.tightest <= 1);
}

}  // namespace

TEST_CASE("no step is faster than its bounds, over every transport and routing") {
  require_every_kind(compare(100));
}

TEST_CASE("no step of 21,000 is faster than its bounds, over every transport and routing", "[.slow]") {
  require_every_kind(compare(7'000));
}

TEST_CASE("a bound that is one per cent too long is found") {
  CHECK(compare(60, 10'000).violations > 10);
}
