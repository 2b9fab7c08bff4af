#include "core/step/world/world.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/workload/build/build_program.hpp"

namespace manyworlds::core::step {

using workload::Op;
using workload::Role;

namespace {

/// What a DAG puts on its connections.
std::vector<PairLoad> loads_of(const collective::Dag& dag, const network::Transport& transport) {
  std::vector<PairLoad> loads(dag.pairs.size());
  for (const collective::Transfer& transfer : dag.transfers) {
    const std::int64_t count = network::packets_of(transport, transfer.bytes);
    loads[transfer.pair].packets += count;
    loads[transfer.pair].bytes += transfer.bytes + count * transport.header_bytes;
  }
  return loads;
}

/// A ring's DAG with the bytes of `shape`, of which Dags::like() says nothing.
collective::Dag with_bytes(collective::Dag dag, const collective::Shape& shape) {
  if (bytes_decide_nothing(shape))
    for (collective::Transfer& transfer : dag.transfers) transfer.bytes = bytes_of_each(shape);
  return dag;
}

/// Some of a group's connections, in this order.
Connections some_of(const Connections& all, const std::vector<std::uint32_t>& pairs) {
  Connections made;
  for (const std::uint32_t pair : pairs) {
    made.routes.push_back(all.routes[pair]);
    made.links.insert(made.links.end(), made.routes.back().begin(), made.routes.back().end());
  }
  std::sort(made.links.begin(), made.links.end());
  made.links.erase(std::unique(made.links.begin(), made.links.end()), made.links.end());
  return made;
}

}  // namespace

LinkLoads::LinkLoads(const network::Transport& transport, const network::Graph& graph)
    : transport_(transport), graph_(graph), on_link_(graph.links.size(), 0) {}

Carried LinkLoads::of(const Use& use) {
  return of(loads_of(*use.dag, transport_), *use.connections);
}

Carried LinkLoads::of(const std::vector<PairLoad>& loads, const Connections& connections,
                      const std::vector<std::uint32_t>* stand_in) {
  Carried made;
  for (std::size_t pair = 0; pair < connections.routes.size(); ++pair) {
    const PairLoad& load = loads[stand_in == nullptr ? pair : (*stand_in)[pair]];
    for (const std::uint32_t link : connections.routes[pair]) {
      made.link_hops += load.packets;
      if (graph_.links[link].kind == network::LinkKind::network) on_link_[link] += load.bytes;
    }
  }
  for (const std::uint32_t link : connections.links)
    if (const std::int64_t bytes = std::exchange(on_link_[link], 0); bytes > 0)
      made.on_network.emplace_back(link, bytes);
  return made;
}

bool one_of_alike_is_enough(const Configuration& of) {
  return of.transport.fidelity == network::Fidelity::analytic && of.composition == Composition::composed;
}

World::World(const Configuration& configuration, std::shared_ptr<Layout> layout, Dags& dags, Ranks ranks)
    : configuration_(configuration),
      layout_(std::move(layout)),
      transport_key_(transport_key(configuration.transport)) {
  MANYWORLDS_CHECK(ranks == Ranks::all || one_of_alike_is_enough(configuration),
                   "ranks that go alike are asked for where collectives touch each other");
  add_programs();
  const std::vector<Repertoire> by_kind = repertoires();
  likeness_ = ranks == Ranks::all ? each_alone(*layout_) : likeness_of(*layout_, collectives_of(by_kind, dags));
  const std::vector<Group>& groups = layout_->groups();
  std::vector<std::vector<std::uint32_t>> alike(groups.size());  // by the first of them
  for (std::uint32_t group = 0; group < groups.size(); ++group) alike[likeness_.like[group]].push_back(group);
  LinkLoads carried(configuration_.transport, layout_->graph());
  for (std::uint32_t group = 0; group < groups.size(); ++group) {
    first_instance_.push_back(static_cast<std::uint32_t>(use_of_.size()));
    if (!alike[group].empty()) add_group(group, alike[group], by_kind[groups[group].kind], dags, carried);
  }
  for (const std::uint32_t rank : likeness_.first) {
    auto& seats = seats_.emplace_back();
    for (std::size_t role = 0; role < workload::kRoles; ++role) {
      const std::uint32_t group = layout_->group_of(rank, static_cast<Role>(role));
      if (group == Layout::kNoGroup) continue;
      seats[role] = {first_instance_[likeness_.like[group]],
                     layout_->member_of(rank, static_cast<Role>(role)) % likeness_.turn[group]};
    }
  }
}

void World::add_programs() {
  const auto orders = workload::pipeline_orders(configuration_.model, configuration_.strategy, configuration_.gpu);
  for (const workload::RankClass& of : layout_->classes()) {
    programs_.push_back(
        workload::build_program(configuration_.model, configuration_.strategy, configuration_.gpu_of(of), orders, of));
    auto& sequences = sequences_.emplace_back();
    auto& place = place_.emplace_back();
    for (std::uint32_t i = 0; i < programs_.back().ops.size(); ++i) {
      const Op& op = programs_.back().ops[i];
      Sequence& sequence = sequences[static_cast<std::size_t>(op.role)];
      place.push_back(static_cast<std::uint32_t>(sequence.ops.size()));
      if (op.is_collective) sequence.ops.push_back(i);
    }
  }
}

/// Few operations are repeated very often.
std::vector<World::Repertoire> World::repertoires() const {
  std::vector<Repertoire> all;
  for (const GroupKind& kind : layout_->kinds()) {
    Repertoire& made = all.emplace_back();
    const workload::Program& program = programs_[kind.rank_class];
    std::vector<std::pair<const Op*, std::uint32_t>> met;
    for (const std::uint32_t number : sequences_[kind.rank_class][static_cast<std::size_t>(kind.role)].ops) {
      const Op& op = program.ops[number];
      auto known = std::find_if(met.begin(), met.end(), [&](const auto& one) {
        return one.first->kind == op.kind && one.first->bytes == op.bytes && one.first->split == op.split;
      });
      if (known == met.end()) {
        const collective::Shape shape = shape_of(configuration_, kind, op.kind, op.bytes, program.split_of(op));
        const auto same = std::find(made.shapes.begin(), made.shapes.end(), shape);
        known = met.insert(met.end(), {&op, static_cast<std::uint32_t>(same - made.shapes.begin())});
        if (same == made.shapes.end()) made.shapes.push_back(shape);
      }
      made.sequence.push_back(known->second);
    }
  }
  return all;
}

std::vector<Collectives> World::collectives_of(const std::vector<Repertoire>& by_kind, Dags& dags) {
  std::vector<Collectives> all;
  for (const Repertoire& runs : by_kind) {
    Collectives& made = all.emplace_back();
    for (const collective::Shape& shape : runs.shapes) {
      made.dags.push_back(dags.like(shape));
      if (bytes_decide_nothing(shape)) made.turn &= bytes_of_each(shape) >= 0;
    }
    std::sort(made.dags.begin(), made.dags.end());
    made.dags.erase(std::unique(made.dags.begin(), made.dags.end()), made.dags.end());
  }
  return all;
}

/// All members enter the same collectives, or this program has built their programs wrongly.
void World::check_members(std::uint32_t group) const {
  const std::vector<std::uint32_t>& ranks = layout_->groups()[group].ranks;
  const auto& lead = sequence(ranks[0], role_of(group, 0)).ops;
  for (std::uint32_t member = 1; member < ranks.size(); ++member) {
    if (layout_->class_of(ranks[member]) == layout_->class_of(ranks[0]) && role_of(group, member) == role_of(group, 0))
      continue;  // the same program in the same role
    const auto& other = sequence(ranks[member], role_of(group, member)).ops;
    MANYWORLDS_CHECK(other.size() == lead.size(), "group {}: member 0 enters {} collectives, member {} {}", group,
                     lead.size(), member, other.size());
    const workload::Program &first = programs_[layout_->class_of(ranks[0])],
                            &second = programs_[layout_->class_of(ranks[member])];
    for (std::size_t i = 0; i < lead.size(); ++i) {
      const Op &a = first.ops[lead[i]], &b = second.ops[other[i]];
      MANYWORLDS_CHECK(a.kind == b.kind && a.bytes == b.bytes && first.split_of(a) == second.split_of(b),
                       "group {}, collective {}: members 0 and {} disagree ({} and {} B)", group, i, member, a.bytes,
                       b.bytes);
    }
  }
}

void World::add_group(std::uint32_t group, const std::vector<std::uint32_t>& alike, const Repertoire& runs, Dags& dags,
                      LinkLoads& carried) {
  check_members(group);
  const auto first = static_cast<std::uint32_t>(uses_.size());
  for (const collective::Shape& shape : runs.shapes) add_use(alike, shape, dags, carried);
  for (const std::uint32_t number : runs.sequence) use_of_.push_back(first + number);
  group_of_instance_.resize(use_of_.size(), group);
}

void World::add_use(const std::vector<std::uint32_t>& alike, const collective::Shape& shape, Dags& dags,
                    LinkLoads& carried) {
  Use use;
  use.group = alike.front();
  use.shape = shape;
  use.groups = static_cast<std::int64_t>(alike.size());
  const std::uint32_t turn = likeness_.turn[use.group];
  const bool whole = turn == shape.members;
  const std::shared_ptr<const collective::Dag> of_all = whole ? dags.get(shape) : dags.like(shape);
  const collective::Turned* turned = whole ? nullptr : &dags.turned(of_all, turn);
  const std::uint32_t pairs = layout_->pairs_number(*of_all);
  const std::shared_ptr<const Connections>& own = layout_->connect(use.group, pairs);
  use.dag = whole ? of_all : std::make_shared<const collective::Dag>(with_bytes(turned->dag, shape));
  use.connections = whole ? own : std::make_shared<const Connections>(some_of(*own, turned->pairs));
  use.key = collective_key(shape, own->form, transport_key_);
  use.transfers = static_cast<std::int64_t>(of_all->transfers.size()) * use.groups;

  const std::vector<PairLoad> loads = loads_of(*use.dag, configuration_.transport);
  std::map<std::uint32_t, std::pair<const Connections*, std::int64_t>> forms;
  for (const std::uint32_t group : alike) {
    const Connections& connections = *layout_->connect(group, pairs);
    ++forms.try_emplace(connections.form_number, &connections, 0).first->second.second;
    const Carried one = carried.of(loads, connections, whole ? nullptr : &turned->stand_in);
    use.link_hops += one.link_hops;
    for (const auto& [link, total] : one.on_network)
      use.busy.emplace_back(link, serialization_ps(total, layout_->graph().links[link].bits_per_second));
  }
  for (const auto& [number, form] : forms)
    use.keys.emplace_back(collective_key(shape, form.first->form, transport_key_), form.second);
  uses_.push_back(std::move(use));
}

Role World::role_of(std::uint32_t group, std::uint32_t member) const {
  const Role role = layout_->groups()[group].role;
  return member == 0 ? role : workload::receiver_of(role);
}

std::pair<std::uint32_t, std::uint32_t> World::entered_by(std::uint32_t player, std::uint32_t op) const {
  const std::uint32_t rank = likeness_.first[player], of = layout_->class_of(rank);
  const Role role = programs_[of].ops[op].role;
  MANYWORLDS_CHECK(layout_->group_of(rank, role) != Layout::kNoGroup,
                   "rank {} enters a collective of a role it does not play", rank);
  const Seat& seat = seats_[player][static_cast<std::size_t>(role)];
  return {seat.first_instance + place_[of][op], seat.member};
}

std::pair<std::uint32_t, std::uint32_t> World::operation_of(std::uint32_t instance, std::uint32_t member) const {
  const std::uint32_t group = group_of_instance_[instance];
  const std::uint32_t rank = layout_->groups()[group].ranks[member];
  return {likeness_.player_of[rank], sequence(rank, role_of(group, member)).ops[instance - first_instance_[group]]};
}

}  // namespace manyworlds::core::step
