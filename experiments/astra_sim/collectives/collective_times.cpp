#include "experiments/astra_sim/collectives/collective_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "experiments/astra_sim/collectives/custom_times.hpp"
#include "experiments/astra_sim/collectives/every_rank.hpp"
#include "experiments/astra_sim/collectives/skewed_times.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

constexpr double kMaxMessages = 5e8;      // that are followed one by one for a collective
constexpr double kMaxTreeMessages = 2e7;  // of one with trees

/// Returns the order in which a group's ranks ascend.
std::vector<std::size_t> ascending(const std::vector<std::uint32_t>& group) {
  std::vector<std::size_t> order(group.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return group[a] < group[b]; });
  return order;
}

/// Throws unless every rank of a collective with trees can be followed.
void check_trees(const Chunks& chunks, std::size_t ranks, Congestion congestion, const System& system) {
  if (congestion == Congestion::aware)
    throw core::InputError("doubleBinaryTree is not modelled with congestion (--collectives as-astra)", system.name);
  if (std::any_of(chunks.phases.begin(), chunks.phases.end(), [](auto& phase) { return phase.needs_equal_messages; }))
    throw core::InputError(
        "a direct all-reduce in one dimension and doubleBinaryTree in another are not modelled: the second half of the "
        "direct one begins bit by bit",
        system.name);
  if (const double messages = every_rank_messages(chunks, ranks); messages > kMaxTreeMessages)
    throw core::InputError(fmt::format("preferred-dataset-splits: must be such that a collective with doubleBinaryTree "
                                       "has 20,000,000 messages at most, not {:.0f}",
                                       messages),
                           system.name);
}

}  // namespace

CollectiveTimes::Known& CollectiveTimes::known(const Call& call, const std::vector<std::uint32_t>& group) {
  // All groups of all ranks are one, in whatever order they are listed.
  const bool is_of_all = group.size() == network_.ranks();
  const auto [found, is_new] = known_.try_emplace({call, is_of_all ? std::vector<std::uint32_t>() : group});
  if (!is_new) return found->second;
  Known& one = found->second;
  one.chunks = chunks_of(call, group, system_, network_);
  one.is_symmetric = std::all_of(one.chunks.phases.begin(), one.chunks.phases.end(),
                                 [&](const Phase& phase) { return is_symmetric(phase, network_); });
  if (one.chunks.has_tree()) return check_trees(one.chunks, group.size(), congestion_, system_), one;
  if (!one.is_symmetric && (congestion_ == Congestion::aware || one.chunks.phases.front().needs_equal_messages))
    throw core::InputError(
        "topology: must have the same way between neighbours of every group, for its collectives with congestion and "
        "for a direct all-reduce",
        network_.name);
  if (one.is_symmetric) one.ns = chunks_ns(one.chunks, system_.active_chunks, network_, congestion_);
  return one;
}

std::vector<std::int64_t> CollectiveTimes::ends(const Call& call, const std::vector<std::uint32_t>& group,
                                                const std::vector<std::int64_t>& entries) {
  if (call.custom) return ends_of_custom(call, group, entries);
  const Known& one = known(call, group);
  if (one.chunks.has_tree()) return ends_with_trees(call, one.chunks, group, entries);
  const std::int64_t last = *std::max_element(entries.begin(), entries.end());
  const bool is_even = *std::min_element(entries.begin(), entries.end()) == last;
  if (is_even && one.ns) return std::vector<std::int64_t>(entries.size(), last + *one.ns);
  const bool can_be_followed = congestion_ == Congestion::unaware && one.chunks.phases.size() == 1 &&
                               !one.chunks.phases.front().needs_equal_messages &&
                               skewed_messages(one.chunks) <= kMaxMessages;
  if (can_be_followed) {
    // Places of a group of all ranks are those of the network, whatever the order of its list.
    if (group.size() < network_.ranks()) return skewed_ends(one.chunks, system_.active_chunks, network_, entries);
    std::vector<std::int64_t> by_rank(entries.size()), ends(entries.size());
    for (std::size_t place = 0; place < group.size(); ++place) by_rank[group[place]] = entries[place];
    by_rank = skewed_ends(one.chunks, system_.active_chunks, network_, by_rank);
    for (std::size_t place = 0; place < group.size(); ++place) ends[place] = by_rank[group[place]];
    return ends;
  }
  if (!one.ns)
    throw core::InputError("topology: must have the same way between neighbours of a group that is so large",
                           network_.name);
  ++begun_late_;
  return std::vector<std::int64_t>(entries.size(), last + *one.ns);
}

