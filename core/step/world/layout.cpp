#include "core/step/world/layout.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/transports/registry.hpp"
#include "core/workload/layer/expert_load.hpp"
#include "core/workload/layer/experts.hpp"

namespace manyworlds::core::step {

using workload::Role;

std::shared_ptr<const collective::Dag> Dags::get(const collective::Shape& shape) {
  auto& slot = dags_[shape];
  if (!slot) slot = std::make_shared<collective::Dag>(collective::build(shape));
  return slot;
}

bool bytes_decide_nothing(const collective::Shape& shape) {
  return shape.algorithm == collective::Algorithm::ring && shape.chunk_bytes == 0 && shape.split.even();
}

std::int64_t bytes_of_each(const collective::Shape& shape) {
  const std::int64_t parts = std::int64_t{shape.members} * shape.channels;
  if (shape.bytes % parts != 0) return -1;
  return collective::costs_of(shape).wire_bytes(shape.bytes / parts);
}

std::shared_ptr<const collective::Dag> Dags::like(const collective::Shape& shape) {
  if (!bytes_decide_nothing(shape)) return get(shape);
  collective::Shape same = shape;
  same.bytes = std::int64_t{shape.members} * shape.channels;
  return get(same);
}

const collective::Turned& Dags::turned(const std::shared_ptr<const collective::Dag>& dag, std::uint32_t turn) {
  const auto known = turned_.find({dag.get(), turn});
  if (known != turned_.end()) return known->second;
  return turned_.try_emplace({dag.get(), turn}, collective::turned(*dag, turn)).first->second;
}

RouteWriter::RouteWriter(const network::Graph& graph) : graph_(graph), names_(graph.links.size()) {}

void RouteWriter::write(sharing::Writer& writer, const network::Route& route) {
  writer.integer(static_cast<std::int64_t>(route.size()));
  for (const std::uint32_t link : route) {
    Name& name = names_[link];
    const bool is_new = name.naming != naming_;
    if (is_new) name = {naming_, next_++};
    writer.integer(name.name);
    if (!is_new) continue;
    const network::LinkSpec spec = network::spec_of(graph_, link);
    writer.integer(spec.bits_per_second).integer(spec.latency_ps);
    writer.integer(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up);
  }
}

void RouteWriter::forget() {
  ++naming_;
  next_ = 0;
}

sharing::Key form_of(RouteWriter& names, const std::vector<network::Route>& routes) {
  sharing::Writer writer("connections");
  names.forget();
  for (const network::Route& route : routes) names.write(writer, route);
  return writer.finish();
}

Arrangement arrangement_of(const Configuration& configuration) {
  const workload::Strategy& s = configuration.strategy;
  return {s.tp,
          s.cp,
          s.dp,
          s.pp,
          s.ep,
          s.etp,
          configuration.gpus_per_node,
          configuration.model.tied_embeddings,
          configuration.model.has_experts(),
          s.cp_comm == workload::ContextExchange::ring,
          s.virtual_stages > 1 && s.folding() == workload::Folding::loop,
          configuration.collectives.looks_at_network(),
          workload::expert_ranks_differ(configuration.model, configuration.strategy),
          s.folding(),
          configuration.placement,
          s.zero_groups(),
          configuration.kind_of_gpu};
}

namespace {

workload::RankClass class_of(const Arrangement& arrangement, std::uint32_t rank) {
  const std::int64_t per_stage = arrangement.tp * arrangement.cp * arrangement.dp;
  const std::int64_t expert_rank = rank % per_stage / arrangement.etp % arrangement.ep;
  return {rank / per_stage, arrangement.expert_ranks_differ ? expert_rank : 0,
          arrangement.machines.empty() ? 0 : arrangement.machines.at(gpu_of(arrangement, rank))};
}

std::vector<workload::RankClass> names_of(const std::map<workload::RankClass, std::uint32_t>& classes) {
  std::vector<workload::RankClass> names;
  for (const auto& [name, ranks] : classes) names.push_back(name);
  return names;
}

}  // namespace

std::uint32_t gpu_of(const Arrangement& arrangement, std::uint32_t rank) {
  if (arrangement.placement == Placement::tp_dp_pp) return rank;
  const auto tp = static_cast<std::uint32_t>(arrangement.tp), cp = static_cast<std::uint32_t>(arrangement.cp),
             pp = static_cast<std::uint32_t>(arrangement.pp), dp = static_cast<std::uint32_t>(arrangement.dp);
  const std::uint32_t t = rank % tp, replica = rank / tp % (cp * dp), p = rank / (tp * cp * dp);
  return t + tp * (replica % cp + cp * (p + pp * (replica / cp)));
}

std::map<workload::RankClass, std::uint32_t> classes_of(const Arrangement& arrangement) {
  std::map<workload::RankClass, std::uint32_t> classes;
  const std::int64_t all = arrangement.tp * arrangement.cp * arrangement.dp * arrangement.pp;
  if (!arrangement.machines.empty()) {
    for (std::uint32_t rank = 0; rank < all; ++rank) ++classes[class_of(arrangement, rank)];
    return classes;
  }
  const std::int64_t expert_ranks = arrangement.expert_ranks_differ ? arrangement.ep : 1;
  for (std::int64_t stage = 0; stage < arrangement.pp; ++stage)
    for (std::int64_t e = 0; e < expert_ranks; ++e)
      classes[{stage, e}] = static_cast<std::uint32_t>(all / arrangement.pp / expert_ranks);
  return classes;
}

collective::Shape shape_of(const Configuration& configuration, const GroupKind& group, collective::Kind kind,
                           std::int64_t bytes, const collective::Split& split) {
  const bool tokens = group.role == Role::expert && kind == collective::Kind::all_to_all;
  if (!tokens || configuration.strategy.stack.dispatcher != workload::Dispatcher::hybrid_ep)
    return collective::choose(configuration.collectives, group.who, kind, bytes, split);
  collective::Library library = configuration.collectives;
  library.all_to_all = collective::Algorithm::hybrid_ep;
  collective::Shape shape = collective::choose(library, group.who, kind, bytes);
  const std::int64_t members = shape.members, nodes = members / shape.per_node;
  if (nodes > 1 && shape.per_node > 1) {
    const double more = workload::parts_reached(configuration.model, nodes) / static_cast<double>(nodes) /
                        (workload::parts_reached(configuration.model, members) / static_cast<double>(members));
    shape.node_bytes = round_half_up(static_cast<double>(bytes / members) * more);
  }
  return shape;
}

Layout::Layout(const Arrangement& arrangement, std::shared_ptr<network::Router> router)
    : gpus_per_node_(arrangement.gpus_per_node),
      per_stage_(static_cast<std::uint32_t>(arrangement.tp * arrangement.cp * arrangement.dp)),
      router_(std::move(router)),
      classes_(names_of(classes_of(arrangement))),
      writer_(router_->graph()) {
  const std::uint32_t all = per_stage_ * static_cast<std::uint32_t>(arrangement.pp);
  MANYWORLDS_CHECK(all <= router_->graph().gpus, "{} ranks on {} GPUs", all, router_->graph().gpus);
  gpu_of_.resize(all);
  class_sizes_.assign(classes_.size(), 0);
  for (std::uint32_t rank = 0; rank < all; ++rank) {
    gpu_of_[rank] = step::gpu_of(arrangement, rank);
    const workload::RankClass of = step::class_of(arrangement, rank);
    const auto number = std::lower_bound(classes_.begin(), classes_.end(), of) - classes_.begin();
    class_of_.push_back(static_cast<std::uint32_t>(number));
    ++class_sizes_[class_of_.back()];
  }
  std::array<std::uint32_t, workload::kRoles> none;
  none.fill(kNoGroup);
  group_of_.assign(all, none);
  member_of_.assign(all, none);
  add_groups(arrangement);
  number_kinds(arrangement.looks_at_network);
}

void Layout::add_groups(const Arrangement& arrangement) {
  const auto tp = static_cast<std::uint32_t>(arrangement.tp), cp = static_cast<std::uint32_t>(arrangement.cp),
             pp = static_cast<std::uint32_t>(arrangement.pp);
  const std::uint32_t replicas = per_stage_ / tp;  // by data-parallel, then by context-parallel rank
  const auto rank = [&](std::uint32_t t, std::uint32_t r, std::uint32_t p) { return t + tp * r + per_stage_ * p; };
  // The order of groups is the order of ties between their transfers; it is the same on every node.
  for (std::uint32_t p = 0; p < pp && tp > 1; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t t = 0; t < tp; ++t) members.push_back(rank(t, r, p));
      add_group(Role::tensor, std::move(members), Role::tensor);
    }
  // Mirrored, stages p and pp - 1 - p hold the same.
  const bool mirrored = arrangement.folding == workload::Folding::mirror,
             folded = arrangement.folding != workload::Folding::loop;
  const std::uint32_t apart = mirrored ? pp / 2 : pp;  // stages that hold different parameters
  for (std::uint32_t p = 0; p < apart && (replicas > 1 || mirrored); ++p)
    for (std::uint32_t t = 0; t < tp; ++t) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t r = 0; r < replicas; ++r) members.push_back(rank(t, r, p));
      for (std::uint32_t r = 0; r < replicas && mirrored; ++r) members.push_back(rank(t, r, pp - 1 - p));
      add_replicas(Role::data, Role::data_across, arrangement.zero_groups, std::move(members));
    }
  for (std::uint32_t r = 0; r < replicas && pp > 1 && !folded && arrangement.tied_embeddings; ++r)
    for (std::uint32_t t = 0; t < tp; ++t)
      add_group(Role::embedding, {rank(t, r, 0), rank(t, r, pp - 1)}, Role::embedding);
  // With virtual stages the pipeline closes to a ring: the last rank hands chunk c to the first as chunk c + 1.
  const std::uint32_t edges = pp > 1 ? (arrangement.closed_pipeline ? pp : pp - 1) : 0;
  for (std::uint32_t p = 0; p < edges; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r)
      for (std::uint32_t t = 0; t < tp; ++t) {
        const std::uint32_t here = rank(t, r, p), next = rank(t, r, (p + 1) % pp);
        add_group(Role::send_forward, {here, next}, Role::recv_forward);
        add_group(Role::send_backward, {next, here}, Role::recv_backward);
        if (!folded) continue;
        add_group(Role::send_forward_back, {next, here}, Role::recv_forward_back);
        add_group(Role::send_backward_on, {here, next}, Role::recv_backward_on);
      }
  for (std::uint32_t p = 0; p < pp && cp > 1 && !arrangement.context_ring; ++p)
    for (std::uint32_t r = 0; r < replicas; r += cp)
      for (std::uint32_t t = 0; t < tp; ++t) {
        std::vector<std::uint32_t> members;
        for (std::uint32_t c = 0; c < cp; ++c) members.push_back(rank(t, r + c, p));
        add_group(Role::context, std::move(members), Role::context);
      }
  for (std::uint32_t p = 0; p < pp && cp > 1 && arrangement.context_ring; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r)
      for (std::uint32_t t = 0; t < tp; ++t)
        add_group(Role::send_context, {rank(t, r, p), rank(t, r / cp * cp + (r + 1) % cp, p)}, Role::recv_context);
  for (std::uint32_t p = 0; p < apart && arrangement.has_experts; ++p) {
    std::vector<std::uint32_t> firsts{p * per_stage_};
    if (mirrored) firsts.push_back((pp - 1 - p) * per_stage_);
    add_expert_groups(arrangement, firsts);
  }
}

