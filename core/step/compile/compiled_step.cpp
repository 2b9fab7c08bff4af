#include "core/step/compile/compiled_step.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/network/fabric/kept_link.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/keys.hpp"

namespace manyworlds::core::step {

using workload::Role;

std::vector<PairLoad> pair_loads_of(const collective::Dag& dag, const network::Transport& transport) {
  std::vector<PairLoad> loads(dag.pairs.size());
  for (const collective::Transfer& transfer : dag.transfers) {
    const std::int64_t count = network::packets_of(transport, transfer.bytes);
    loads[transfer.pair].packets += count;
    loads[transfer.pair].bytes += transfer.bytes + count * transport.header_bytes;
  }
  return loads;
}

namespace {

/// Returns the quotient of a ring's DAG with the bytes of `shape`, which its canonical DAG leaves open.
collective::Dag with_bytes(const collective::QuotientDag& quotient, const collective::Dag& full_dag,
                           const collective::Shape& shape) {
  collective::Dag result = quotient.dag;
  if (!dag_is_byte_independent(shape)) return result;
  const std::int64_t intra_node = wire_bytes_per_transfer(shape, false),
                     inter_node = wire_bytes_per_transfer(shape, true);
  for (collective::Transfer& transfer : result.transfers) {
    const auto& [source, destination] = full_dag.pairs[quotient.pairs[transfer.pair]];
    transfer.bytes = source / shape.per_node == destination / shape.per_node ? intra_node : inter_node;
  }
  return result;
}

}  // namespace

LinkLoads::LinkLoads(const network::Transport& transport, const network::Graph& graph, const LinkPools* pools)
    : transport_(transport), graph_(graph), pools_(pools), on_link_(graph.links.size(), 0) {}

InstanceLoad LinkLoads::of(const CollectiveOp& collective_op) {
  return of(pair_loads_of(*collective_op.dag, transport_), *collective_op.connections);
}

InstanceLoad LinkLoads::of(const std::vector<PairLoad>& loads, const Connections& connections,
                           const std::vector<std::uint32_t>* representative) {
  if (pools_ != nullptr) return of_spreads(loads, connections, representative);
  InstanceLoad result;
  for (std::size_t pair = 0; pair < connections.routes.size(); ++pair) {
    const PairLoad& load = loads[representative == nullptr ? pair : (*representative)[pair]];
    for (const std::uint32_t link : connections.routes[pair]) {
      result.link_hops += load.packets;
      if (graph_.links[link].kind == network::LinkKind::network) on_link_[link] += load.bytes;
    }
  }
  for (const std::uint32_t link : connections.links)
    if (const std::int64_t bytes = std::exchange(on_link_[link], 0); bytes > 0)
      result.network_bytes.emplace_back(link, bytes);
  return result;
}

InstanceLoad LinkLoads::of_spreads(const std::vector<PairLoad>& loads, const Connections& connections,
                                   const std::vector<std::uint32_t>* representative) {
  InstanceLoad result;
  std::map<std::uint32_t, Int128> shares;
  for (std::size_t pair = 0; pair < connections.spreads.size(); ++pair) {
    const PairLoad& load = loads[representative == nullptr ? pair : (*representative)[pair]];
    result.link_hops += load.packets * static_cast<std::int64_t>(connections.routes[pair].size());
    for (const LinkPools::Use& use : pools_->uses_of(connections.spreads[pair]))
      if (graph_.links[pools_->link_of(use.pool)].kind == network::LinkKind::network)
        shares[use.pool] += Int128{load.bytes} * use.share;
  }
  for (const auto& [pool, sum] : shares)
    if (const auto bytes = static_cast<std::int64_t>(sum / network::kAllPackets); bytes > 0)
      result.network_bytes.emplace_back(pool, bytes);
  return result;
}

bool can_deduplicate_ranks(const Configuration& configuration) {
  const network::Transport& transport = configuration.transport;
  return configuration.composition == Composition::composed && transport.rate_tolerance_ppm == 0 &&
         !configuration.has_failures() &&
         (transport.fidelity == network::Fidelity::analytic || !network::needs_per_packet(transport));
}

CompiledStep::CompiledStep(const Configuration& configuration, std::shared_ptr<RankLayout> layout, DagCache& dags,
                           Ranks ranks)
    : configuration_(configuration),
      layout_(std::move(layout)),
      transport_key_(transport_key(configuration.transport)) {
  MANYWORLDS_CHECK(ranks == Ranks::all || can_deduplicate_ranks(configuration),
                   "ranks that go alike are asked for where collectives touch each other");
  add_programs();
  const std::vector<ShapedOperations> by_kind = shapes_by_kind();
  if (ranks == Ranks::all) {
    symmetry_ = trivial_symmetry(*layout_);
  } else if (configuration.transport.fidelity == network::Fidelity::analytic) {
    symmetry_ = rank_symmetry_of(*layout_, collectives_of(by_kind, dags));
  } else if (configuration.transport.fidelity == network::Fidelity::fluid) {
    std::vector<KindCollectives> collectives = collectives_of(by_kind, dags);
    auto& known = layout_->fluid_symmetries()[collectives];
    if (!known) known = std::make_shared<FluidSymmetry>(fluid_symmetry_of(*layout_, collectives, dags));
    fluid_symmetry_ = known;
    symmetry_ = known->ranks;
  } else {
    PacketSymmetry packets = packet_symmetry_of(*layout_, collectives_of(by_kind, dags), dags);
    symmetry_ = std::move(packets.ranks);
    if (!has_all_ranks()) representative_link_ = std::move(packets.representative_link);
  }
  const IdVector<GroupId, Group>& groups = layout_->groups();
  IdVector<GroupId, std::vector<GroupId>> equivalent_groups(
      groups.size());  // by the first group of each equivalence class
  for (const GroupId group : groups.ids()) equivalent_groups[symmetry_.canonical[group]].push_back(group);
  if (layout_->spreads()) add_pools(by_kind, dags);
  LinkLoads link_loads(configuration_.transport, layout_->graph(), pools());
  for (const GroupId group : groups.ids()) {
    first_instance_.push_back(collective_op_of_.next_id());
    if (!equivalent_groups[group].empty())
      add_group(group, equivalent_groups[group], by_kind[groups[group].kind], dags, link_loads);
  }
  member_slots_.resize(symmetry_.representative_rank.size() * layout_->roles());
  for (const RepresentativeId representative : symmetry_.representative_rank.ids())
    for (std::size_t number = 0; number < layout_->roles(); ++number) {
      const RankId rank = symmetry_.representative_rank[representative];
      const auto role = static_cast<Role>(number);
      const GroupId group = layout_->group_of(rank, role);
      if (group == RankLayout::kNoGroup) continue;
      member_slots_[member_slot(representative, role)] = {first_instance_[symmetry_.canonical[group]],
                                                          layout_->member_of(rank, role) % symmetry_.rotation[group]};
    }
}

/// Forms the pools of all connections of the step.
void CompiledStep::add_pools(const std::vector<ShapedOperations>& by_kind, DagCache& dags) {
  pools_ = std::make_shared<LinkPools>(layout_->spreads(),
                                       network::routing_of(configuration_.transport) == network::Routing::adaptive);
  for (const GroupId group : layout_->groups().ids())
    for (const collective::Shape& shape : by_kind[layout_->groups()[group].kind].shapes)
      pools_->add(layout_->connections_of(group, layout_->connectivity_number(*dags.canonical(shape)))->spreads);
  pools_->close();
}

void CompiledStep::add_programs() {
  programs_ = build_programs(configuration_, layout_->classes());
  for (const workload::Program& program : programs_) {
    sequences_.push_back(sequences_of(program));
    auto& positions = position_in_role_.emplace_back(program.ops.size());
    for (const OperationSequence& sequence : sequences_.back())
      for (std::uint32_t i = 0; i < sequence.ops.size(); ++i) positions[sequence.ops[i]] = i;
  }
}

std::vector<ShapedOperations> CompiledStep::shapes_by_kind() const {
  std::vector<ShapedOperations> all;
  for (const GroupKind& kind : layout_->kinds())
    all.push_back(
        shaped(configuration_, kind, sequences_[kind.rank_class][static_cast<std::size_t>(kind.role)].distinct));
  return all;
}

/// Packet by packet, members may be rotated only where that keeps the order in which transfers are numbered.
std::vector<KindCollectives> CompiledStep::collectives_of(const std::vector<ShapedOperations>& by_kind,
                                                          DagCache& dags) const {
  const bool packets = transport().fidelity == network::Fidelity::packet;
  std::vector<KindCollectives> all;
  for (const ShapedOperations& operations : by_kind) {
    KindCollectives& result = all.emplace_back();
    for (const collective::Shape& shape : operations.shapes) {
      result.dags.push_back(dags.canonical(shape));
      const auto generator = packets ? collective::generator_of(shape, shape.members) : nullptr;
      if ((packets && !generator) || (dag_is_byte_independent(shape) && wire_bytes_per_transfer(shape, false) < 0))
        result.rotation_unit = UINT32_MAX;
      else if (generator && result.rotation_unit != UINT32_MAX)
        result.rotation_unit = std::lcm(result.rotation_unit, generator->least_width());
    }
    std::sort(result.dags.begin(), result.dags.end());
    result.dags.erase(std::unique(result.dags.begin(), result.dags.end()), result.dags.end());
  }
  return all;
}

/// Checks that all members enter the same collectives; anything else is an error in building their programs.
void CompiledStep::check_members(GroupId group) const {
  const std::vector<RankId>& ranks = layout_->groups()[group].ranks;
  const OperationSequence& first = sequence(ranks[0], role_of(group, 0));
  for (std::uint32_t member = 1; member < ranks.size(); ++member) {
    const OperationSequence& other = sequence(ranks[member], role_of(group, member));
    if (&other == &first) continue;  // the same program in the same role
    MANYWORLDS_CHECK(other.operation == first.operation && other.distinct == first.distinct,
                     "group {}: members 0 and {} enter different collectives ({} and {})", group, member,
                     first.ops.size(), other.ops.size());
  }
}

void CompiledStep::add_group(GroupId group, const std::vector<GroupId>& equivalent_groups,
                             const ShapedOperations& operations, DagCache& dags, LinkLoads& link_loads) {
  check_members(group);
  const std::uint32_t first = collective_ops_.next_id().value();
  for (const collective::Shape& shape : operations.shapes)
    add_collective_op(equivalent_groups, shape, dags, link_loads);
  for (const std::uint32_t operation : sequence(layout_->groups()[group].ranks[0], role_of(group, 0)).operation)
    collective_op_of_.push_back(CollectiveOpId(first + operations.shape_of[operation]));
  group_of_instance_.resize(collective_op_of_.size(), group);
}

void CompiledStep::add_collective_op(const std::vector<GroupId>& equivalent_groups, const collective::Shape& shape,
                                     DagCache& dags, LinkLoads& link_loads) {
  CollectiveOp collective_op;
  collective_op.group = equivalent_groups.front();
  collective_op.shape = shape;
  collective_op.groups = static_cast<std::int64_t>(equivalent_groups.size());
  const std::uint32_t rotation = symmetry_.rotation[collective_op.group];
  const bool is_full = rotation == shape.members;
  const std::shared_ptr<const collective::Dag> full_dag = is_full ? dags.get(shape) : dags.canonical(shape);
  const collective::QuotientDag* quotient_dag = is_full ? nullptr : &dags.quotient_dag(full_dag, rotation);
  const std::uint32_t pairs = collective_op.connectivity = layout_->connectivity_number(*full_dag);
  const std::shared_ptr<const Connections>& full_connections = layout_->connections_of(collective_op.group, pairs);
  collective_op.dag =
      is_full ? full_dag : std::make_shared<const collective::Dag>(with_bytes(*quotient_dag, *full_dag, shape));
  collective_op.connections = merged_connections(full_connections, quotient_dag);
  collective_op.key = collective_key(shape, full_connections->route_signature, transport_key_);
  if (fluid_symmetry_) {
    static const std::vector<LinkUse> kNoLinks;
    const auto uses = fluid_symmetry_->link_uses.find({collective_op.group, pairs});
    collective_op.link_uses = uses == fluid_symmetry_->link_uses.end() ? &kNoLinks : &uses->second;
  }
  collective_op.transfers = static_cast<std::int64_t>(full_dag->transfers.size()) * collective_op.groups;

  const std::vector<PairLoad> loads = pair_loads_of(*collective_op.dag, configuration_.transport);
  std::map<std::uint32_t, std::pair<const Connections*, std::int64_t>> groups_by_signature;
  for (const GroupId group : equivalent_groups) {
    const Connections& connections = *layout_->connections_of(group, pairs);
    ++groups_by_signature.try_emplace(connections.signature_number, &connections, 0).first->second.second;
    const InstanceLoad one = link_loads.of(loads, connections, is_full ? nullptr : &quotient_dag->representative);
    collective_op.link_hops += one.link_hops;
    for (const auto& [link, total] : one.network_bytes)
      collective_op.busy.emplace_back(
          link, serialization_ps(total, pools_ ? pools_->rate(link) : layout_->graph().links[link].bits_per_second));
  }
  for (const auto& [number, route_signature] : groups_by_signature)
    collective_op.keys.emplace_back(collective_key(shape, route_signature.first->route_signature, transport_key_),
                                    route_signature.second);
  collective_ops_.push_back(std::move(collective_op));
}

std::shared_ptr<const Connections> CompiledStep::merged_connections(const std::shared_ptr<const Connections>& all,
                                                                    const collective::QuotientDag* quotient) {
  if (quotient == nullptr && representative_link_.empty()) return all;
  std::shared_ptr<const Connections>& slot = merged_connections_[{all.get(), quotient}];
  if (slot) return slot;
  Connections result;
  const std::size_t count = quotient == nullptr ? all->routes.size() : quotient->pairs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t pair = quotient == nullptr ? i : quotient->pairs[i];
    network::Route& route = result.routes.emplace_back(all->routes[pair]);
    if (!all->rates.empty()) result.rates.push_back(all->rates[pair]);
    if (!representative_link_.empty())
      for (std::uint32_t& link : route) link = representative_link_[link];
    result.links.insert(result.links.end(), route.begin(), route.end());
  }
  std::sort(result.links.begin(), result.links.end());
  result.links.erase(std::unique(result.links.begin(), result.links.end()), result.links.end());
  return slot = std::make_shared<const Connections>(std::move(result));
}

