#include "core/step/layout/rank_layout.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/layer_split.hpp"
#include "core/workload/model/architecture.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/model/token_trade.hpp"
#include "core/workload/parts/expert_load.hpp"

namespace manyworlds::core::step {

using workload::Role;

RouteWriter::RouteWriter(const network::Graph& graph) : graph_(graph), names_(graph.links.size()) {}

void RouteWriter::write(sharing::KeyWriter& writer, const network::Route& route) {
  writer.integer(static_cast<std::int64_t>(route.size()));
  for (const std::uint32_t link : route) {
    Name& name = names_[link];
    const bool is_new = name.generation != generation_;
    if (is_new) name = {generation_, next_++};
    writer.integer(name.name);
    if (!is_new) continue;
    const network::LinkSpec spec = network::spec_of(graph_, link);
    writer.integer(spec.bits_per_second).integer(spec.latency_ps);
    writer.integer(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up);
  }
}

void RouteWriter::restart_numbering() {
  ++generation_;
  next_ = 0;
}

sharing::Key route_signature_of(RouteWriter& names, const std::vector<network::Route>& routes) {
  sharing::KeyWriter writer("connections");
  names.restart_numbering();
  for (const network::Route& route : routes) names.write(writer, route);
  return writer.finish();
}

namespace {

bool depends_on_network(const Configuration& configuration) {
  return configuration.collectives.depends_on_network() ||
         std::any_of(configuration.group_libraries.begin(), configuration.group_libraries.end(),
                     [](const auto& own) { return own.second.depends_on_network(); });
}

}  // namespace

ParallelConfig parallel_config_of(const Configuration& configuration) {
  using workload::ContextExchange;
  if (configuration.programs) {
    ParallelConfig parallel;
    parallel.gpus_per_node = configuration.gpus_per_node;
    parallel.depends_on_network = depends_on_network(configuration);
    parallel.kind_of_gpu = configuration.kind_of_gpu;
    parallel.given = configuration.programs->ranks;
    return parallel;
  }
  const workload::Strategy& s = configuration.strategy;
  MANYWORLDS_CHECK(!workload::is_weighed(s.split) || !s.stage_layers.empty(), "layers of {} stages are not listed",
                   s.pp);
  return {s.tp,
          s.cp,
          s.dp,
          s.pp,
          s.ep,
          s.etp,
          configuration.gpus_per_node,
          workload::stages_share_table(configuration.model),
          configuration.model.has_experts() || workload::has_tables(configuration.model) ||
              (configuration.model.teacher && configuration.model.teacher->has_experts()),
          s.cp_comm == ContextExchange::ring || s.cp_comm == ContextExchange::gathered_blocks,
          s.cp_comm != ContextExchange::ring || workload::exchanges_tokens(configuration.model),
          s.virtual_stages > 1 && s.stage_placement() == workload::StagePlacement::loop,
          depends_on_network(configuration),
          workload::expert_ranks_differ(configuration.model, configuration.strategy),
          s.stage_placement(),
          configuration.placement,
          s.zero_groups(),
          configuration.kind_of_gpu,
          nullptr};
}

namespace {

workload::RankClass class_of(const ParallelConfig& parallel, RankId rank) {
  const std::uint32_t kind = parallel.kind_of_gpu.empty() ? 0 : parallel.kind_of_gpu.at(gpu_of(parallel, rank).value());
  if (parallel.given) return {parallel.given->program_of_rank[rank.value()], 0, kind};
  const std::int64_t per_stage = parallel.tp * parallel.cp * parallel.dp;
  const std::int64_t expert_rank = rank.value() % per_stage / parallel.etp % parallel.ep;
  return {rank.value() / per_stage, parallel.expert_ranks_differ ? expert_rank : 0, kind};
}

std::vector<workload::RankClass> keys_of(const std::map<workload::RankClass, std::uint32_t>& classes) {
  std::vector<workload::RankClass> names;
  for (const auto& [name, ranks] : classes) names.push_back(name);
  return names;
}

}  // namespace

GpuId gpu_of(const ParallelConfig& parallel, RankId id) {
  if (parallel.given && !parallel.given->gpu_of_rank.empty()) return GpuId(parallel.given->gpu_of_rank[id.value()]);
  if (parallel.placement == Placement::tp_dp_pp) return GpuId(id.value());
  const auto tp = static_cast<std::uint32_t>(parallel.tp), cp = static_cast<std::uint32_t>(parallel.cp),
             pp = static_cast<std::uint32_t>(parallel.pp), dp = static_cast<std::uint32_t>(parallel.dp);
  const std::uint32_t rank = id.value(), t = rank % tp, replica = rank / tp % (cp * dp), p = rank / (tp * cp * dp);
  return GpuId(t + tp * (replica % cp + cp * (p + pp * (replica / cp))));
}

std::map<workload::RankClass, std::uint32_t> classes_of(const ParallelConfig& parallel) {
  std::map<workload::RankClass, std::uint32_t> classes;
  const std::int64_t rank_count = parallel.ranks();
  if (!parallel.kind_of_gpu.empty() || parallel.given) {
    for (const RankId rank : IdRange<RankId>(rank_count)) ++classes[class_of(parallel, rank)];
    return classes;
  }
  const std::int64_t expert_ranks = parallel.expert_ranks_differ ? parallel.ep : 1;
  for (std::int64_t stage = 0; stage < parallel.pp; ++stage)
    for (std::int64_t e = 0; e < expert_ranks; ++e)
      classes[{stage, e}] = static_cast<std::uint32_t>(rank_count / parallel.pp / expert_ranks);
  return classes;
}

RankLayout::RankLayout(const ParallelConfig& parallel, std::shared_ptr<network::Router> router, Spreading spreading)
    : gpus_per_node_(parallel.gpus_per_node),
      per_stage_(static_cast<std::uint32_t>(parallel.ranks() / parallel.pp)),
      router_(std::move(router)),
      spreading_(std::move(spreading)),
      classes_(keys_of(classes_of(parallel))),
      writer_(router_->graph()) {
  const std::uint32_t rank_count = per_stage_ * static_cast<std::uint32_t>(parallel.pp);
  MANYWORLDS_CHECK(rank_count <= router_->graph().gpus, "{} ranks on {} GPUs", rank_count, router_->graph().gpus);
  for (std::uint32_t i = 0; i < classes_.size() && parallel.given; ++i)
    MANYWORLDS_CHECK(classes_[i].stage == i, "program {} is run on GPUs of several kinds", classes_[i].stage);
  gpu_of_.resize(rank_count);
  class_sizes_.assign(classes_.size(), 0);
  for (const RankId rank : rank_ids()) {
    gpu_of_[rank] = step::gpu_of(parallel, rank);
    const workload::RankClass current = step::class_of(parallel, rank);
    const auto number = std::lower_bound(classes_.begin(), classes_.end(), current) - classes_.begin();
    class_of_.push_back(static_cast<std::uint32_t>(number));
    ++class_sizes_[class_of_.back()];
  }
  if (parallel.given) roles_ += workload::kRolesOfDimension * parallel.given->dimensions.size();
  places_.resize(rank_count * roles_);
  parallel.given ? add_given(*parallel.given) : add_groups(parallel);
  number_kinds(parallel.depends_on_network);
}

void RankLayout::add_given(const workload::GivenRanks& given) {
  for (const workload::GivenGroup& group : given.groups) {
    std::vector<RankId> ranks;
    for (const std::uint32_t rank : group.ranks) ranks.emplace_back(rank);
    const Role role = workload::role_in_dimension(group.dimension, given.dimensions[group.dimension].kind);
    add_group(role, std::move(ranks), workload::receiver_of(role));
  }
}

void RankLayout::add_groups(const ParallelConfig& parallel) {
  const auto tp = static_cast<std::uint32_t>(parallel.tp), cp = static_cast<std::uint32_t>(parallel.cp),
             pp = static_cast<std::uint32_t>(parallel.pp);
  const std::uint32_t replicas = per_stage_ / tp;  // numbered with the context-parallel rank varying fastest
  const auto rank = [&](auto t, auto r, auto p) { return RankId(t + tp * r + per_stage_ * p); };
  // The order of groups breaks ties between their transfers; it is the same on every node.
  for (std::uint32_t p = 0; p < pp && tp > 1; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r) {
      std::vector<RankId> members;
      for (std::uint32_t t = 0; t < tp; ++t) members.push_back(rank(t, r, p));
      add_group(Role::tensor, std::move(members), Role::tensor);
    }
  // In a mirrored (bidirectional) pipeline, stages p and pp - 1 - p hold the same parameters.
  const bool mirrored = parallel.stage_placement == workload::StagePlacement::bidirectional,
             folded = parallel.stage_placement != workload::StagePlacement::loop;
  const std::uint32_t distinct_stages = mirrored ? pp / 2 : pp;  // stages that hold different parameters
  for (std::uint32_t p = 0; p < distinct_stages && (replicas > 1 || mirrored); ++p)
    for (std::uint32_t t = 0; t < tp; ++t) {
      std::vector<RankId> members;
      for (std::uint32_t r = 0; r < replicas; ++r) members.push_back(rank(t, r, p));
      for (std::uint32_t r = 0; r < replicas && mirrored; ++r) members.push_back(rank(t, r, pp - 1 - p));
      add_replicas(Role::data, Role::data_inter_group, parallel.zero_groups, std::move(members));
    }
  for (std::uint32_t r = 0; r < replicas && pp > 1 && !folded && parallel.tied_embeddings; ++r)
    for (std::uint32_t t = 0; t < tp; ++t)
      add_group(Role::embedding, {rank(t, r, 0), rank(t, r, pp - 1)}, Role::embedding);
  // With interleaved virtual stages the pipeline is a ring: the last rank sends chunk c to the first as chunk c + 1.
  const std::uint32_t edges = pp > 1 ? (parallel.ring_pipeline ? pp : pp - 1) : 0;
  for (std::uint32_t p = 0; p < edges; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r)
      for (std::uint32_t t = 0; t < tp; ++t) {
        const RankId here = rank(t, r, p), next = rank(t, r, (p + 1) % pp);
        add_group(Role::send_forward, {here, next}, Role::recv_forward);
        add_group(Role::send_backward, {next, here}, Role::recv_backward);
        if (!folded) continue;
        add_group(Role::send_forward_reverse, {next, here}, Role::recv_forward_reverse);
        add_group(Role::send_backward_reverse, {here, next}, Role::recv_backward_reverse);
      }
  for (std::uint32_t p = 0; p < pp && cp > 1 && parallel.context_group; ++p)
    for (std::uint32_t r = 0; r < replicas; r += cp)
      for (std::uint32_t t = 0; t < tp; ++t) {
        std::vector<RankId> members;
        for (std::uint32_t c = 0; c < cp; ++c) members.push_back(rank(t, r + c, p));
        add_group(Role::context, std::move(members), Role::context);
      }
  for (std::uint32_t p = 0; p < pp && cp > 1 && parallel.context_ring; ++p)
    for (std::uint32_t r = 0; r < replicas; ++r)
      for (std::uint32_t t = 0; t < tp; ++t)
        add_group(Role::send_context, {rank(t, r, p), rank(t, r / cp * cp + (r + 1) % cp, p)}, Role::recv_context);
  for (std::uint32_t p = 0; p < distinct_stages && parallel.has_experts; ++p) {
    std::vector<RankId> first_ranks{rank(0, 0, p)};
    if (mirrored) first_ranks.push_back(rank(0, 0, pp - 1 - p));
    add_expert_groups(parallel, first_ranks);
  }
}

/// Adds the expert groups of stages that hold the same parameters; `first_ranks` has the first rank of each. In rank
/// order, `etp` adjacent ranks share an expert, and `ep` such sets hold all experts of a layer.
void RankLayout::add_expert_groups(const ParallelConfig& parallel, const std::vector<RankId>& first_ranks) {
  const auto etp = static_cast<std::uint32_t>(parallel.etp), ep = static_cast<std::uint32_t>(parallel.ep);
  const std::uint32_t in_stage = per_stage_ / (etp * ep);
  const auto copies = in_stage * static_cast<std::uint32_t>(first_ranks.size());
  const auto rank = [&](std::uint32_t t, std::uint32_t e, std::uint32_t c) {
    return RankId(first_ranks[c / in_stage].value() + t + etp * (e + ep * (c % in_stage)));
  };
  for (std::uint32_t c = 0; c < copies && etp > 1; ++c)
    for (std::uint32_t e = 0; e < ep; ++e) {
      std::vector<RankId> members;
      for (std::uint32_t t = 0; t < etp; ++t) members.push_back(rank(t, e, c));
      add_group(Role::expert_tensor, std::move(members), Role::expert_tensor);
    }
  for (std::uint32_t c = 0; c < copies && ep > 1; ++c)
    for (std::uint32_t t = 0; t < etp; ++t) {
      std::vector<RankId> members;
      for (std::uint32_t e = 0; e < ep; ++e) members.push_back(rank(t, e, c));
      add_group(Role::expert, std::move(members), Role::expert);
    }
  for (std::uint32_t e = 0; e < ep && copies > 1; ++e)
    for (std::uint32_t t = 0; t < etp; ++t) {
      std::vector<RankId> members;
      for (std::uint32_t c = 0; c < copies; ++c) members.push_back(rank(t, e, c));
      add_replicas(Role::expert_data, Role::expert_data_inter_group, parallel.zero_groups, std::move(members));
    }
}

void RankLayout::add_replicas(Role role, Role across, std::int64_t groups, std::vector<RankId> ranks) {
  const auto shards = static_cast<std::ptrdiff_t>(ranks.size()) / groups;
  for (auto first = ranks.begin(); first != ranks.end() && shards > 1; first += shards)
    add_group(role, {first, first + shards}, role);
  for (std::ptrdiff_t share = 0; share < shards && groups > 1; ++share) {
    std::vector<RankId> members;
    for (std::int64_t group = 0; group < groups; ++group)
      members.push_back(ranks[static_cast<std::size_t>(share + group * shards)]);
    add_group(across, std::move(members), across);
  }
}

void RankLayout::add_group(Role role, std::vector<RankId> ranks, Role role_of_others) {
  Group group{role, std::move(ranks), 1, 0};
  std::map<std::int64_t, std::uint32_t> per_node;
  std::int64_t last = -1;
  bool contiguous = true;  // members of a node are contiguous
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const Role member_role = i == 0 ? role : role_of_others;
    places_[place_of(group.ranks[i], member_role)] = {groups_.next_id(), static_cast<std::uint32_t>(i)};
    const std::int64_t node = gpu_of_[group.ranks[i]].value() / gpus_per_node_;
    contiguous &= node == last || per_node.count(node) == 0;
    ++per_node[node];
    last = node;
  }
  const bool equal_counts = std::all_of(per_node.begin(), per_node.end(),
                                        [&](const auto& node) { return node.second == per_node.begin()->second; });
  if (contiguous && equal_counts) group.per_node = per_node.begin()->second;
  groups_.push_back(std::move(group));
}