/// Of the ranks of stages that hold the same, which begin at `firsts`, in their order: `etp` neighbours share an
/// expert, `ep` of these all experts of a layer.
void Layout::add_expert_groups(const Arrangement& arrangement, const std::vector<std::uint32_t>& firsts) {
  const auto etp = static_cast<std::uint32_t>(arrangement.etp), ep = static_cast<std::uint32_t>(arrangement.ep);
  const std::uint32_t in_stage = per_stage_ / (etp * ep);
  const auto copies = in_stage * static_cast<std::uint32_t>(firsts.size());
  const auto rank = [&](std::uint32_t t, std::uint32_t e, std::uint32_t c) {
    return firsts[c / in_stage] + t + etp * (e + ep * (c % in_stage));
  };
  for (std::uint32_t c = 0; c < copies && etp > 1; ++c)
    for (std::uint32_t e = 0; e < ep; ++e) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t t = 0; t < etp; ++t) members.push_back(rank(t, e, c));
      add_group(Role::expert_tensor, std::move(members), Role::expert_tensor);
    }
  for (std::uint32_t c = 0; c < copies && ep > 1; ++c)
    for (std::uint32_t t = 0; t < etp; ++t) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t e = 0; e < ep; ++e) members.push_back(rank(t, e, c));
      add_group(Role::expert, std::move(members), Role::expert);
    }
  for (std::uint32_t e = 0; e < ep && copies > 1; ++e)
    for (std::uint32_t t = 0; t < etp; ++t) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t c = 0; c < copies; ++c) members.push_back(rank(t, e, c));
      add_replicas(Role::expert_data, Role::expert_data_across, arrangement.zero_groups, std::move(members));
    }
}

