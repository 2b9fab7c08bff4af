#include "core/step/fluid/link_shares.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/step/network/critical_paths.hpp"
#include "core/step/network/isolated.hpp"

namespace manyworlds::core::step {
namespace {

// With what the efficiency of a transport is measured, at most: transfers that share a link, and links that share them.
constexpr std::int64_t kMaxSharing = 16, kMaxWays = 8;

Time duration_of(const collective::Dag& dag, const Connections& connections, const CompiledStep& compiled) {
  return std::max<Time>(1, uncontended(dag, connections, compiled.layout().graph(), compiled.transport()).drained);
}

/// Whether collectives of one group are on one stream of each of its ranks, which runs them in order: the next begins
/// when all members have left the one before.
bool groups_run_one_by_one(const CompiledStep& compiled) {
  for (const workload::Program& program : compiled.programs()) {
    std::vector<std::optional<workload::Stream>> stream_of(workload::roles_of(program));
    for (const workload::Op& op : program.ops) {
      if (op.collective() == nullptr) continue;
      auto& stream = stream_of[static_cast<std::size_t>(op.collective()->role)];
      if (stream.value_or(op.stream) != op.stream) return false;
      stream = op.stream;
    }
  }
  return true;
}

}  // namespace

LinkShares::LinkShares(const CompiledStep& compiled, TransportEfficiency& efficiency)
    : compiled_(compiled),
      efficiency_(efficiency),
      transfers_(compiled.collective_ops().size()),
      speeds_alone_(compiled.collective_ops().size(), 0) {}

/// Forms the loads of all operations, without links that are never short: if a group runs one collective after another,
/// a link has no more than the sum over groups of the largest load of each.
void LinkShares::form_loads() {
  auto formed = std::make_shared<IdVector<CollectiveOpId, MaxMinSpeeds::Loads>>();
  std::vector<FluidShare> most(compiled_.link_numbers(), 0);
  std::map<std::uint32_t, FluidShare> of_group;
  const auto& ops = compiled_.collective_ops();
  GroupId group;
  const auto end_group = [&] {
    for (const auto& [link, share] : of_group) most[link] += share;
    of_group.clear();
  };
  for (const CollectiveOpId id : ops.ids()) {
    if (ops[id].group != group) end_group();
    group = ops[id].group;
    std::map<std::uint32_t, FluidShare> of_op;
    for (const auto& [link, share, count] : formed->emplace_back(all_loads_of(id))) of_op[link] += share * count;
    for (const auto& [link, share] : of_op) of_group[link] = std::max(of_group[link], share);
  }
  end_group();
  if (!compiled_.configuration().has_failures() && groups_run_one_by_one(compiled_))
    for (MaxMinSpeeds::Loads& loads : *formed)
      std::erase_if(loads, [&](const MaxMinSpeeds::Load& load) { return most[load.link] <= kFullSpeed; });
  loads_ = std::move(formed);
}

MaxMinSpeeds::Loads LinkShares::all_loads_of(CollectiveOpId id) {
  const CollectiveOp& op = compiled_.collective_ops()[id];
  if (op.link_uses == nullptr) return on(id, *op.dag, *op.connections);
  MaxMinSpeeds::Loads loads;
  const std::vector<PairLoad> pairs = pair_loads_of(*op.dag, compiled_.transport());
  const Time duration = duration_of(*op.dag, *op.connections, compiled_);
  for (const LinkUse& use : *op.link_uses) {
    std::int64_t bytes = 0;
    for (const std::uint32_t pair : use.pairs) bytes += pairs[pair].bytes;
    loads.push_back(load_of(use.link, bytes, duration, use.count));
  }
  return loads;
}

MaxMinSpeeds::Loads LinkShares::on(CollectiveOpId id, const collective::Dag& dag, const Connections& connections) {
  const std::vector<PairLoad> pairs = pair_loads_of(dag, compiled_.transport());
  const Time duration = duration_of(dag, connections, compiled_);
  return compiled_.pools() != nullptr ? on_pools(id, pairs, connections, duration)
                                      : on_links(pairs, connections, duration);
}

/// Its clock is that of its own routes, whatever the new ones are.
MaxMinSpeeds::Loads LinkShares::on_routes(CollectiveOpId id, const Connections& routes) {
  const CollectiveOp& op = compiled_.collective_ops()[id];
  return on_links(pair_loads_of(*op.dag, compiled_.transport()), routes,
                  duration_of(*op.dag, *op.connections, compiled_));
}

MaxMinSpeeds::Loads LinkShares::on_links(const std::vector<PairLoad>& pairs, const Connections& connections,
                                         Time duration) const {
  std::map<std::uint32_t, std::int64_t> bytes;
  for (std::size_t pair = 0; pair < pairs.size(); ++pair)
    for (const std::uint32_t link : connections.routes[pair]) bytes[link] += pairs[pair].bytes;
  MaxMinSpeeds::Loads loads;
  for (const auto& [link, total] : bytes) loads.push_back(load_of(link, total, duration, 1));
  return loads;
}

MaxMinSpeeds::Loads LinkShares::on_pools(CollectiveOpId id, const std::vector<PairLoad>& pairs,
                                         const Connections& connections, Time duration) {
  const LinkPools& pools = *compiled_.pools();
  std::map<std::uint32_t, Int128> shares;  // of each pool: bytes, times kAllPackets
  for (std::size_t pair = 0; pair < pairs.size(); ++pair)
    for (const LinkPools::Use& use : pools.uses_of(connections.spreads[pair]))
      shares[use.pool] += Int128{pairs[pair].bytes} * use.share;
  MaxMinSpeeds::Loads loads;
  for (const auto& [pool, share] : shares) {
    const Time busy = serialization_ps(static_cast<std::int64_t>(share / network::kAllPackets), pools.rate(pool));
    Int128 load = Int128{busy} * kFullSpeed / duration;
    if (ways_of(pool) > 1) load = load * 1'000'000 / used_ppm(id, pool, 1);
    loads.push_back({pool, static_cast<FluidShare>(load)});
  }
  return loads;
}

MaxMinSpeeds::Load LinkShares::load_of(std::uint32_t link, std::int64_t bytes, Time duration,
                                       std::uint32_t count) const {
  const Time busy = serialization_ps(bytes, compiled_.layout().graph().links[link].bits_per_second);
  return {link, static_cast<FluidShare>(Int128{busy} * kFullSpeed / duration), count};
}

FluidShare LinkShares::speed_alone(CollectiveOpId id) {
  FluidShare& speed = speeds_alone_[id];
  if (speed > 0) return speed;
  speed = kFullSpeed;
  if (compiled_.pools() != nullptr) return speed;
  SharedHop alone = transfer_of(id);
  if (alone.path.empty()) return speed;
  return speed = kFullSpeed * efficiency_.ppm(alone, 1) / 1'000'000;
}

FluidShare LinkShares::used_speed(CollectiveOpId id, FluidShare fair, std::uint32_t bottleneck) {
  if (fair == kFullSpeed) return speed_alone(id);
  const std::int64_t sharing = std::clamp<std::int64_t>((kFullSpeed + fair / 2) / fair, 2, kMaxSharing);
  // What transfers that just fill a pool lose there is part of the load.
  const std::int64_t in_load = ways_of(bottleneck) > 1 ? used_ppm(id, bottleneck, 1) : 1'000'000;
  const std::int64_t ppm = std::min<std::int64_t>(1'000'000, used_ppm(id, bottleneck, sharing) * 1'000'000 / in_load);
  const auto shared = static_cast<FluidShare>(Int128{fair} * ppm / 1'000'000);
  return std::max<FluidShare>(1,
                              std::min(shared, static_cast<FluidShare>(Int128{fair} * speed_alone(id) / kFullSpeed)));
}

/// Returns the part of its share of a link, or of a pool of links, that the transport of an operation uses if `sharing`
/// transfers share each link; in millionths.
std::int64_t LinkShares::used_ppm(CollectiveOpId id, std::uint32_t pool, std::int64_t sharing) {
  const LinkPools* pools = compiled_.pools();
  const network::LinkSpec link =
      network::spec_of(compiled_.layout().graph(), pools == nullptr ? pool : pools->link_of(pool));
  const collective::Dag& dag = *compiled_.collective_ops()[id].dag;
  const bool is_single = dag.transfers.size() <= dag.pairs.size();
  if (link.scale_up || link.leaves_gpu || (!is_single && ways_of(pool) == 1)) return 1'000'000;
  SharedHop shared = transfer_of(id);
  if (shared.path.size() < 2) return 1'000'000;
  shared.hop = link.enters_gpu || shared.path.size() == 2 ? shared.path.size() - 1 : 1;
  shared.ways = std::min(ways_of(pool), kMaxWays);
  return efficiency_.ppm(shared, sharing * shared.ways);
}

std::int64_t LinkShares::ways_of(std::uint32_t pool) const {
  return compiled_.pools() == nullptr ? 1 : static_cast<std::int64_t>(compiled_.pools()->ways(pool));
}

/// Returns the first transfer of the connection of an operation that has most hops on the network.
const SharedHop& LinkShares::transfer_of(CollectiveOpId id) {
  std::shared_ptr<const SharedHop>& slot = transfers_[id];
  if (slot) return *slot;
  SharedHop longest;
  const CollectiveOp& op = compiled_.collective_ops()[id];
  const CriticalPaths::Paths paths = paths_of(*op.dag, op.connections->routes, compiled_.layout().graph());
  for (const collective::Transfer& transfer : op.dag->transfers) {
    const std::vector<network::LinkSpec>& path = paths[transfer.pair];
    if (path.empty() || path.front().scale_up || path.size() <= longest.path.size()) continue;
    longest.path = path;
    longest.bytes = transfer.bytes;
  }
  slot = std::make_shared<SharedHop>(std::move(longest));
  return *slot;
}

std::vector<std::uint8_t> LinkShares::preference() const {
  std::vector<std::uint8_t> result;
  if (compiled_.pools() != nullptr) return result;
  const network::Graph& graph = compiled_.layout().graph();
  for (std::uint32_t link = 0; link < graph.links.size(); ++link) {
    const network::LinkSpec spec = network::spec_of(graph, link);
    result.push_back(spec.scale_up || spec.leaves_gpu ? 2 : spec.enters_gpu ? 1 : 0);
  }
  return result;
}

}  // namespace manyworlds::core::step
