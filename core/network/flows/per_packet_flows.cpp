// Flows on the per-packet engine, in one event loop, on a fabric that is whole or whose cables fail.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/network/flows/flow_registry.hpp"
#include "core/network/per_packet/engine.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {
namespace {

class PerPacketFlows final : public Flows {
 public:
  PerPacketFlows(const Transport& transport, std::shared_ptr<const Graph> graph)
      : graph_(graph),
        router_(std::make_shared<Router>(graph, path_choice_of(transport))),
        engine_(transport_type(transport).make_per_packet(transport, std::make_shared<ForwardingTables>(graph))) {}
  PerPacketFlows(const PerPacketFlows& other)
      : graph_(other.graph_),
        router_(other.router_),
        engine_(other.engine_->clone()),
        links_(other.links_),
        routes_(other.routes_),
        connections_(other.connections_),
        registry_(other.registry_),
        counters_(other.counters_),
        failing_(other.failing_) {}

  /// Before the first link: lets cables fail.
  void expect(const LinkFailures& failures, const PathChoice& choice, NewRoute new_route) {
    engine_->expect_failures(failures.retransmit_ps);
    failing_.emplace(Failing{FailingCables(failures, graph_, choice), std::move(new_route), {}, {}});
  }

  std::uint32_t add_link(const LinkSpec& spec) override {
    MANYWORLDS_CHECK(links_ < graph_->links.size() && spec_of(*graph_, links_) == spec,
                     "link {} is not that of the graph", links_);
    return links_++;
  }
  std::uint32_t add_route(const Route& route) override {
    const std::uint32_t source = graph_->links[route.front()].from, destination = graph_->links[route.back()].to;
    connections_.push_back(splitmix64(std::uint64_t{source} << 32 | destination));
    const std::uint32_t number = routes_++;
    if (!failing_) return engine_->add_route(route, router_->route(destination, source, number));
    failing_->ends.emplace_back(source, destination);
    const auto [there, back] = failing_->cables.epoch() == 0
                                   ? std::pair(route, router_->route(destination, source, number))
                                   : failing_->routes_of(number);
    return engine_->add_route(there, back);
  }
  void set_tie_order(const std::vector<std::uint32_t>& tie_order) override { registry_.set_tie_order(tie_order); }
  void add_tie_order(std::uint32_t position) override { registry_.add_tie_order(position); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    // Not by the collective: the packets of one that runs again, alone or beside others, take the same paths.
    registry_.set_slot(id, engine_->start(route, bytes, registry_.order_of(id), connections_[route] ^ id.transfer));
  }
  void advance(Time limit, std::vector<FlowId>& finished) override {
    slots_.clear();
    if (failing_)
      run_failing(limit);
    else
      engine_->run(limit, slots_);
    registry_.append(slots_, finished);
    counters_ = engine_->counters();
  }
  Time now() const override { return engine_->now(); }
  bool drained() const override { return engine_->drained(); }
  Time last_activity() const override { return engine_->last_activity(); }
  const Counters& counters() const override { return counters_; }
  std::vector<LinkLoad> loads() const override { return engine_->loads(); }
  void record_acknowledgements() override { engine_->record_acknowledgements(); }
  std::vector<std::pair<FlowId, Time>> acknowledgements() const override {
    std::vector<std::pair<FlowId, Time>> kept;
    for (const auto& [order, at] : engine_->acknowledgements()) kept.emplace_back(registry_.id_of(order), at);
    return kept;
  }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<PerPacketFlows>(*this); }

 private:
  struct Failing {
    FailingCables cables;
    NewRoute new_route;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;  // by route
    std::vector<std::uint32_t> failed;

    /// Returns a route on what is left of the fabric, and the way back.
    std::pair<Route, Route> routes_of(std::uint32_t number) {
      std::pair<Route, Route> result{new_route(cables.router(), number),
                                     cables.router().route(ends[number].second, ends[number].first, number)};
      cables.rename(result.first), cables.rename(result.second);
      return result;
    }
  };

  /// Runs to the limit, or until transfers complete; cables fail and routes change on the way.
  void run_failing(Time limit) {
    while (true) {
      const Time change = failing_->cables.next_change();
      engine_->run(std::min(limit, change), slots_);
      if (!slots_.empty() || change > limit || change == kNever) return;
      const std::uint32_t epoch = failing_->cables.epoch();
      failing_->failed.clear();
      failing_->cables.change(failing_->failed);
      for (const std::uint32_t link : failing_->failed) engine_->fail(link);
      if (failing_->cables.epoch() == epoch) continue;
      std::vector<std::pair<Route, Route>> routes;
      for (std::uint32_t number = 0; number < routes_; ++number) routes.push_back(failing_->routes_of(number));
      const RemainingFabric& left = failing_->cables.left();
      engine_->reroute(std::make_shared<ForwardingTables>(left.graph, left.links), routes,
                       !failing_->cables.waits_for_routes());
    }
  }

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<Router> router_;  // routes acknowledgements to pinned senders
  std::unique_ptr<per_packet::PerPacketEngine> engine_;
  std::uint32_t links_ = 0;
  std::uint32_t routes_ = 0;
  std::vector<std::uint64_t> connections_;  // by route: what its two ends add to hashed decisions
  FlowRegistry registry_;
  std::vector<std::uint32_t> slots_;
  Counters counters_;
  std::optional<Failing> failing_;
};

}  // namespace

std::unique_ptr<Flows> make_per_packet_flows(const Transport& transport, std::shared_ptr<const Graph> graph) {
  return std::make_unique<PerPacketFlows>(transport, std::move(graph));
}

std::unique_ptr<Flows> make_failing_flows(const Transport& transport, std::shared_ptr<const Graph> graph,
                                          const LinkFailures& failures, NewRoute new_route) {
  if (failures.cables.empty() || transport.fidelity != Fidelity::packet) return make_flows(transport, std::move(graph));
  auto flows = std::make_unique<PerPacketFlows>(transport, std::move(graph));
  flows->expect(failures, path_choice_of(transport), std::move(new_route));
  return flows;
}

}  // namespace manyworlds::core::network
