// The times of a job's collectives on ASTRA-sim's network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "experiments/astra_sim/collectives/chunk_times.hpp"
#include "experiments/astra_sim/collectives/phases.hpp"
#include "experiments/astra_sim/files/custom_algorithms.hpp"
#include "experiments/astra_sim/files/network_file.hpp"
#include "experiments/astra_sim/files/system_file.hpp"

namespace manyworlds::experiments::astra_sim {

class CollectiveTimes {
 public:
  CollectiveTimes(const System& system, const Network& network, Congestion congestion, CustomAlgorithms custom = {})
      : system_(system), network_(network), congestion_(congestion), custom_(std::move(custom)) {}

  /// Returns the nanosecond at which each member of a group leaves a collective that it entered at `entries`: exactly
  /// ASTRA-sim's where all come at once, and without congestion where it has one phase or a tree, or is a custom
  /// algorithm. Otherwise it begins when the last member has come. Trees are taken in turn, so it matters which
  /// collectives were asked for before. Throws InputError for what cannot be told.
  std::vector<std::int64_t> ends(const Call& call, const std::vector<std::uint32_t>& group,
                                 const std::vector<std::int64_t>& entries);

  /// Returns how many collectives began when the last member came, though ASTRA-sim would have begun before.
  std::int64_t begun_late() const { return begun_late_; }
  /// Returns how many collectives with trees were timed in which chunks come to a dimension in one nanosecond, so that
  /// ASTRA-sim may take them in another order.
  std::int64_t tied() const { return tied_; }

  /// The custom algorithms, of which a Call says the number.
  const CustomAlgorithms& custom() const { return custom_; }

 private:
  using Times = std::vector<std::int64_t>;
  struct Known {
    Chunks chunks;
    bool is_symmetric = true;
    std::optional<std::int64_t> ns;  // where all come at once
  };
  Known& known(const Call& call, const std::vector<std::uint32_t>& group);
  using EvenCall = std::tuple<Call, std::vector<std::uint32_t>, Times>;  // with the turns of its trees

  /// Returns what `follow` makes of the entries. Of members that come at once it is asked once for each call, from 0
  /// on.
  Times followed(const EvenCall& call, const Times& entries, const std::function<Times(const Times&)>& follow);
  /// Of a collective with trees, or of a custom algorithm.
  Times ends_with_trees(const Call& call, const Chunks& chunks, const std::vector<std::uint32_t>& group,
                        const Times& entries);
  Times ends_of_custom(const Call& call, const std::vector<std::uint32_t>& group, const Times& entries);
  /// How often chunks of earlier collectives of the kind came to the trees of each dimension, and from now on `more`.
  Times take_turns(const Call& call, const Chunks& chunks, const std::vector<std::uint32_t>& group);

  const System& system_;
  const Network& network_;
  Congestion congestion_;
  CustomAlgorithms custom_;
  std::map<std::tuple<core::collective::Kind, std::uint32_t, std::uint32_t>, std::int64_t>
      turns_;                            // of trees, by kind, rank and dimension
  std::map<EvenCall, Times> even_ends_;  // after a begin at 0
  std::map<std::tuple<Call, std::vector<std::uint32_t>>, Known> known_;
  std::int64_t begun_late_ = 0, tied_ = 0;
};

}  // namespace manyworlds::experiments::astra_sim
