// The oracle: every packet of the step in one event loop, nothing keyed, nothing shared.
#include <unordered_map>

#include "core/step/network/network_side.hpp"

namespace manyworlds::core::step {
namespace {

class Coupled final : public NetworkSide {
 public:
  explicit Coupled(const World& world) : world_(world), traffic_(network::make_flows(world.transport())) {
    const network::Graph& graph = world.layout().graph();
    for (std::uint32_t link = 0; link < graph.links.size(); ++link) traffic_.add_link(network::spec_of(graph, link));
  }

  void enter(Time at, const std::vector<Member>& members) override {
    while (traffic_.now() < at) traffic_.advance(at, exits_);
    for (const Member& member : members) {
      const auto [slot, is_new] =
          number_of_.try_emplace(member.instance, static_cast<std::uint32_t>(instances_.size()));
      if (is_new) {
        const Use& use = world_.use_of(member.instance);
        traffic_.add(use.dag, use.connections->routes);
        instances_.push_back(member.instance);
        traffic_.add_rank(member.instance);
      }
      traffic_.enter(slot->second, member.member);
    }
  }

  Time next(Time limit) override {
    while (taken_ == exits_.size() && traffic_.now() < limit) {
      traffic_.advance(limit, exits_);
      if (limit == kNever) break;
    }
    return taken_ < exits_.size() ? exits_[taken_].at : kNever;
  }

  void take(Time at, std::vector<Member>& exits) override {
    for (; taken_ < exits_.size() && exits_[taken_].at == at; ++taken_)
      exits.push_back({instances_[exits_[taken_].collective], exits_[taken_].member});
  }

  network::PauseWaits standstill() const override { return traffic_.standstill(); }
  network::Counters counters() const override { return traffic_.counters(); }

 private:
  const World& world_;
  network::Traffic traffic_;
  std::unordered_map<std::uint32_t, std::uint32_t> number_of_;  // of an instance, in the traffic
  std::vector<std::uint32_t> instances_;                        // by number
  std::vector<network::Exit> exits_;
  std::size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<NetworkSide> make_coupled(const World& world) {
  return std::make_unique<Coupled>(world);
}

}  // namespace manyworlds::core::step
