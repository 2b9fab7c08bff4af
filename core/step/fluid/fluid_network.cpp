// A collective has the exits of analytic fidelity on a clock of its own, which runs at the speed that max-min fairness
// leaves it (max_min_speeds.hpp) once all its members have entered. Its load on a link is the mean over its uncontended
// duration, so that rounds of unequal load, queues and the time that congestion control takes to find its rate are not
// modelled, but for what short transfers lose by the last (transport_efficiency.hpp); fluid_error.hpp measures what
// that is worth.
#include "core/step/fluid/fluid_network.hpp"

#include <algorithm>
#include <queue>

#include "core/step/fluid/max_min_speeds.hpp"
#include "core/step/fluid/transport_efficiency.hpp"
#include "core/step/network/uncontended_network.hpp"

namespace manyworlds::core::step {
namespace {

constexpr std::uint32_t kNoSlot = UINT32_MAX;
// With what the efficiency of a transport is measured, at most: transfers that share a link, and links that share them.
constexpr std::int64_t kMaxSharing = 16, kMaxWays = 8;

class SharedLinks final : public UncontendedNetwork<FluidNetwork> {
 public:
  SharedLinks(const CompiledStep& compiled, const IsolatedResults& results, network::ComponentCache& packets)
      : UncontendedNetwork(compiled, results),
        compiled_(compiled),
        speeds_(compiled.link_numbers()),
        efficiency_(packets),
        loads_(compiled.collective_ops().size()),
        transfers_(compiled.collective_ops().size()),
        clocks_(compiled.instances()) {}

  void enter(Time at, const std::vector<Member>& members) override {
    now_ = at;
    // Clocks begin to differ from the step's only after the last entry.
    for_each_instance(members, [&](std::span<const Member> some) { exits_.enter(at, some); });
  }

  Time next_exit(Time limit) override {
    for (const InstanceId instance : exits_.take_scheduled()) {
      Clock& clock = clocks_[instance];
      if (clock.slot == kNoSlot && exits_.is_closed(instance)) start(instance);
      schedule(instance);
    }
    for (const std::uint32_t slot : speeds_.update()) {
      adjust(clocks_[running_[slot]], used_speed(slot));
      schedule(running_[slot]);
    }
    while (!due_exits_.empty() && due_exits_.top().at != next_exit_of(due_exits_.top().instance)) due_exits_.pop();
    return due_exits_.empty() || due_exits_.top().at > limit ? kNever : due_exits_.top().at;
  }

  void take_exits(Time at, std::vector<Member>& exits) override {
    now_ = at;
    while (!due_exits_.empty() && due_exits_.top().at == at) {
      const InstanceId instance = due_exits_.top().instance;
      due_exits_.pop();
      while (next_exit_of(instance) == at) exits_.take(instance, exits_.next(instance), exits);
      schedule(instance);
      if (clocks_[instance].slot != kNoSlot && exits_.next(instance) == kNever) stop(instance);
    }
  }

  const std::vector<ContendedCollective>& contended() const override { return contended_; }

 private:
  /// The clock of an instance: it has been `behind` the step's since `since`, and runs at `speed`.
  struct Clock {
    Time since = 0;
    Time behind = 0;
    FluidShare speed = kFullSpeed;
    Time begin = 0;                // when it began to take shares of links
    std::uint32_t slot = kNoSlot;  // its number among the collectives that do
    bool was_slowed = false;
  };
  struct Due {
    Time at;
    InstanceId instance;
    bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : instance.value() > other.instance.value();
    }
  };

  /// Returns the instant at which the clock of an instance reaches its next exit.
  Time next_exit_of(InstanceId instance) const {
    const Time next = exits_.next(instance);
    const Clock& clock = clocks_[instance];
    if (next == kNever) return kNever;
    if (clock.speed == kFullSpeed) return next + clock.behind;
    const Time left = next - (clock.since - clock.behind);
    return clock.since + static_cast<Time>((Int128{left} * kFullSpeed + clock.speed - 1) / clock.speed);
  }

