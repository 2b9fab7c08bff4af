// What the collectives of a step take of their links as fluids: the load of each at full speed, and the speed that its
// transport makes of the share that it is left.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/step/compile/compiled_step.hpp"
#include "core/step/fluid/max_min_speeds.hpp"
#include "core/step/fluid/transport_efficiency.hpp"

namespace manyworlds::core::step {

class LinkShares {
 public:
  /// `efficiency` is that of the step's transport. Both must outlive this, and what is copied from it.
  LinkShares(const CompiledStep& compiled, TransportEfficiency& efficiency);

  /// See AskedEfficiencies.
  const std::vector<AskedEfficiencies::Answer>& answers() const { return efficiency_.answers(); }
  void go_on_with(TransportEfficiency& efficiency, std::size_t answers) {
    efficiency_.go_on_with(efficiency, answers);
    speeds_alone_.assign(speeds_alone_.size(), 0);
  }

  /// Returns what an operation, with all that it stands for, takes of each link that can ever be short of time, as
  /// shares of its uncontended duration. If cables fail, all links count. References stay valid as long as this or a
  /// copy of it is there.
  const MaxMinSpeeds::Loads& of(CollectiveOpId id) {
    if (loads_ == nullptr) form_loads();
    return (*loads_)[id];
  }
  /// Returns what an operation takes of its links on other routes than its own.
  MaxMinSpeeds::Loads on_routes(CollectiveOpId id, const Connections& routes);
  /// Returns what `dag`, the whole DAG of an operation, takes of the links of one of its groups.
  MaxMinSpeeds::Loads on(CollectiveOpId id, const collective::Dag& dag, const Connections& connections);

  /// Returns the speed of an operation that is short of no link: less than the full one if its transport sends more
  /// slowly than its links, as HPCC does, which leaves a share of them free. What packets that spread lose is part of
  /// the load instead.
  FluidShare speed_alone(CollectiveOpId id);
  /// Returns the speed that the transport makes of the share of its links that an operation has, of which `bottleneck`
  /// is short. Beside what it loses alone, that is less than its share only of single transfers that meet at a switch:
  /// NICs serve the transfers of their GPU in turn, inside a node there is no congestion control, and connections of
  /// many transfers find each other at work at any time.
  FluidShare used_speed(CollectiveOpId id, FluidShare fair, std::uint32_t bottleneck);

  /// Returns in which order MaxMinSpeeds prefers links as bottlenecks, so that equivalent links are equals: links of
  /// switches, links into GPUs, others.
  std::vector<std::uint8_t> preference() const;

 private:
  void form_loads();
  MaxMinSpeeds::Loads all_loads_of(CollectiveOpId id);
  std::int64_t used_ppm(CollectiveOpId id, std::uint32_t pool, std::int64_t sharing);
  std::int64_t ways_of(std::uint32_t pool) const;
  const SharedHop& transfer_of(CollectiveOpId id);
  MaxMinSpeeds::Loads on_pools(CollectiveOpId id, const std::vector<PairLoad>& pairs, const Connections& connections,
                               Time duration);
  MaxMinSpeeds::Loads on_links(const std::vector<PairLoad>& pairs, const Connections& connections, Time duration) const;
  MaxMinSpeeds::Load load_of(std::uint32_t link, std::int64_t bytes, Time duration, std::uint32_t count) const;

  const CompiledStep& compiled_;
  AskedEfficiencies efficiency_;
  std::shared_ptr<const IdVector<CollectiveOpId, MaxMinSpeeds::Loads>> loads_;  // null until they are asked for
  IdVector<CollectiveOpId, std::shared_ptr<const SharedHop>> transfers_;
  IdVector<CollectiveOpId, FluidShare> speeds_alone_;  // 0: not asked for yet
};

/// A clock that runs at most as fast as the step's.
class FluidClock {
 public:
  /// Returns the instant of the step at which this clock shows `at`; kNever if it stands still before.
  Time when(Time at) const {
    if (speed_ == kFullSpeed) return at + behind_;
    const Time left = at - (since_ - behind_);
    if (speed_ == 0) return left > 0 ? kNever : since_;
    return since_ + static_cast<Time>((Int128{left} * kFullSpeed + speed_ - 1) / speed_);
  }
  /// Sets its speed from `now` on.
  void set_speed(Time now, FluidShare speed) {
    const Time passed = now - since_;
    behind_ += passed - static_cast<Time>(Int128{passed} * speed_ / kFullSpeed);
    since_ = now;
    speed_ = speed;
  }

 private:
  Time since_ = 0, behind_ = 0;  // how far it was behind the step at `since_`
  FluidShare speed_ = kFullSpeed;
};

}  // namespace manyworlds::core::step