namespace {

collective::Path path_between(network::Router& router, std::uint32_t from, std::uint32_t to) {
  collective::Path result{INT64_MAX, 0};
  for (const std::uint32_t link : router.route(from, to, 0)) {
    result.bits_per_second = std::min(result.bits_per_second, router.graph().links[link].bits_per_second);
    result.latency_ps += router.graph().links[link].latency_ps;
  }
  return result;
}

/// Whether the paths in both directions between gpus[first] and the other `count` - 1 GPUs, at multiples of `stride`,
/// cross one common switch and nothing else.
bool share_one_switch(network::Router& router, const std::vector<std::uint32_t>& gpus, std::uint32_t first,
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

/// Whether `count` GPUs from gpus[first] on have a link of their own, inside the node, from each to each other one.
bool joined_by_links(network::Router& router, const std::vector<std::uint32_t>& gpus, std::uint32_t first,
                     std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const network::Route path = router.route(gpus[first + i], gpus[first + j], 0);
      if (path.size() != 1 || router.graph().links[path[0]].kind != network::LinkKind::scale_up) return false;
    }
  return true;
}

}  // namespace

network::Route route_of(network::Router& router, const Connectivity& connectivity,
                        const std::vector<std::uint32_t>& gpus, std::size_t pair, std::uint64_t entropy) {
  const auto& [from, to] = connectivity.pairs[pair];
  const auto members = static_cast<std::uint32_t>(gpus.size());
  if (std::max(from, to) < members) return router.route(gpus[from], gpus[to], entropy);
  const std::uint32_t member = std::min(from, to);
  const auto& [a, b] = connectivity.switches[std::max(from, to) - members];
  const std::uint32_t other = member == a ? b : a;
  const bool up = member == from;
  const network::Route path = router.route(gpus[up ? member : other], gpus[up ? other : member], entropy);
  MANYWORLDS_CHECK(path.size() == 2, "members {} and {} do not hang on one switch", member, other);
  return {up ? path.front() : path.back()};
}

