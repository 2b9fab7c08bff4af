// Plain flows: all flows in one event loop of the engine for pinned paths. The oracle of decomposed flows.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {
namespace {

class PlainFlows final : public Flows {
 public:
  explicit PlainFlows(const Transport& transport) : engine_(make_engine(transport)) {}
  PlainFlows(const PlainFlows& other)
      : engine_(other.engine_->clone()),
        routes_(other.routes_),
        tie_order_(other.tie_order_),
        ids_(other.ids_),
        slots_(other.slots_) {}

  std::uint32_t add_link(const LinkSpec& spec) override { return engine_->add_link(spec); }
  std::uint32_t add_route(const Route& route) override {
    routes_.push_back(route);
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }
  void set_tie_order(const std::vector<std::uint32_t>& tie_order) override {
    MANYWORLDS_CHECK(
        tie_order_.size() <= tie_order.size() && std::equal(tie_order_.begin(), tie_order_.end(), tie_order.begin()),
        "the ranks of {} collectives changed", tie_order_.size());
    tie_order_ = tie_order;
  }
  void add_tie_order(std::uint32_t position) override { tie_order_.push_back(position); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::uint64_t order = static_cast<std::uint64_t>(tie_order_[id.collective]) << 32 | id.transfer;
    const std::uint32_t slot = engine_->start(routes_[route], bytes, order);
    if (slot >= ids_.size()) ids_.resize(slot + 1);
    ids_[slot] = id;
  }
  void advance(Time limit, std::vector<FlowId>& finished) override {
    slots_.clear();
    engine_->run(limit, slots_);
    const auto first = static_cast<std::ptrdiff_t>(finished.size());
    for (const std::uint32_t slot : slots_) finished.push_back(ids_[slot]);
    std::sort(finished.begin() + first, finished.end());
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
  std::vector<std::uint32_t> tie_order_;
  std::vector<FlowId> ids_;  // indexed by slot of the engine
  std::vector<std::uint32_t> slots_;
};

}  // namespace

std::unique_ptr<Flows> make_plain_flows(const Transport& transport) {
  return std::make_unique<PlainFlows>(transport);
}

}  // namespace manyworlds::core::network