void Layout::add_replicas(Role role, Role across, std::int64_t groups, std::vector<std::uint32_t> ranks) {
  const auto shards = static_cast<std::ptrdiff_t>(ranks.size()) / groups;
  for (auto first = ranks.begin(); first != ranks.end() && shards > 1; first += shards)
    add_group(role, {first, first + shards}, role);
  for (std::ptrdiff_t share = 0; share < shards && groups > 1; ++share) {
    std::vector<std::uint32_t> members;
    for (std::int64_t group = 0; group < groups; ++group)
      members.push_back(ranks[static_cast<std::size_t>(share + group * shards)]);
    add_group(across, std::move(members), across);
  }
}

void Layout::add_group(Role role, std::vector<std::uint32_t> ranks, Role role_of_others) {
  Group group{role, std::move(ranks), 1, 0};
  std::map<std::int64_t, std::uint32_t> per_node;
  std::int64_t last = -1;
  bool blocks = true;  // members of a node stand together
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const Role played = i == 0 ? role : role_of_others;
    group_of_[group.ranks[i]][static_cast<std::size_t>(played)] = static_cast<std::uint32_t>(groups_.size());
    member_of_[group.ranks[i]][static_cast<std::size_t>(played)] = static_cast<std::uint32_t>(i);
    const std::int64_t node = gpu_of_[group.ranks[i]] / gpus_per_node_;
    blocks &= node == last || per_node.count(node) == 0;
    ++per_node[node];
    last = node;
  }
  const bool equal = std::all_of(per_node.begin(), per_node.end(),
                                 [&](const auto& node) { return node.second == per_node.begin()->second; });
  if (blocks && equal) group.per_node = per_node.begin()->second;
  groups_.push_back(std::move(group));
}