collective::Communicator communicator_of(network::Router& router, const std::vector<std::uint32_t>& gpus,
                                         std::uint32_t per_node) {
  collective::Communicator result{static_cast<std::uint32_t>(gpus.size()), per_node, {}, {}};
  if (per_node > 1) result.intra_node = path_between(router, gpus[0], gpus[1]);
  if (per_node < gpus.size()) result.inter_node = path_between(router, gpus[0], gpus[per_node]);
  const auto members = static_cast<std::uint32_t>(gpus.size());
  result.node_switches = per_node > 1;
  for (std::uint32_t first = 0; first < members && result.node_switches; first += per_node)
    result.node_switches = share_one_switch(router, gpus, first, 1, per_node);
  result.rail_switches = per_node < members;
  for (std::uint32_t rail = 0; rail < per_node && result.rail_switches; ++rail)
    result.rail_switches = share_one_switch(router, gpus, rail, per_node, members / per_node);
  result.node_mesh = per_node > 2;  // two have one link, which every algorithm uses
  for (std::uint32_t first = 0; first < members && result.node_mesh; first += per_node)
    result.node_mesh = joined_by_links(router, gpus, first, per_node);
  return result;
}

std::vector<std::uint32_t> RankLayout::gpus_of(const Group& group) const {
  std::vector<std::uint32_t> gpus;
  for (const RankId rank : group.ranks) gpus.push_back(gpu_of_[rank].value());
  return gpus;
}

