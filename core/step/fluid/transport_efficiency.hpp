// How much of a contended link a transport uses. Transfers that begin together on a link of a switch need some time to
// find their shares of it, by marks, delays or pauses, and short ones are over before they have. What that costs is
// measured: as many equal transfers as share the link are simulated packet by packet, over the hops of a connection.
// Packets that are spread over several links at random find these unequally busy; that is measured in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/network/fabric/router.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::step {

/// A transfer over a path, one hop of which others share; there may be several equal links there.
struct SharedHop {
  std::vector<network::LinkSpec> path;
  std::size_t hop = 0;
  std::int64_t bytes = 0;
  std::int64_t ways = 1;
  bool operator==(const SharedHop&) const = default;
};

/// Numbers by what a TransportEfficiency is asked: few, by the paths and sizes of a step.
class EfficiencyTable {
 public:
  /// Returns the number of a question, 0 if it is new, and whether it is. References stay valid until the next call.
  std::pair<std::int64_t&, bool> of(const SharedHop& shared, std::int64_t transfers) {
    auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& one) { return one.shared == shared; });
    if (known == known_.end()) known = known_.insert(known_.end(), {shared, {}});
    const auto [number, is_new] = known->by_transfers.try_emplace(transfers, 0);
    return {number->second, is_new};
  }

 private:
  struct Known {
    SharedHop shared;
    std::map<std::int64_t, std::int64_t> by_transfers;
  };
  std::vector<Known> known_;
};

class TransportEfficiency {
 public:
  /// `packets` must outlive this; it has the transport to be measured.
  explicit TransportEfficiency(network::ComponentCache& packets) : packets_(packets) {}

  /// Returns the mean rate of `transfers` such transfers that begin together, over a fair share of the rate of the
  /// shared links, in millionths: at most 1'000'000. There are at least as many transfers as ways.
  std::int64_t ppm(const SharedHop& shared, std::int64_t transfers);

 private:
  std::int64_t measure(const SharedHop& shared, std::int64_t transfers);
  Int128 sum_of_ends(network::Flows& flows, std::int64_t transfers);
  Int128 on_components(const SharedHop& shared, std::int64_t transfers);
  Int128 packet_by_packet(const SharedHop& shared, std::int64_t transfers);

  network::ComponentCache& packets_;
  EfficiencyTable known_;
};

/// What a run asks of its transport. Nothing else in it depends on the kind of transport and its options.
class AskedEfficiencies {
 public:
  explicit AskedEfficiencies(TransportEfficiency& transport) : transport_(&transport) {}

  struct Answer {
    SharedHop shared;
    std::int64_t transfers = 0;
    std::int64_t ppm = 0;
    /// Whether a transport gives the same one.
    bool is_that_of(TransportEfficiency& transport) const { return transport.ppm(shared, transfers) == ppm; }
  };

  /// See TransportEfficiency.
  std::int64_t ppm(const SharedHop& shared, std::int64_t transfers) {
    const auto [ppm, is_new] = known_.of(shared, transfers);
    if (!is_new) return ppm;
    ppm = transport_->ppm(shared, transfers);
    answers_.push_back({shared, transfers, ppm});
    return ppm;
  }
  /// Returns the answers so far, in the order of their questions.
  const std::vector<Answer>& answers() const { return answers_; }
  /// Forgets all answers but the first `count`, and takes further ones from another transport.
  void go_on_with(TransportEfficiency& transport, std::size_t count) {
    transport_ = &transport;
    answers_.resize(count);
    known_ = {};
    for (const Answer& answer : answers_) known_.of(answer.shared, answer.transfers).first = answer.ppm;
  }

 private:
  TransportEfficiency* transport_;
  EfficiencyTable known_;
  std::vector<Answer> answers_;
};

}  // namespace manyworlds::core::step