namespace {

collective::Path path_between(network::Router& router, std::uint32_t from, std::uint32_t to) {
  collective::Path made{INT64_MAX, 0};
  for (const std::uint32_t link : router.route(from, to, 0)) {
    made.bits_per_second = std::min(made.bits_per_second, router.graph().links[link].bits_per_second);
    made.latency_ps += router.graph().links[link].latency_ps;
  }
  return made;
}

/// Whether the paths between gpus[first] and the `count` - 1 others, `stride` apart, lead through one switch alone.
bool hang_on_one_switch(network::Router& router, const std::vector<std::uint32_t>& gpus, std::uint32_t first,
                        std::uint32_t stride, std::uint32_t count) {
  const std::vector<network::Link>& links = router.graph().links;
  std::uint32_t middle = UINT32_MAX;
  for (std::uint32_t i = 1; i < count; ++i)
    for (const bool back : {false, true}) {
      const std::uint32_t from = gpus[first], to = gpus[first + i * stride];
      const network::Route path = router.route(back ? to : from, back ? from : to, 0);
      if (path.size() != 2 || links[path[0]].to < router.graph().gpus) return false;
      if (middle == UINT32_MAX) middle = links[path[0]].to;
      if (links[path[0]].to != middle) return false;
    }
  return true;
}

}  // namespace

network::Route route_of(network::Router& router, const Wires& wires, const std::vector<std::uint32_t>& gpus,
                        std::size_t pair, std::uint64_t entropy) {
  const auto& [from, to] = wires.pairs[pair];
  const auto members = static_cast<std::uint32_t>(gpus.size());
  if (std::max(from, to) < members) return router.route(gpus[from], gpus[to], entropy);
  const std::uint32_t member = std::min(from, to);
  const auto& [a, b] = wires.switches[std::max(from, to) - members];
  const std::uint32_t other = member == a ? b : a;
  const bool up = member == from;
  const network::Route path = router.route(gpus[up ? member : other], gpus[up ? other : member], entropy);
  MANYWORLDS_CHECK(path.size() == 2, "members {} and {} do not hang on one switch", member, other);
  return {up ? path.front() : path.back()};
}

