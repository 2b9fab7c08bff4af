// How much of a contended link a transport uses. Transfers that begin together on a link of a switch need some time to
// find their shares of it, by marks, delays or pauses, and short ones are over before they have. What that costs is
// measured: as many equal transfers as share the link are simulated packet by packet, over the hops of a connection.
// Packets that are spread over several links at random find these unequally busy; that is measured in the same way.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/network/fabric/router.hpp"
#include "core/network/flows/component_cache.hpp"
#include "core/network/flows/flows.hpp"

namespace manyworlds::core::step {

class TransportEfficiency {
 public:
  /// `packets` must outlive this; it has the transport to be measured.
  explicit TransportEfficiency(network::ComponentCache& packets) : packets_(packets) {}

  /// A transfer over a path, one hop of which others share; there may be several equal links there.
  struct Shared {
    std::vector<network::LinkSpec> path;
    std::size_t hop = 0;
    std::int64_t bytes = 0;
    std::int64_t ways = 1;
    bool operator==(const Shared&) const = default;
  };
  /// Returns the mean rate of `transfers` such transfers that begin together, over a fair share of the rate of the
  /// shared links, in millionths: at most 1'000'000. There are at least as many transfers as ways.
  std::int64_t ppm(const Shared& shared, std::int64_t transfers);

 private:
  std::int64_t measure(const Shared& shared, std::int64_t transfers);
  Int128 sum_of_ends(network::Flows& flows, std::int64_t transfers);
  Int128 on_components(const Shared& shared, std::int64_t transfers);
  Int128 packet_by_packet(const Shared& shared, std::int64_t transfers);

  network::ComponentCache& packets_;
  struct Known {
    Shared shared;
    std::map<std::int64_t, std::int64_t> by_transfers;
  };
  std::vector<Known> known_;  // few: by the paths and sizes of a step
};

}  // namespace manyworlds::core::step