  void schedule(InstanceId instance) {
    if (const Time at = next_exit_of(instance); at != kNever) due_exits_.push({at, instance});
  }

  /// Sets the speed of a clock from now on.
  void adjust(Clock& clock, FluidShare speed) {
    const Time passed = now_ - clock.since;
    clock.behind += passed - static_cast<Time>(Int128{passed} * clock.speed / kFullSpeed);
    clock.since = now_;
    clock.speed = speed;
    clock.was_slowed |= speed < kFullSpeed;
  }

  /// Returns the speed that the transport makes of the share of its links that a collective has. That is less than its
  /// share only of single transfers that meet at a switch: NICs serve the transfers of their GPU in turn, inside a node
  /// there is no congestion control, and connections of many transfers find each other at work at any time.
  FluidShare used_speed(std::uint32_t slot) {
    const FluidShare fair = speeds_.speed(slot);
    if (fair == kFullSpeed) return fair;
    const std::int64_t sharing = std::clamp<std::int64_t>((kFullSpeed + fair / 2) / fair, 2, kMaxSharing);
    const CollectiveOpId id = compiled_.collective_op_id(running_[slot]);
    const std::uint32_t bottleneck = speeds_.bottleneck(slot);
    // What transfers that just fill a pool lose there is part of the load.
    const std::int64_t in_load = ways_of(bottleneck) > 1 ? used_ppm(id, bottleneck, 1) : 1'000'000;
    const std::int64_t ppm = std::min<std::int64_t>(1'000'000, used_ppm(id, bottleneck, sharing) * 1'000'000 / in_load);
    return std::max<FluidShare>(1, static_cast<FluidShare>(Int128{fair} * ppm / 1'000'000));
  }

  /// Returns the part of its share of a link, or of a pool of links, that the transport of an operation uses if
  /// `sharing` transfers share each link; in millionths.
  std::int64_t used_ppm(CollectiveOpId id, std::uint32_t pool, std::int64_t sharing) {
    const LinkPools* pools = compiled_.pools();
    const network::LinkSpec link =
        network::spec_of(compiled_.layout().graph(), pools == nullptr ? pool : pools->link_of(pool));
    const collective::Dag& dag = *compiled_.collective_ops()[id].dag;
    const bool is_single = dag.transfers.size() <= dag.pairs.size();
    if (link.scale_up || link.leaves_gpu || (!is_single && ways_of(pool) == 1)) return 1'000'000;
    TransportEfficiency::Shared shared = transfer_of(id);
    if (shared.path.size() < 2) return 1'000'000;
    shared.hop = link.enters_gpu || shared.path.size() == 2 ? shared.path.size() - 1 : 1;
    shared.ways = std::min(ways_of(pool), kMaxWays);
    return efficiency_.ppm(shared, sharing * shared.ways);
  }

  std::int64_t ways_of(std::uint32_t pool) const {
    return compiled_.pools() == nullptr ? 1 : static_cast<std::int64_t>(compiled_.pools()->ways(pool));
  }

  /// Returns the first transfer of the connection of an operation that has most hops on the network.
  const TransportEfficiency::Shared& transfer_of(CollectiveOpId id) {
    std::unique_ptr<TransportEfficiency::Shared>& slot = transfers_[id];
    if (slot) return *slot;
    slot = std::make_unique<TransportEfficiency::Shared>();
    const CriticalPaths::Paths& paths = *exits_.paths_of(id);
    for (const collective::Transfer& transfer : compiled_.collective_ops()[id].dag->transfers) {
      const std::vector<network::LinkSpec>& path = paths[transfer.pair];
      if (path.empty() || path.front().scale_up || path.size() <= slot->path.size()) continue;
      slot->path = path;
      slot->bytes = transfer.bytes;
    }
    return *slot;
  }

