#include "core/step/world.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/workload/build_program.hpp"

namespace manyworlds::core::step {

using workload::Op;
using workload::Role;

Carried carried_by(const Use& use, const network::Transport& transport, const network::Graph& graph) {
  std::vector<std::int64_t> packets(use.dag->pairs.size(), 0), bytes(packets);
  for (const collective::Transfer& transfer : use.dag->transfers) {
    const std::int64_t count = network::packets_of(transport, transfer.bytes);
    packets[transfer.pair] += count;
    bytes[transfer.pair] += transfer.bytes + count * transport.header_bytes;
  }
  Carried made;
  std::map<std::uint32_t, std::int64_t> on_link;
  for (std::size_t pair = 0; pair < packets.size(); ++pair)
    for (const std::uint32_t link : use.connections->routes[pair]) {
      made.link_hops += packets[pair];
      if (graph.links[link].kind == network::LinkKind::network) on_link[link] += bytes[pair];
    }
  made.on_network.assign(on_link.begin(), on_link.end());
  return made;
}

World::World(const Configuration& configuration, std::shared_ptr<Layout> layout, Dags& dags)
    : configuration_(configuration),
      layout_(std::move(layout)),
      transport_key_(transport_key(configuration.transport)) {
  const auto orders = workload::pipeline_orders(configuration.model, configuration.strategy, configuration.gpu);
  for (const workload::RankClass& of : layout_->classes()) {
    programs_.push_back(
        workload::build_program(configuration.model, configuration.strategy, configuration.gpu_of(of), orders, of));
    auto& sequences = sequences_.emplace_back();
    auto& place = place_.emplace_back();
    for (std::uint32_t i = 0; i < programs_.back().ops.size(); ++i) {
      const Op& op = programs_.back().ops[i];
      Sequence& sequence = sequences[static_cast<std::size_t>(op.role)];
      place.push_back(static_cast<std::uint32_t>(sequence.ops.size()));
      if (op.is_collective) sequence.ops.push_back(i);
    }
  }
  std::map<std::pair<std::uint32_t, collective::Shape>, std::uint32_t> known;
  for (std::uint32_t group = 0; group < layout_->groups().size(); ++group) {
    first_instance_.push_back(static_cast<std::uint32_t>(use_of_.size()));
    const std::vector<std::uint32_t>& ranks = layout_->groups()[group].ranks;
    const auto& lead = sequence(ranks[0], role_of(group, 0)).ops;
    for (std::uint32_t member = 1; member < ranks.size(); ++member) {
      if (layout_->class_of(ranks[member]) == layout_->class_of(ranks[0]) &&
          role_of(group, member) == role_of(group, 0))
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
    // A group repeats few operations very often.
    std::vector<std::pair<const Op*, std::uint32_t>> met;
    const workload::Program& program = programs_[layout_->class_of(ranks[0])];
    for (const std::uint32_t number : lead) {
      const Op& op = program.ops[number];
      auto use = std::find_if(met.begin(), met.end(), [&](const auto& one) {
        return one.first->kind == op.kind && one.first->bytes == op.bytes && one.first->split == op.split;
      });
      if (use == met.end()) use = met.insert(use, {&op, add_use(group, op, program.split_of(op), dags, known)});
      use_of_.push_back(use->second);
      group_of_instance_.push_back(group);
    }
  }
}

std::uint32_t World::add_use(std::uint32_t group, const Op& op, const collective::Split& split, Dags& dags,
                             std::map<std::pair<std::uint32_t, collective::Shape>, std::uint32_t>& known) {
  const GroupKind& group_kind = layout_->kinds()[layout_->groups()[group].kind];
  const collective::Shape shape = shape_of(configuration_, group_kind, op.kind, op.bytes, split);
  const auto [slot, is_new] = known.try_emplace({group, shape}, static_cast<std::uint32_t>(uses_.size()));
  if (!is_new) return slot->second;
  Use use;
  use.group = group;
  use.shape = shape;
  use.dag = dags.get(shape);
  use.connections = layout_->connect(group, layout_->pairs_number(*use.dag));
  const network::Transport& transport = configuration_.transport;
  use.key = collective_key(shape, use.connections->form, transport_key_);
  const Carried carried = carried_by(use, transport, layout_->graph());
  use.link_hops = carried.link_hops;
  for (const auto& [link, total] : carried.on_network)
    use.busy.emplace_back(link, serialization_ps(total, layout_->graph().links[link].bits_per_second));
  uses_.push_back(std::move(use));
  return slot->second;
}

Role World::role_of(std::uint32_t group, std::uint32_t member) const {
  const Role role = layout_->groups()[group].role;
  return member == 0 ? role : workload::receiver_of(role);
}

std::pair<std::uint32_t, std::uint32_t> World::entered_by(std::uint32_t rank, std::uint32_t op) const {
  const std::uint32_t of = layout_->class_of(rank);
  const Role role = programs_[of].ops[op].role;
  const std::uint32_t group = layout_->group_of(rank, role);
  MANYWORLDS_CHECK(group != Layout::kNoGroup, "rank {} enters a collective of a role it does not play", rank);
  return {first_instance_[group] + place_[of][op], layout_->member_of(rank, role)};
}

std::pair<std::uint32_t, std::uint32_t> World::operation_of(std::uint32_t instance, std::uint32_t member) const {
  const std::uint32_t group = group_of_instance_[instance];
  const std::uint32_t rank = layout_->groups()[group].ranks[member];
  return {rank, sequence(rank, role_of(group, member)).ops[instance - first_instance_[group]]};
}

}  // namespace manyworlds::core::step
