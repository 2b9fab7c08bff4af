// One event loop for packets as individuals.
#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/per_packet/engine.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {
namespace {

class IndividualFlows final : public Flows {
 public:
  IndividualFlows(const Transport& transport, std::shared_ptr<const Graph> graph)
      : graph_(graph),
        router_(std::make_shared<Router>(graph, transport.routing, static_cast<std::uint64_t>(transport.seed))),
        engine_(transport_type(transport).make_individual(transport, std::make_shared<Forwarding>(graph))) {}
  IndividualFlows(const IndividualFlows& other)
      : graph_(other.graph_),
        router_(other.router_),
        engine_(other.engine_->clone()),
        links_(other.links_),
        ranks_(other.ranks_),
        ids_(other.ids_) {}

  std::uint32_t add_link(const LinkSpec& spec) override {
    MANYWORLDS_CHECK(links_ < graph_->links.size() && spec_of(*graph_, links_) == spec,
                     "link {} is not that of the graph", links_);
    return links_++;
  }
  std::uint32_t add_route(const Route& route) override {
    const std::uint32_t source = graph_->links[route.front()].from, destination = graph_->links[route.back()].to;
    return engine_->add_route(route, router_->route(destination, source, routes_++));
  }
  void set_ranks(const std::vector<std::uint32_t>& ranks) override {
    MANYWORLDS_CHECK(ranks_.size() <= ranks.size() && std::equal(ranks_.begin(), ranks_.end(), ranks.begin()),
                     "the ranks of {} collectives changed", ranks_.size());
    ranks_ = ranks;
  }
  void add_rank(std::uint32_t rank) override { ranks_.push_back(rank); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::uint64_t order = static_cast<std::uint64_t>(ranks_[id.collective]) << 32 | id.transfer;
    const std::uint32_t slot = engine_->start(route, bytes, order, id.transfer);
    if (slot >= ids_.size()) ids_.resize(slot + 1);
    ids_[slot] = id;
  }
  void advance(Time limit, std::vector<FlowId>& finished) override {
    slots_.clear();
    engine_->run(limit, slots_);
    const auto first = static_cast<std::ptrdiff_t>(finished.size());
    for (const std::uint32_t slot : slots_) finished.push_back(ids_[slot]);
    std::sort(finished.begin() + first, finished.end());
    counters_ = engine_->counters();
  }
  Time now() const override { return engine_->now(); }
  bool drained() const override { return engine_->drained(); }
  Time quiet_since() const override { return engine_->quiet_since(); }
  const Counters& counters() const override { return counters_; }
  std::vector<LinkLoad> loads() const override { return engine_->loads(); }
  void keep_acknowledgements() override { engine_->keep_acknowledgements(); }
  std::vector<std::pair<FlowId, Time>> acknowledgements() const override {
    std::vector<std::pair<FlowId, Time>> kept;
    for (const auto& [order, at] : engine_->acknowledgements()) {
      const auto rank = std::find(ranks_.begin(), ranks_.end(), static_cast<std::uint32_t>(order >> 32));
      kept.push_back({{static_cast<std::uint32_t>(rank - ranks_.begin()), static_cast<std::uint32_t>(order)}, at});
    }
    return kept;
  }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<IndividualFlows>(*this); }

 private:
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<Router> router_;  // what comes back to pinned senders takes a way of its own
  std::unique_ptr<individual::IndividualEngine> engine_;
  std::uint32_t links_ = 0;
  std::uint64_t routes_ = 0;
  std::vector<std::uint32_t> ranks_;
  std::vector<FlowId> ids_;  // by slot of the engine
  std::vector<std::uint32_t> slots_;
  Counters counters_;
};

}  // namespace

std::unique_ptr<Flows> make_individual_flows(const Transport& transport, std::shared_ptr<const Graph> graph) {
  return std::make_unique<IndividualFlows>(transport, std::move(graph));
}

}  // namespace manyworlds::core::network
