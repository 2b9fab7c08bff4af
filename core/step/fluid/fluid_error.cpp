#include "core/step/fluid/fluid_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "core/base/hash.hpp"
#include "core/step/fluid/link_shares.hpp"
#include "core/step/network/isolated.hpp"
#include "core/step/network/local_links.hpp"

namespace manyworlds::core::step {
namespace {

/// A collective of one group, whose members all enter at once.
struct Start {
  Time at = 0;
  CollectiveOpId op;
  GroupId group;
};

/// The contended collectives of a step, with each group that one of them stands for.
class Neighbours {
 public:
  Neighbours(const CompiledStep& compiled, const std::vector<ContendedCollective>& contended)
      : compiled_(compiled), contended_(contended), is_crossed_(compiled.link_numbers(), false) {
    const IdVector<GroupId, GroupId>& canonical = compiled.symmetry().canonical;
    groups_ = IdVector<GroupId, std::vector<GroupId>>(canonical.size());
    for (const GroupId group : canonical.ids()) groups_[canonical[group]].push_back(group);
  }

  /// Returns the groups that the group of an operation stands for.
  const std::vector<GroupId>& groups_of(const CollectiveOp& op) const { return groups_[op.group]; }

  /// Returns the starts of a collective of `group` and of those that ran at the same time and share a link with it, as
  /// many as together have `max_link_hops`, in the order of time; the first of them is at 0.
  std::vector<Start> around(const ContendedCollective& one, GroupId group, std::int64_t max_link_hops) {
    const CollectiveOpId id = compiled_.collective_op_id(one.instance);
    const std::vector<std::uint32_t>& links = links_of(id, group);
    for (const std::uint32_t link : links) is_crossed_[link] = true;
    std::map<std::pair<GroupId, std::uint32_t>, bool> shares_link;  // by group and connectivity
    std::vector<Start> starts{{one.begin, id, group}};
    std::int64_t hops = hops_of(id);
    for (const ContendedCollective& other : contended_) {
      if (other.begin >= one.end || other.end <= one.begin) continue;
      const CollectiveOpId other_id = compiled_.collective_op_id(other.instance);
      const CollectiveOp& other_op = compiled_.collective_ops()[other_id];
      for (const GroupId neighbour : groups_of(other_op)) {
        if (hops + hops_of(other_id) > max_link_hops) break;
        if (other.instance == one.instance && neighbour == group) continue;
        const auto [known, is_new] = shares_link.try_emplace({neighbour, other_op.connectivity}, false);
        if (is_new) {
          const std::vector<std::uint32_t>& theirs = links_of(other_id, neighbour);
          known->second =
              std::any_of(theirs.begin(), theirs.end(), [&](std::uint32_t link) { return is_crossed_[link]; });
        }
        if (!known->second) continue;
        hops += hops_of(other_id);
        starts.push_back({other.begin, other_id, neighbour});
      }
    }
    for (const std::uint32_t link : links) is_crossed_[link] = false;
    std::sort(starts.begin(), starts.end(), [](const Start& a, const Start& b) {
      return std::tuple(a.at, a.group.value(), a.op.value()) < std::tuple(b.at, b.group.value(), b.op.value());
    });
    const Time first = starts.front().at;
    for (Start& start : starts) start.at -= first;
    return starts;
  }

  /// Returns the link-hops of one collective.
  std::int64_t hops_of(CollectiveOpId id) const {
    const CollectiveOp& op = compiled_.collective_ops()[id];
    return op.link_hops / op.groups;
  }

 private:
  /// Returns the links that a group uses for an operation, or pools of links if packets spread.
  const std::vector<std::uint32_t>& links_of(CollectiveOpId id, GroupId group) {
    const Connections& connections = compiled_.connections_of(compiled_.collective_ops()[id], group);
    if (compiled_.pools() == nullptr) return connections.links;
    const auto [known, is_new] = pools_.try_emplace(&connections);
    if (!is_new) return known->second;
    std::set<std::uint32_t> numbers;
    for (const network::Spread& spread : connections.spreads)
      for (const LinkPools::Use& use : compiled_.pools()->uses_of(spread)) numbers.insert(use.pool);
    return known->second = {numbers.begin(), numbers.end()};
  }

  const CompiledStep& compiled_;
  const std::vector<ContendedCollective>& contended_;
  IdVector<GroupId, std::vector<GroupId>> groups_;  // by the first group of each class
  std::vector<bool> is_crossed_;                    // by link or pool, in around()
  std::map<const Connections*, std::vector<std::uint32_t>> pools_;
};

/// Some collectives, to be simulated both ways.
class Sample {
 public:
  Sample(const CompiledStep& compiled, std::vector<Start> starts, DagCache& dags) : compiled_(compiled) {
    for (const Start& start : starts) {
      const CollectiveOp& op = compiled.collective_ops()[start.op];
      const bool is_whole = op.dag->members == op.shape.members;
      collectives_.push_back(
          {start, is_whole ? op.dag : dags.get(op.shape), &compiled.connections_of(op, start.group)});
    }
  }

  std::size_t size() const { return collectives_.size(); }
  /// Returns how long each takes as fluids.
  std::vector<Time> fluid_durations(LinkShares& shares) const;
  /// Returns how long each takes packet by packet; 0 if pauses block some of its members for ever.
  std::vector<Time> packet_durations(network::ComponentCache& cache) const;

