#include "core/step/layout.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace manyworlds::core::step {

using workload::Role;

std::shared_ptr<const collective::Dag> Dags::get(const collective::Shape& shape) {
  auto& slot = dags_[shape];
  if (!slot) slot = std::make_shared<collective::Dag>(collective::build(shape));
  return slot;
}

Layout::Layout(const Configuration& configuration, std::shared_ptr<network::Router> router)
    : transport_(configuration.transport),
      all_reduce_(configuration.all_reduce),
      gpus_per_node_(configuration.gpus_per_node),
      router_(std::move(router)) {
  const workload::Strategy& s = configuration.strategy;
  const auto tp = static_cast<std::uint32_t>(s.tp), dp = static_cast<std::uint32_t>(s.dp),
             pp = static_cast<std::uint32_t>(s.pp);
  per_stage_ = tp * dp;
  const std::uint32_t all = per_stage_ * pp;
  MANYWORLDS_CHECK(all <= router_->graph().gpus, "{} ranks on {} GPUs", all, router_->graph().gpus);
  const auto rank = [&](std::uint32_t t, std::uint32_t d, std::uint32_t p) { return t + tp * (d + dp * p); };
  gpu_of_.resize(all);
  std::array<std::uint32_t, workload::kRoles> none;
  none.fill(kNoGroup);
  group_of_.assign(all, none);
  member_of_.assign(all, none);
  for (std::uint32_t p = 0; p < pp; ++p)
    for (std::uint32_t d = 0; d < dp; ++d)
      for (std::uint32_t t = 0; t < tp; ++t)
        gpu_of_[rank(t, d, p)] = configuration.placement == Placement::tp_dp_pp ? rank(t, d, p) : t + tp * (p + pp * d);

  // The order of groups is the order of ties between their transfers; it is the same on every node.
  for (std::uint32_t p = 0; p < pp && tp > 1; ++p)
    for (std::uint32_t d = 0; d < dp; ++d) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t t = 0; t < tp; ++t) members.push_back(rank(t, d, p));
      add_group(Role::tensor, std::move(members), Role::tensor);
    }
  for (std::uint32_t p = 0; p < pp && dp > 1; ++p)
    for (std::uint32_t t = 0; t < tp; ++t) {
      std::vector<std::uint32_t> members;
      for (std::uint32_t d = 0; d < dp; ++d) members.push_back(rank(t, d, p));
      add_group(Role::data, std::move(members), Role::data);
    }
  for (std::uint32_t d = 0; d < dp && pp > 1 && configuration.model.tied_embeddings; ++d)
    for (std::uint32_t t = 0; t < tp; ++t)
      add_group(Role::embedding, {rank(t, d, 0), rank(t, d, pp - 1)}, Role::embedding);
  // With virtual stages the pipeline closes to a ring: the last rank hands chunk c to the first as chunk c + 1.
  const std::uint32_t edges = pp > 1 ? (s.virtual_stages > 1 ? pp : pp - 1) : 0;
  for (std::uint32_t p = 0; p < edges; ++p)
    for (std::uint32_t d = 0; d < dp; ++d)
      for (std::uint32_t t = 0; t < tp; ++t) {
        const std::uint32_t here = rank(t, d, p), next = rank(t, d, (p + 1) % pp);
        add_group(Role::send_forward, {here, next}, Role::recv_forward);
        add_group(Role::send_backward, {next, here}, Role::recv_backward);
      }
}

