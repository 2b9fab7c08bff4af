// Plain flows: all flows in one event loop of the engine for pinned paths. The oracle of decomposed flows.
#include "core/network/flows/flow_registry.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {
namespace {

class PlainFlows final : public Flows {
 public:
  explicit PlainFlows(const Transport& transport) : engine_(make_engine(transport)) {}
  PlainFlows(const PlainFlows& other)
      : engine_(other.engine_->clone()), routes_(other.routes_), registry_(other.registry_), slots_(other.slots_) {}

  std::uint32_t add_link(const LinkSpec& spec) override { return engine_->add_link(spec); }
  std::uint32_t add_route(const Route& route) override {
    routes_.push_back(route);
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }
  void set_tie_order(const std::vector<std::uint32_t>& tie_order) override { registry_.set_tie_order(tie_order); }
  void add_tie_order(std::uint32_t position) override { registry_.add_tie_order(position); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    registry_.set_slot(id, engine_->start(routes_[route], bytes, registry_.order_of(id)));
  }
  void advance(Time limit, std::vector<FlowId>& finished) override {
    slots_.clear();
    engine_->run(limit, slots_);
    registry_.append(slots_, finished);
  }
  PauseDependencies deadlock() const override { return engine_->deadlock(); }
  Time now() const override { return engine_->now(); }
  bool drained() const override { return engine_->drained(); }
  Time last_activity() const override { return engine_->last_activity(); }
  const Counters& counters() const override { return engine_->counters(); }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<PlainFlows>(*this); }

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<Route> routes_;
  FlowRegistry registry_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace

std::unique_ptr<Flows> make_plain_flows(const Transport& transport) {
  return std::make_unique<PlainFlows>(transport);
}

}  // namespace manyworlds::core::network
