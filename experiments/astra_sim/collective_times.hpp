// The times of a job's collectives on ASTRA-sim's network.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "experiments/astra_sim/chunk_times.hpp"
#include "experiments/astra_sim/network_file.hpp"
#include "experiments/astra_sim/phases.hpp"
#include "experiments/astra_sim/system_file.hpp"

namespace manyworlds::experiments::astra_sim {

class CollectiveTimes {
 public:
  CollectiveTimes(const System& system, const Network& network, Congestion congestion)
      : system_(system), network_(network), congestion_(congestion) {}

  /// Returns the nanosecond at which each member of a group leaves a collective that it entered at `entries`: exactly
  /// ASTRA-sim's where all come at once, and without congestion where it has one phase. Otherwise it begins when the
  /// last member has come. Throws InputError for what cannot be told.
  std::vector<std::int64_t> ends(const Call& call, const std::vector<std::uint32_t>& group,
                                 const std::vector<std::int64_t>& entries);

  /// Returns how many collectives began when the last member came, though ASTRA-sim would have begun before.
  std::int64_t begun_late() const { return begun_late_; }

 private:
  struct Known {
    Chunks chunks;
    bool is_symmetric = true;
    std::optional<std::int64_t> ns;  // where all come at once
  };
  Known& known(const Call& call, const std::vector<std::uint32_t>& group);

  const System& system_;
  const Network& network_;
  Congestion congestion_;
  std::map<std::tuple<Call, std::vector<std::uint32_t>>, Known> known_;
  std::int64_t begun_late_ = 0;
};

}  // namespace manyworlds::experiments::astra_sim