void Layout::add_group(Role role, std::vector<std::uint32_t> ranks, Role role_of_others) {
  Group group{role, std::move(ranks), 1};
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

collective::Shape Layout::shape(std::uint32_t group, collective::Kind kind, std::int64_t bytes) const {
  const Group& of = groups_[group];
  collective::Shape shape{kind, collective::Algorithm::ring, static_cast<std::uint32_t>(of.ranks.size()), bytes, 1};
  if (of.role == Role::data) shape.algorithm = all_reduce_, shape.per_node = of.per_node;
  return shape;
}

Connections Layout::connect(std::uint32_t group, const collective::Dag& dag) const {
  Connections made;
  for (std::size_t pair = 0; pair < dag.pairs.size(); ++pair) {
    const auto& [from, to] = dag.pairs[pair];
    const std::vector<std::uint32_t>& ranks = groups_[group].ranks;
    const std::uint64_t connection = static_cast<std::uint64_t>(group) << 32 | pair;
    made.routes.push_back(router_->route(gpu_of_[ranks[from]], gpu_of_[ranks[to]], connection));
    made.links.insert(made.links.end(), made.routes.back().begin(), made.routes.back().end());
  }
  std::sort(made.links.begin(), made.links.end());
  made.links.erase(std::unique(made.links.begin(), made.links.end()), made.links.end());
  return made;
}

void RouteWriter::write(const network::Route& route) {
  writer_.integer(static_cast<std::int64_t>(route.size()));
  for (const std::uint32_t link : route) {
    const auto [name, is_new] = names_.try_emplace(link, static_cast<std::int64_t>(names_.size()));
    writer_.integer(name->second);
    if (!is_new) continue;
    const network::LinkSpec spec = network::spec_of(graph_, link);
    writer_.integer(spec.bits_per_second).integer(spec.latency_ps);
    writer_.integer(spec.leaves_gpu + 2 * spec.enters_gpu + 4 * spec.scale_up);
  }
}

void write_transport(sharing::Writer& writer, const network::Transport& transport) {
  writer.integer(static_cast<std::int64_t>(transport.kind));
  // Routing and its seed are resolved into paths before anything is keyed.
  for (const std::int64_t value :
       {transport.payload_bytes, transport.header_bytes, transport.ack_bytes, transport.window_bytes,
        transport.pfc_xoff_bytes, transport.pfc_xon_bytes, transport.buffer_bytes, transport.ecn_kmin_bytes,
        transport.ecn_kmax_bytes, transport.ecn_pmax_ppm})
    writer.integer(value);
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
}

sharing::Key collective_key(const collective::Shape& shape, const Connections& connections, const network::Graph& graph,
                            const network::Transport& transport) {
  sharing::Writer writer("collective");
  write_transport(writer, transport);
  write_shape(writer, shape);
  RouteWriter routes(writer, graph);
  for (const network::Route& route : connections.routes) routes.write(route);
  return writer.finish();
}

sharing::Key step_key(const Configuration& configuration, const Layout& layout, Dags& dags) {
  sharing::Writer writer("step");
  write_options(writer, workload::model_options().read(configuration.model));
  write_options(writer, workload::strategy_options().read(configuration.strategy));
  write_options(writer, compute::gpu_options().read(configuration.gpu));
  writer.integer(configuration.strategy.dp).integer(static_cast<std::int64_t>(configuration.composition));
  writer.integer(configuration.limit.link_hops).integer(configuration.limit.events);
  write_transport(writer, configuration.transport);
  RouteWriter routes(writer, layout.graph());
  for (std::uint32_t group = 0; group < layout.groups().size(); ++group) {
    const Group& of = layout.groups()[group];
    writer.integer(static_cast<std::int64_t>(of.role))
        .integer(static_cast<std::int64_t>(of.ranks.size()))
        .integer(of.per_node);
    // The pairs of an all-reduce are those of its halves as well; sizes come from the model and the strategy.
    const bool send = of.role == Role::send_forward || of.role == Role::send_backward;
    const auto shape = layout.shape(group, send ? collective::Kind::send : collective::Kind::all_reduce, 0);
    write_shape(writer, shape);
    for (const network::Route& route : layout.connect(group, *dags.get(shape)).routes) routes.write(route);
  }
  return writer.finish();
}

}  // namespace manyworlds::core::step