void RankLayout::number_kinds(bool by_network) {
  std::map<GroupKind, std::uint32_t> known;
  for (Group& group : groups_) {
    GroupKind kind{class_of(group.ranks[0]), group.role, {}};
    if (by_network)
      kind.communicator = communicator_of(*router_, gpus_of(group), group.per_node);
    else
      kind.communicator.members = static_cast<std::uint32_t>(group.ranks.size()),
      kind.communicator.per_node = group.per_node;
    const auto [slot, is_new] = known.try_emplace(kind, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back(kind);
    group.kind = slot->second;
  }
}

std::uint32_t RankLayout::connectivity_number(const collective::Dag& dag) {
  std::uint32_t number = 0;
  const Connectivity connectivity{dag.pairs, dag.switches};
  while (number < route_tables_.size() && route_tables_[number].connectivity != connectivity) ++number;
  if (number == route_tables_.size())
    route_tables_.push_back({connectivity, IdVector<GroupId, std::shared_ptr<const Connections>>(groups_.size())});
  return number;
}

const std::shared_ptr<const Connections>& RankLayout::connections_of(GroupId group, std::uint32_t pairs) {
  std::shared_ptr<const Connections>& slot = route_tables_[pairs].by_group[group];
  if (slot) return slot;
  Connections result;
  const std::vector<std::uint32_t> gpus = gpus_of(groups_[group]);
  const Connectivity& connectivity = route_tables_[pairs].connectivity;
  for (std::size_t pair = 0; pair < connectivity.pairs.size(); ++pair) {
    const std::uint64_t connection = std::uint64_t{group.value()} << 32 | pair;
    result.routes.push_back(route_of(*router_, connectivity, gpus, pair, connection));
    result.links.insert(result.links.end(), result.routes.back().begin(), result.routes.back().end());
  }
  std::sort(result.links.begin(), result.links.end());
  result.links.erase(std::unique(result.links.begin(), result.links.end()), result.links.end());
  result.route_signature = route_signature_of(writer_, result.routes);
  if (spreading_.paths) add_spreads(result, connectivity, gpus);
  result.signature_number =
      signature_numbers_.try_emplace(result.route_signature, static_cast<std::uint32_t>(signature_numbers_.size()))
          .first->second;
  return slot = std::make_shared<const Connections>(std::move(result));
}

const sharing::Key& RankLayout::full_route_signature(const std::vector<std::vector<std::uint32_t>>& pairs_of_kind) {
  if (const auto known = full_signatures_.find(pairs_of_kind); known != full_signatures_.end()) return known->second;
  sharing::KeyWriter writer("layout");
  for (const GroupId group : groups_.ids())
    for (const std::uint32_t pairs : pairs_of_kind[groups_[group].kind]) connections_of(group, pairs);
  writer_.restart_numbering();
  for (const GroupId group : groups_.ids()) {
    const Group& current = groups_[group];
    writer.integer(static_cast<std::int64_t>(current.role))
        .integer(static_cast<std::int64_t>(current.ranks.size()))
        .integer(current.per_node)
        .integer(current.kind)
        .integer(static_cast<std::int64_t>(pairs_of_kind[current.kind].size()));
    for (const std::uint32_t pairs : pairs_of_kind[current.kind])
      for (const network::Route& route : connections_of(group, pairs)->routes) writer_.write(writer, route);
    if (spreading_.paths)
      for (const std::uint32_t gpu : gpus_of(current)) writer.integer(gpu);
  }
  if (spreading_.paths) writer.key(fabric_key());
  return full_signatures_.try_emplace(pairs_of_kind, writer.finish()).first->second;
}

}  // namespace manyworlds::core::step