collective::Communicator communicator_of(network::Router& router, const std::vector<std::uint32_t>& gpus,
                                         std::uint32_t per_node) {
  collective::Communicator made{static_cast<std::uint32_t>(gpus.size()), per_node, {}, {}};
  if (per_node > 1) made.inside = path_between(router, gpus[0], gpus[1]);
  if (per_node < gpus.size()) made.between = path_between(router, gpus[0], gpus[per_node]);
  const auto members = static_cast<std::uint32_t>(gpus.size());
  made.node_switches = per_node > 1;
  for (std::uint32_t first = 0; first < members && made.node_switches; first += per_node)
    made.node_switches = hang_on_one_switch(router, gpus, first, 1, per_node);
  made.rail_switches = per_node < members;
  for (std::uint32_t rail = 0; rail < per_node && made.rail_switches; ++rail)
    made.rail_switches = hang_on_one_switch(router, gpus, rail, per_node, members / per_node);
  return made;
}

std::vector<std::uint32_t> Layout::gpus_of(const Group& group) const {
  std::vector<std::uint32_t> gpus;
  for (const std::uint32_t rank : group.ranks) gpus.push_back(gpu_of_[rank]);
  return gpus;
}

void Layout::number_kinds(bool by_network) {
  std::map<GroupKind, std::uint32_t> known;
  for (Group& group : groups_) {
    GroupKind kind{class_of(group.ranks[0]), group.role, {}};
    if (by_network)
      kind.who = communicator_of(*router_, gpus_of(group), group.per_node);
    else
      kind.who.members = static_cast<std::uint32_t>(group.ranks.size()), kind.who.per_node = group.per_node;
    const auto [slot, is_new] = known.try_emplace(kind, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back(kind);
    group.kind = slot->second;
  }
}

std::uint32_t Layout::pairs_number(const collective::Dag& dag) {
  std::uint32_t number = 0;
  const Wires wires{dag.pairs, dag.switches};
  while (number < wired_.size() && wired_[number].wires != wires) ++number;
  if (number == wired_.size())
    wired_.push_back({wires, std::vector<std::shared_ptr<const Connections>>(groups_.size())});
  return number;
}

const std::shared_ptr<const Connections>& Layout::connect(std::uint32_t group, std::uint32_t pairs) {
  std::shared_ptr<const Connections>& slot = wired_[pairs].by_group[group];
  if (slot) return slot;
  Connections made;
  const std::vector<std::uint32_t> gpus = gpus_of(groups_[group]);
  const Wires& wires = wired_[pairs].wires;
  for (std::size_t pair = 0; pair < wires.pairs.size(); ++pair) {
    const std::uint64_t connection = static_cast<std::uint64_t>(group) << 32 | pair;
    made.routes.push_back(route_of(*router_, wires, gpus, pair, connection));
    made.links.insert(made.links.end(), made.routes.back().begin(), made.routes.back().end());
  }
  std::sort(made.links.begin(), made.links.end());
  made.links.erase(std::unique(made.links.begin(), made.links.end()), made.links.end());
  made.form = form_of(writer_, made.routes);
  made.form_number = forms_.try_emplace(made.form, static_cast<std::uint32_t>(forms_.size())).first->second;
  return slot = std::make_shared<const Connections>(std::move(made));
}

const Paths& Layout::paths(std::uint32_t group, const collective::Dag& dag) {
  const std::uint32_t pairs = pairs_number(dag);
  const auto [slot, is_new] = wired_[pairs].paths.try_emplace(group);
  Paths& made = slot->second;
  if (!is_new) return made;
  for (const network::Route& route : connect(group, pairs)->routes) {
    std::vector<std::int64_t> figures;
    for (const std::uint32_t link : route) {
      figures.push_back(graph().links[link].bits_per_second);
      figures.push_back(graph().links[link].latency_ps);
    }
    const auto number = static_cast<std::uint32_t>(path_numbers_.size());
    made.of_pair.push_back(path_numbers_.try_emplace(std::move(figures), number).first->second);
  }
  const auto number = static_cast<std::uint32_t>(paths_numbers_.size());
  made.number = paths_numbers_.try_emplace(made.of_pair, number).first->second;
  return made;
}

std::uint32_t Layout::least_turn(const std::shared_ptr<const collective::Dag>& dag, const Paths& paths) {
  const auto [slot, is_new] = turns_.try_emplace({dag, paths.number}, 0);
  if (is_new) slot->second = collective::least_turn(*dag, paths.of_pair);
  return slot->second;
}

const sharing::Key& Layout::whole_form(const std::vector<std::vector<std::uint32_t>>& pairs_of_kind) {
  if (const auto known = whole_forms_.find(pairs_of_kind); known != whole_forms_.end()) return known->second;
  sharing::Writer writer("layout");
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    for (const std::uint32_t pairs : pairs_of_kind[groups_[group].kind]) connect(group, pairs);
  writer_.forget();
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    const Group& of = groups_[group];
    writer.integer(static_cast<std::int64_t>(of.role))
        .integer(static_cast<std::int64_t>(of.ranks.size()))
        .integer(of.per_node)
        .integer(of.kind)
        .integer(static_cast<std::int64_t>(pairs_of_kind[of.kind].size()));
    for (const std::uint32_t pairs : pairs_of_kind[of.kind])
      for (const network::Route& route : connect(group, pairs)->routes) writer_.write(writer, route);
  }
  return whole_forms_.try_emplace(pairs_of_kind, writer.finish()).first->second;
}

