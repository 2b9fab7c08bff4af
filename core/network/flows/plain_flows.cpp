// One event loop for everything: the packet engine as it is.
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
        ranks_(other.ranks_),
        ids_(other.ids_),
        slots_(other.slots_) {}

  std::uint32_t add_link(const LinkSpec& spec) override { return engine_->add_link(spec); }
  std::uint32_t add_route(const Route& route) override {
    routes_.push_back(route);
    return static_cast<std::uint32_t>(routes_.size() - 1);
  }
  void set_ranks(const std::vector<std::uint32_t>& ranks) override {
    MANYWORLDS_CHECK(ranks_.size() <= ranks.size() && std::equal(ranks_.begin(), ranks_.end(), ranks.begin()),
                     "the ranks of {} collectives changed", ranks_.size());
    ranks_ = ranks;
  }
  void add_rank(std::uint32_t rank) override { ranks_.push_back(rank); }
  void start(FlowId id, std::uint32_t route, std::int64_t bytes) override {
    const std::uint64_t order = static_cast<std::uint64_t>(ranks_[id.collective]) << 32 | id.transfer;
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
  PauseWaits standstill() const override { return engine_->standstill(); }
  Time now() const override { return engine_->now(); }
  bool drained() const override { return engine_->drained(); }
  Time quiet_since() const override { return engine_->quiet_since(); }
  const Counters& counters() const override { return engine_->counters(); }
  std::unique_ptr<Flows> clone() const override { return std::make_unique<PlainFlows>(*this); }

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<Route> routes_;
  std::vector<std::uint32_t> ranks_;
  std::vector<FlowId> ids_;  // by slot of the engine
  std::vector<std::uint32_t> slots_;
};

}  // namespace

std::unique_ptr<Flows> make_plain_flows(const Transport& transport) {
  return std::make_unique<PlainFlows>(transport);
}

}  // namespace manyworlds::core::network
