// The coupled network model, the oracle of the composed one: all packets of the step in one simulation, without
// caching.
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/network/network_model.hpp"

namespace manyworlds::core::step {
namespace {

class CoupledNetwork final : public NetworkModel {
 public:
  explicit CoupledNetwork(const CompiledStep& compiled)
      : compiled_(compiled),
        traffic_(network::make_failing_flows(
            compiled.transport(), compiled.configuration().graph, compiled.configuration().failures,
            [this](network::Router& router, std::uint32_t number) {
              return compiled_.route_by(router, connections_[number].first, connections_[number].second);
            })) {
    check_per_packet_size(compiled);
    const network::Graph& graph = compiled.layout().graph();
    for (std::uint32_t link = 0; link < graph.links.size(); ++link) traffic_.add_link(network::spec_of(graph, link));
  }

  void enter(Time at, const std::vector<Member>& members) override {
    while (traffic_.now() < at) traffic_.advance(at, exits_);
    for (const Member& member : members) {
      const auto [slot, is_new] =
          number_of_.try_emplace(member.instance, static_cast<std::uint32_t>(instances_.size()));
      if (is_new) {
        const CollectiveOp& collective_op = compiled_.collective_op_of(member.instance);
        const auto [routes, unknown] = routes_.try_emplace(collective_op.connections.get(), 0);
        if (unknown) {
          const CollectiveOpId id = compiled_.collective_op_id(member.instance);
          for (std::uint32_t pair = 0; pair < collective_op.connections->routes.size(); ++pair)
            connections_.emplace_back(id, pair);
          routes->second = traffic_.add_routes(collective_op.connections->routes);
        }
        traffic_.add(collective_op.dag, routes->second);
        instances_.push_back(member.instance);
        traffic_.add_tie_order(member.instance.value());
        work_.link_hops += collective_op.link_hops;
        work_.transfers += collective_op.transfers;
      }
      traffic_.enter(slot->second, member.member);
    }
  }

  Time next_exit(Time limit) override {
    while (taken_ == exits_.size() && traffic_.now() < limit) {
      traffic_.advance(limit, exits_);
      if (limit == kNever) break;
    }
    return taken_ < exits_.size() ? exits_[taken_].at : kNever;
  }

  void take_exits(Time at, std::vector<Member>& exits) override {
    for (; taken_ < exits_.size() && exits_[taken_].at == at; ++taken_)
      exits.push_back({instances_[exits_[taken_].collective], exits_[taken_].member});
  }

  network::PauseDependencies deadlock() const override { return traffic_.deadlock(); }
  network::Counters counters() const override { return traffic_.counters(); }
  Work work() const override { return work_; }

 private:
  const CompiledStep& compiled_;
  std::vector<std::pair<CollectiveOpId, std::uint32_t>> connections_;  // by number of a route: an operation, its pair
  network::Traffic traffic_;
  std::unordered_map<InstanceId, std::uint32_t> number_of_;       // by instance: its number in `traffic_`
  std::vector<InstanceId> instances_;                             // by number in `traffic_`
  std::unordered_map<const Connections*, std::uint32_t> routes_;  // numbers of the sets of routes in `traffic_`
  std::vector<network::Exit> exits_;
  std::size_t taken_ = 0;
  Work work_;
};

}  // namespace

void check_per_packet_size(const CompiledStep& compiled) {
  constexpr std::size_t kMaxInstances = std::size_t{1} << 21;  // the tie order of a packet leaves 21 bits for them
  const bool every_packet = network::needs_per_packet(compiled.transport()) || compiled.configuration().has_failures();
  if (every_packet && compiled.instances() > kMaxInstances)
    throw InputError(
        fmt::format("transport: the per-packet engine takes up to {} collectives, and the step has {}; take fidelity "
                    "fluid",
                    kMaxInstances, compiled.instances()));
}

std::unique_ptr<NetworkModel> make_coupled(const CompiledStep& compiled) {
  return std::make_unique<CoupledNetwork>(compiled);
}

}  // namespace manyworlds::core::step