void write_transport(sharing::Writer& writer, const network::Transport& transport) {
  writer.integer(static_cast<std::int64_t>(transport.fidelity));
  if (transport.fidelity == network::Fidelity::analytic) {  // nothing else of it matters then
    writer.integer(transport.payload_bytes).integer(transport.header_bytes);
    return;
  }
  writer.text(transport.kind);
  OptionSet values = network::options_of(transport);
  values["window_bytes"] = transport.window_bytes;  // of scale-up transfers, whatever the kind
  // Routing and its seed are resolved into paths before anything is keyed.
  values.erase("routing"), values.erase("seed");
  if (transport.rate_tolerance_ppm > 0) values["rate_tolerance_ppm"] = transport.rate_tolerance_ppm;
  write_options(writer, values);
}

void write_options(sharing::Writer& writer, const OptionSet& values) {
  for (const auto& [name, value] : values) {
    writer.text(name);
    if (const auto* boolean = std::get_if<bool>(&value)) writer.integer(*boolean);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) writer.integer(*integer);
    if (const auto* real = std::get_if<double>(&value)) writer.real(*real);
    if (const auto* text = std::get_if<std::string>(&value)) writer.text(*text);
  }
}

void write_shape(sharing::Writer& writer, const collective::Shape& shape) {
  writer.integer(static_cast<std::int64_t>(shape.kind)).integer(static_cast<std::int64_t>(shape.algorithm));
  writer.integer(shape.members).integer(shape.bytes).integer(shape.per_node);
  writer.integer(shape.channels).integer(shape.chunk_bytes).integer(static_cast<std::int64_t>(shape.protocol));
  writer.integer(shape.rail_switches).integer(shape.node_bytes);
  if (!shape.split.even()) {
    writer.text(shape.split.by_source ? "by source" : "by destination");
    for (const std::int64_t bytes : shape.split.bytes) writer.integer(bytes);
  }
  const collective::ProtocolCosts& costs = shape.calibrated;
  for (const std::int64_t figure :
       {costs.launch_ps, Time{costs.inside_ps}, Time{costs.between_ps}, costs.line_bytes, costs.payload_bytes})
    writer.integer(figure);
}

sharing::Key transport_key(const network::Transport& transport) {
  sharing::Writer writer("transport");
  write_transport(writer, transport);
  return writer.finish();
}

sharing::Key collective_key(const collective::Shape& shape, const sharing::Key& form, const sharing::Key& transport) {
  sharing::Writer writer("collective");
  writer.key(transport);
  write_shape(writer, shape);
  return writer.key(form).finish();
}

}  // namespace manyworlds::core::step