Role CompiledStep::role_of(GroupId group, std::uint32_t member) const {
  const Role role = layout_->groups()[group].role;
  return member == 0 ? role : workload::receiver_of(role);
}

network::Route CompiledStep::route_by(network::Router& router, CollectiveOpId id, std::uint32_t pair) const {
  const CollectiveOp& op = collective_ops_[id];
  std::vector<std::uint32_t> gpus;
  for (const RankId rank : layout_->groups()[op.group].ranks) gpus.push_back(layout_->gpu_of(rank).value());
  const auto& [from, to] = op.dag->pairs[pair];
  if (std::max(from, to) >= gpus.size())
    return {network::kept_link(router.graph(), layout_->graph(), op.connections->routes[pair].front())};
  return route_of(router, {op.dag->pairs, op.dag->switches}, gpus, pair, std::uint64_t{op.group.value()} << 32 | pair);
}

Member CompiledStep::instance_entered_by(RepresentativeId representative, std::uint32_t op) const {
  const RankId rank = symmetry_.representative_rank[representative];
  const std::uint32_t rank_class = layout_->class_of(rank);
  const Role role = std::get<workload::CollectiveCall>(programs_[rank_class].ops[op].action).role;
  MANYWORLDS_CHECK(layout_->group_of(rank, role) != RankLayout::kNoGroup,
                   "rank {} enters a collective of a role it does not play", rank);
  const MemberSlot& slot = member_slots_[member_slot(representative, role)];
  return {InstanceId(slot.first_instance.value() + position_in_role_[rank_class][op]), slot.member};
}

std::pair<RepresentativeId, std::uint32_t> CompiledStep::operation_of(const Member& member) const {
  const GroupId group = group_of_instance_[member.instance];
  const RankId rank = layout_->groups()[group].ranks[member.member];
  const std::uint32_t position = member.instance.value() - first_instance_[group].value();
  return {symmetry_.representative_of[rank], sequence(rank, role_of(group, member.member)).ops[position]};
}

}  // namespace manyworlds::core::step
