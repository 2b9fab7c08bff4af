#include "experiments/astra_sim/collective_times.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/astra_sim/skewed_times.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

constexpr double kMaxMessages = 5e8;  // that are followed one by one for a collective

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
  const Known& one = known(call, group);
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

}  // namespace manyworlds::experiments::astra_sim