CollectiveTimes::Times CollectiveTimes::take_turns(const Call& call, const Chunks& chunks,
                                                   const std::vector<std::uint32_t>& group) {
  Times before;
  for (std::uint32_t dimension = 0; dimension < network_.dimensions.size(); ++dimension) {
    const std::int64_t more = chunks.count * trees_of(chunks, dimension);
    const std::int64_t of_first = turns_[{call.kind, group.front(), dimension}];
    for (const std::uint32_t rank : group) {
      std::int64_t& of_rank = turns_[{call.kind, rank, dimension}];
      if (more > 0 && (of_rank - of_first) % 2 != 0)
        throw core::InputError(
            fmt::format("doubleBinaryTree: ranks {} and {} have had other numbers of chunks before a collective, so "
                        "that ASTRA-sim gives them different trees, and waits for ever",
                        group.front(), rank),
            system_.name);
      if (rank != group.front()) of_rank += more;
    }
    turns_[{call.kind, group.front(), dimension}] += more;
    before.push_back(of_first % 2);
  }
  return before;
}

CollectiveTimes::Times CollectiveTimes::followed(const EvenCall& call, const Times& entries,
                                                 const std::function<Times(const Times&)>& follow) {
  const std::int64_t last = *std::max_element(entries.begin(), entries.end());
  if (*std::min_element(entries.begin(), entries.end()) < last) return follow(entries);
  const auto [found, is_new] = even_ends_.try_emplace(call);
  if (is_new) found->second = follow(Times(entries.size(), 0));
  Times ends = found->second;
  for (std::int64_t& end : ends) end += last;
  return ends;
}

CollectiveTimes::Times CollectiveTimes::ends_with_trees(const Call& call, const Chunks& chunks,
                                                        const std::vector<std::uint32_t>& group, const Times& entries) {
  const Times turns = take_turns(call, chunks, group);
  const auto follow = [&](const Times& from) {
    const std::vector<std::size_t> order = ascending(group);
    std::vector<std::uint32_t> ranks;
    Times sorted, ends(group.size());
    for (const std::size_t place : order) ranks.push_back(group[place]), sorted.push_back(from[place]);
    const RankEnds by_rank = every_rank_ends(chunks, turns, system_.active_chunks, network_, ranks, sorted);
    for (std::size_t i = 0; i < order.size(); ++i) ends[order[i]] = by_rank.ns[i];
    if (by_rank.has_ties) ++tied_;
    return ends;
  };
  return followed({call, group, turns}, entries, follow);
}

CollectiveTimes::Times CollectiveTimes::ends_of_custom(const Call& call, const std::vector<std::uint32_t>& group,
                                                       const Times& entries) {
  const CustomAlgorithm& custom = custom_.all[*call.custom];
  if (congestion_ == Congestion::aware)
    throw core::InputError(
        "custom algorithms are not modelled with congestion (--collectives as-astra has them without)", custom.key);
  if (custom.places.empty())
    throw core::InputError(fmt::format("must be the prefix of traces, of which there is no {} (from the folder where "
                                       "the program runs, as in ASTRA-sim)",
                                       custom.names.front()),
                           custom.key);
  if (const std::int64_t chunks = chunk_sizes(call, system_, network_).first; chunks != 1)
    throw core::InputError(
        fmt::format("preferred-dataset-splits: must be 1 for custom algorithms: ASTRA-sim runs one once, and "
                    "waits for ever for the other {} chunks",
                    chunks - 1),
        system_.name);
  return followed({Call{call.kind, 0, {}, call.custom}, group, Times()}, entries,
                  [&](const Times& from) { return custom_ends(custom, group, network_, from); });
}

}  // namespace manyworlds::experiments::astra_sim
