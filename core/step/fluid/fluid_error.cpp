#include "core/step/fluid/fluid_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/hash.hpp"
#include "core/step/network/local_links.hpp"

namespace manyworlds::core::step {
namespace {

/// Collectives whose members all enter at once, each at its time.
struct Start {
  Time at = 0;
  InstanceId instance;
};

/// The links that collectives use, and the pools of links if packets spread.
class UsedLinks {
 public:
  explicit UsedLinks(const CompiledStep& compiled) : compiled_(compiled) {}

  const std::vector<std::uint32_t>& of(InstanceId instance) {
    const Connections& connections = *compiled_.collective_op_of(instance).connections;
    if (compiled_.pools() == nullptr) return connections.links;
    const auto [known, is_new] = pools_.try_emplace(&connections);
    if (!is_new) return known->second;
    std::set<std::uint32_t> numbers;
    for (const network::Spread& spread : connections.spreads)
      for (const LinkPools::Use& use : compiled_.pools()->uses_of(spread)) numbers.insert(use.pool);
    return known->second = {numbers.begin(), numbers.end()};
  }

 private:
  const CompiledStep& compiled_;
  std::map<const Connections*, std::vector<std::uint32_t>> pools_;
};

/// Returns how long each takes as fluids.
std::vector<Time> fluid_durations(const CompiledStep& compiled, const std::vector<Start>& starts,
                                  network::ComponentCache& packets) {
  IsolatedResults results;
  network::ComponentCache cache(compiled.transport(), compiled.configuration().graph);
  const std::unique_ptr<FluidNetwork> network = make_fluid(compiled, results, packets);
  std::map<InstanceId, Time> ends;
  std::vector<Member> members;
  const auto run_to = [&](Time limit) {
    for (const CollectiveOpId id : network->missing()) {
      const CollectiveOp& op = compiled.collective_ops()[id];
      results[op.key] = std::make_shared<IsolatedResult>(
          simulate_isolated(*op.dag, *op.connections, compiled.layout().graph(), cache));
    }
    for (Time at = network->next_exit(limit); at != kNever; at = network->next_exit(limit)) {
      members.clear();
      network->take_exits(at, members);
      for (const Member& member : members) ends[member.instance] = at;
    }
  };
  for (const Start& start : starts) {
    run_to(start.at);
    members.clear();
    for (std::uint32_t member = 0; member < compiled.collective_op_of(start.instance).dag->members; ++member)
      members.push_back({start.instance, member});
    network->enter(start.at, members);
  }
  run_to(kNever);
  std::vector<Time> durations;
  for (const Start& start : starts) durations.push_back(ends.at(start.instance) - start.at);
  return durations;
}

/// Returns how long each takes packet by packet; 0 if pauses block some of its members for ever.
std::vector<Time> packet_durations(const CompiledStep& compiled, const std::vector<Start>& starts,
                                   network::ComponentCache& cache) {
  network::Traffic traffic(network::make_flows(cache));
  LocalLinks links(compiled.layout().graph(), cache.fabric() != nullptr);
  std::vector<network::Exit> exits;
  for (const Start& start : starts) {
    while (traffic.now() < start.at) traffic.advance(start.at, exits);
    const CollectiveOp& op = compiled.collective_op_of(start.instance);
    const std::uint32_t number = traffic.add(op.dag, links.add(traffic, op.connections->routes));
    traffic.add_tie_order(number);
    for (std::uint32_t member = 0; member < op.dag->members; ++member) traffic.enter(number, member);
  }
  while (!traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(kNever, exits);
    if (exits.size() == before && !traffic.drained()) break;  // a deadlock
  }
  std::vector<Time> durations(starts.size(), 0);
  std::vector<std::uint32_t> inside;
  for (const Start& start : starts) inside.push_back(compiled.collective_op_of(start.instance).dag->members);
  std::sort(exits.begin(), exits.end());
  for (const network::Exit& exit : exits)
    if (--inside[exit.collective] == 0) durations[exit.collective] = exit.at - starts[exit.collective].at;
  return durations;
}

}  // namespace

FluidError measure_fluid_error(const CompiledStep& compiled, const std::vector<ContendedCollective>& contended,
                               network::ComponentCache& packets) {
  const auto& [samples, max_link_hops] = compiled.configuration().fluid;
  const auto hops_of = [&](const ContendedCollective& one) {
    return compiled.collective_op_of(one.instance).link_hops / compiled.collective_op_of(one.instance).groups;
  };
  std::vector<std::pair<std::uint64_t, std::size_t>> drawn;
  for (std::size_t i = 0; i < contended.size(); ++i)
    if (hops_of(contended[i]) <= max_link_hops) drawn.emplace_back(splitmix64(contended[i].instance.value()), i);
  std::sort(drawn.begin(), drawn.end());
  if (static_cast<std::int64_t>(drawn.size()) > samples) drawn.resize(static_cast<std::size_t>(samples));

  FluidError error;
  error.contended = static_cast<std::int64_t>(contended.size()) * compiled.copies();
  std::vector<bool> is_crossed(compiled.link_numbers(), false);
  UsedLinks used(compiled);
  for (const auto& [hash, index] : drawn) {
    const ContendedCollective& one = contended[index];
    const std::vector<std::uint32_t>& links = used.of(one.instance);
    for (const std::uint32_t link : links) is_crossed[link] = true;
    std::vector<Start> starts{{one.begin, one.instance}};
    std::int64_t hops = hops_of(one);
    for (const ContendedCollective& other : contended) {
      if (&other == &one || other.begin >= one.end || other.end <= one.begin || hops + hops_of(other) > max_link_hops)
        continue;
      const std::vector<std::uint32_t>& theirs = used.of(other.instance);
      if (std::none_of(theirs.begin(), theirs.end(), [&](std::uint32_t link) { return is_crossed[link]; })) continue;
      hops += hops_of(other);
      starts.push_back({other.begin, other.instance});
    }
    for (const std::uint32_t link : links) is_crossed[link] = false;
    std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
      return a.at != b.at ? a.at < b.at : a.instance.value() < b.instance.value();
    });
    const Time first = starts.front().at;
    for (Start& start : starts) start.at -= first;
    const std::vector<Time> fluid = fluid_durations(compiled, starts, packets);
    const std::vector<Time> exact = packet_durations(compiled, starts, packets);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      if (exact[i] == 0) continue;  // pauses block it
      const double difference = static_cast<double>(fluid[i]) / static_cast<double>(exact[i]) - 1;
      ++error.sampled;
      error.mean += std::abs(difference), error.bias += difference;
      error.max = std::max(error.max, std::abs(difference));
    }
  }
  if (error.sampled > 0)
    error.mean /= static_cast<double>(error.sampled), error.bias /= static_cast<double>(error.sampled);
  return error;
}

}  // namespace manyworlds::core::step
