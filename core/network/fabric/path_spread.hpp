// How packets of a pair of GPUs spread over equally short paths if every switch divides what it receives evenly among
// its next hops: the links that they may take, and the share of them on each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/fabric/forwarding_tables.hpp"

namespace manyworlds::core::network {

/// All packets of a pair; shares are fractions of this.
inline constexpr std::int64_t kAllPackets = std::int64_t{1} << 32;

struct LinkShare {
  std::uint32_t link = 0;
  std::int64_t share = 0;  // of the packets of a pair, of kAllPackets
  bool operator==(const LinkShare&) const = default;
};
/// The links that packets may take as their n-th, by ascending number.
using SpreadHop = std::vector<LinkShare>;

/// The links of a pair. Those between its first and its last switch are the same for all pairs that hang on these two.
struct Spread {
  SpreadHop first, last;     // links out of the source, and, unless these lead there, into the destination
  std::uint32_t middle = 0;  // see PathSpreads::middle()
};

/// Spreads are computed on first use and kept; not thread-safe.
class PathSpreads {
 public:
  explicit PathSpreads(std::shared_ptr<const Graph> graph) : tables_(std::move(graph)), middles_(1) {}

  /// Returns the spread from one GPU to another. Throws InputError if there is no path.
  Spread between(std::uint32_t source, std::uint32_t destination);
  /// Returns the links between the first and the last ones of a spread, hop by hop. Number 0 has none.
  const std::vector<SpreadHop>& middle(std::uint32_t number) const { return middles_[number].hops; }
  std::uint32_t middles() const { return static_cast<std::uint32_t>(middles_.size()); }
  const Graph& graph() const { return tables_.graph(); }

 private:
  using Masses = std::map<std::uint32_t, std::int64_t>;  // by vertex: the share of the packets that arrive there
  struct Middle {
    std::vector<SpreadHop> hops;
    std::vector<std::pair<std::uint32_t, std::int64_t>> exits;  // last switches, and the share on each of their links
  };
  std::uint32_t middle_between(const Masses& entrances, std::uint32_t destination);

  ForwardingTables tables_;
  std::vector<Middle> middles_;                                        // the first is empty
  std::map<std::pair<Masses, std::uint32_t>, std::uint32_t> numbers_;  // by entrances and class of destinations
};

}  // namespace manyworlds::core::network