 private:
  struct Collective {
    Start start;
    std::shared_ptr<const collective::Dag> dag;
    const Connections* connections;
  };

  const CompiledStep& compiled_;
  std::vector<Collective> collectives_;  // in the order of their starts
};

std::vector<Time> Sample::fluid_durations(LinkShares& shares) const {
  struct Running {
    FluidClock clock;
    MaxMinSpeeds::Loads loads;
    Time last = kNever;  // when it ends on its clock; kNever: it has not begun, or is over
  };
  MaxMinSpeeds speeds(compiled_.link_numbers(), shares.preference());
  std::vector<Running> running(size());
  std::vector<Time> durations(size(), 0);
  const auto update = [&](Time now) {
    for (const std::uint32_t i : speeds.update())
      running[i].clock.set_speed(now,
                                 shares.used_speed(collectives_[i].start.op, speeds.speed(i), speeds.bottleneck(i)));
  };
  const auto run_to = [&](Time limit) {
    while (true) {
      Time next = kNever;
      for (const Running& one : running)
        if (one.last != kNever) next = std::min(next, one.clock.when(one.last));
      if (next == kNever || next > limit) return;
      for (std::uint32_t i = 0; i < size(); ++i) {
        if (running[i].last == kNever || running[i].clock.when(running[i].last) != next) continue;
        durations[i] = next - collectives_[i].start.at;
        running[i].last = kNever;
        speeds.remove(i);
      }
      update(next);
    }
  };
  for (std::uint32_t i = 0; i < size(); ++i) {
    const Collective& one = collectives_[i];
    run_to(one.start.at);
    running[i].loads = shares.on(one.start.op, *one.dag, *one.connections);
    running[i].clock.set_speed(one.start.at, shares.speed_alone(one.start.op));
    const std::vector<Time> exits =
        uncontended(*one.dag, *one.connections, compiled_.layout().graph(), compiled_.transport()).exits;
    running[i].last = one.start.at + *std::max_element(exits.begin(), exits.end());
    speeds.add(i, running[i].loads);
    update(one.start.at);
  }
  run_to(kNever);
  return durations;
}

std::vector<Time> Sample::packet_durations(network::ComponentCache& cache) const {
  network::Traffic traffic(network::make_flows(cache));
  LocalLinks links(compiled_.layout().graph(), cache.fabric() != nullptr);
  std::vector<network::Exit> exits;
  std::vector<std::uint32_t> inside;  // members that have not left
  for (const Collective& one : collectives_) {
    while (traffic.now() < one.start.at) traffic.advance(one.start.at, exits);
    const std::uint32_t number = traffic.add(one.dag, links.add(traffic, one.connections->routes));
    traffic.add_tie_order(number);
    for (std::uint32_t member = 0; member < one.dag->members; ++member) traffic.enter(number, member);
    inside.push_back(one.dag->members);
  }
  while (!traffic.drained()) {
    const std::size_t before = exits.size();
    traffic.advance(kNever, exits);
    if (exits.size() == before && !traffic.drained()) break;  // a deadlock
  }
  std::vector<Time> durations(size(), 0);
  std::sort(exits.begin(), exits.end());
  for (const network::Exit& exit : exits)
    if (--inside[exit.collective] == 0) durations[exit.collective] = exit.at - collectives_[exit.collective].start.at;
  return durations;
}

}  // namespace

FluidError measure_fluid_error(const CompiledStep& compiled, const std::vector<ContendedCollective>& contended,
                               DagCache& dags, network::ComponentCache& packets, TransportEfficiency& efficiency) {
  const auto& [samples, max_link_hops] = compiled.configuration().fluid;
  FluidError error;
  if (contended.empty()) return error;
  Neighbours neighbours(compiled, contended);
  // Of n hashes, the least over its weight belongs to each with a probability in proportion to its weight.
  std::vector<std::pair<std::uint64_t, std::size_t>> drawn;
  for (std::size_t i = 0; i < contended.size(); ++i) {
    const CollectiveOp& op = compiled.collective_op_of(contended[i].instance);
    error.contended += op.groups;
    if (neighbours.hops_of(compiled.collective_op_id(contended[i].instance)) <= max_link_hops)
      drawn.emplace_back(splitmix64(contended[i].instance.value()) / static_cast<std::uint64_t>(op.groups), i);
  }
  std::sort(drawn.begin(), drawn.end());
  if (static_cast<std::int64_t>(drawn.size()) > samples) drawn.resize(static_cast<std::size_t>(samples));

  LinkShares shares(compiled, efficiency);
  for (const auto& [hash, index] : drawn) {
    const ContendedCollective& one = contended[index];
    const std::vector<GroupId>& groups = neighbours.groups_of(compiled.collective_op_of(one.instance));
    const Sample sample(compiled, neighbours.around(one, groups[splitmix64(hash) % groups.size()], max_link_hops),
                        dags);
    const std::vector<Time> fluid = sample.fluid_durations(shares);
    const std::vector<Time> exact = sample.packet_durations(packets);
    for (std::size_t i = 0; i < sample.size(); ++i) {
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
