// What the traffic of a step loads where packets spread over equally short paths: links, and pools of links.
//
// If packets are sprayed, every pair has a fixed share on every link. Links of one rate on which each pair of the step
// has equal shares are always equally loaded, and one of them stands for all.
//
// If routing is adaptive, packets avoid what is busy. In the best case a set of links over which a pair goes as its
// n-th is shared out so that no link is full before all are: the set is a pool with the sum of their rates. Pairs that
// have only a part of a pool (because links of others are down) load the whole pool too: what they cannot use, others
// can. These sums over cuts bound every routing; on fabrics of two tiers that are broken in one place the bound is met.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/network/fabric/path_spread.hpp"

namespace manyworlds::core::step {

class LinkPools {
 public:
  /// Pools of the links of `paths`, for adaptive routing or for packets that are sprayed.
  LinkPools(std::shared_ptr<const network::PathSpreads> paths, bool is_adaptive);

  /// Adds the spreads of pairs; close() forms the pools of all that were added.
  void add(const std::vector<network::Spread>& spreads);
  void close();

  struct Use {
    std::uint32_t pool = 0;
    std::int64_t share = 0;  // of the bytes of a pair, of network::kAllPackets, over rate(pool)
    bool operator==(const Use&) const = default;
  };
  /// Returns what a spread that was added uses, by ascending pool.
  std::vector<Use> uses_of(const network::Spread& spread) const;

  /// Numbers of pools are below this. Those of links are pools of one link each, with its number.
  std::uint32_t size() const { return static_cast<std::uint32_t>(graph().links.size() + pools_.size()); }
  /// Returns a link of a pool; unless routing is adaptive, every other is loaded as it is.
  std::uint32_t link_of(std::uint32_t pool) const { return is_link(pool) ? pool : pools_[index(pool)].links.front(); }
  /// Returns the rate that a pool shares out.
  std::int64_t rate(std::uint32_t pool) const;
  /// Returns how many links a pool has.
  std::size_t ways(std::uint32_t pool) const { return is_link(pool) ? 1 : pools_[index(pool)].links.size(); }

 private:
  using Links = std::vector<std::uint32_t>;
  struct Pool {
    Links links;  // ascending
  };
  const network::Graph& graph() const { return paths_->graph(); }
  bool is_link(std::uint32_t pool) const { return pool < graph().links.size(); }
  std::size_t index(std::uint32_t pool) const { return pool - graph().links.size(); }
  void close_sprayed();
  void close_adaptive();
  void add_set(const network::SpreadHop& hop);
  void add_use(std::map<std::uint32_t, std::int64_t>& uses, const network::SpreadHop& hop) const;

  std::shared_ptr<const network::PathSpreads> paths_;
  bool is_adaptive_;
  std::vector<Pool> pools_;
  std::vector<bool> has_middle_;                      // by middle: whether it was added
  std::vector<bool> is_end_;                          // by link: whether some pair uses it first or last
  std::vector<std::uint32_t> pool_of_link_;           // of sprayed packets
  std::map<Links, std::vector<std::uint32_t>> sets_;  // of adaptive routing: the pools that contain a set
  std::vector<std::vector<Use>> of_middle_;           // by middle, after close()
};

}  // namespace manyworlds::core::step