  /// Lets an instance that all members have entered take its share of its links.
  void start(InstanceId instance) {
    const MaxMinSpeeds::Loads& loads = loads_of(compiled_.collective_op_id(instance));
    if (loads.empty()) return;
    Clock& clock = clocks_[instance];
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(running_.size()));
      running_.push_back(instance);
    }
    clock.slot = free_.back();
    free_.pop_back();
    running_[clock.slot] = instance;
    clock.since = clock.begin = now_;
    speeds_.add(clock.slot, loads);
  }

  void stop(InstanceId instance) {
    Clock& clock = clocks_[instance];
    if (clock.was_slowed) contended_.push_back({instance, clock.begin, now_});
    speeds_.remove(clock.slot);
    free_.push_back(clock.slot);
    clock.slot = kNoSlot;
  }

  /// Returns what an operation takes of each of its links, as a share of its uncontended duration.
  const MaxMinSpeeds::Loads& loads_of(CollectiveOpId id) {
    std::unique_ptr<MaxMinSpeeds::Loads>& slot = loads_[id];
    if (slot) return *slot;
    slot = std::make_unique<MaxMinSpeeds::Loads>();
    const CollectiveOp& collective_op = compiled_.collective_ops()[id];
    const Time duration = std::max<Time>(1, uncontended_duration(id));
    const std::vector<PairLoad> pairs = pair_loads_of(*collective_op.dag, compiled_.transport());
    if (const LinkPools* pools = compiled_.pools(); pools != nullptr) {
      std::map<std::uint32_t, Int128> shares;  // of each pool: bytes, times kAllPackets
      for (std::size_t pair = 0; pair < pairs.size(); ++pair)
        for (const LinkPools::Use& use : pools->uses_of(collective_op.connections->spreads[pair]))
          shares[use.pool] += Int128{pairs[pair].bytes} * use.share;
      for (const auto& [pool, share] : shares) {
        const Time busy = serialization_ps(static_cast<std::int64_t>(share / network::kAllPackets), pools->rate(pool));
        Int128 load = Int128{busy} * kFullSpeed / duration;
        if (ways_of(pool) > 1) load = load * 1'000'000 / used_ppm(id, pool, 1);
        slot->push_back({pool, static_cast<FluidShare>(load)});
      }
      return *slot;
    }
    std::map<std::uint32_t, std::int64_t> bytes;
    for (std::size_t pair = 0; pair < pairs.size(); ++pair)
      for (const std::uint32_t link : collective_op.connections->routes[pair]) bytes[link] += pairs[pair].bytes;
    for (const auto& [link, total] : bytes) {
      const Time busy = serialization_ps(total, compiled_.layout().graph().links[link].bits_per_second);
      slot->push_back({link, static_cast<FluidShare>(Int128{busy} * kFullSpeed / duration)});
    }
    return *slot;
  }

  Time uncontended_duration(CollectiveOpId id) {
    const CollectiveOp& collective_op = compiled_.collective_ops()[id];
    CriticalPaths paths(collective_op.dag, exits_.paths_of(id));
    std::vector<network::Exit> exits;
    for (std::uint32_t member = 0; member < collective_op.dag->members; ++member)
      paths.enter(compiled_.transport(), member, 0, 0, exits);
    return paths.last_activity();
  }

  const CompiledStep& compiled_;
  MaxMinSpeeds speeds_;
  TransportEfficiency efficiency_;
  IdVector<CollectiveOpId, std::unique_ptr<MaxMinSpeeds::Loads>> loads_;
  IdVector<CollectiveOpId, std::unique_ptr<TransportEfficiency::Shared>> transfers_;
  IdVector<InstanceId, Clock> clocks_;
  std::vector<InstanceId> running_;  // by slot
  std::vector<std::uint32_t> free_;  // slots
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_exits_;
  std::vector<ContendedCollective> contended_;
  Time now_ = 0;
};

}  // namespace

std::unique_ptr<FluidNetwork> make_fluid(const CompiledStep& compiled, const IsolatedResults& results,
                                         network::ComponentCache& packets) {
  return std::make_unique<SharedLinks>(compiled, results, packets);
}

}  // namespace manyworlds::core::step
