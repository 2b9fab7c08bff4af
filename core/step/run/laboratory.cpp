#include "core/step/run/laboratory.hpp"
#include "core/network/transports/lossless.hpp"

#include <algorithm>

namespace manyworlds::core::step {
namespace {

// Each keeps the routes of its communicators: at 1,024 GPUs about a megabyte.
constexpr std::size_t kMostLayouts = 8;

}  // namespace

std::shared_ptr<network::Router> Laboratory::router(const Configuration& configuration) {
  const network::Transport& transport = configuration.transport;
  for (const Routed& known : routers_)
    if (known.graph == configuration.graph && known.routing == transport.routing && known.seed == transport.seed)
      return known.router;
  network::check_lossless(*configuration.graph, transport);
  auto made = std::make_shared<network::Router>(configuration.graph, transport.routing,
                                                static_cast<std::uint64_t>(transport.seed));
  routers_.push_back({configuration.graph, transport.routing, transport.seed, made});
  return made;
}

std::shared_ptr<Layout> Laboratory::layout(const Configuration& configuration) {
  const auto on = router(configuration);
  const Arrangement arrangement = arrangement_of(configuration);
  auto known = std::find_if(layouts_.begin(), layouts_.end(),
                            [&](const Arranged& one) { return one.router == on && one.arrangement == arrangement; });
  if (known == layouts_.end()) {
    if (layouts_.size() == kMostLayouts) layouts_.erase(layouts_.begin());
    known = layouts_.insert(layouts_.end(), {arrangement, on, std::make_shared<Layout>(arrangement, on)});
  }
  std::rotate(known, known + 1, layouts_.end());
  return layouts_.back().layout;
}

World Laboratory::world(const Configuration& configuration, Ranks ranks) {
  return World(configuration, layout(configuration), dags_, ranks);
}

Outline Laboratory::outline(const Configuration& configuration) {
  const sharing::Key key = operations_key(configuration);
  auto known = operations_.find(key);
  if (known == operations_.end()) known = operations_.emplace(key, Operations(configuration)).first;
  return outline_of(configuration, known->second, *layout(configuration), dags_);
}

Laboratory::Memory& Laboratory::memory(const network::Transport& transport) {
  for (const auto& known : memories_)
    if (known->memo.transport() == transport) return *known;
  return *memories_.emplace_back(std::make_unique<Memory>(transport, share_));
}

IsolatedResult Laboratory::isolated(const World& world, const Use& use) {
  const auto simulate = [&](network::Memo& memo) {
    const network::LinkHops before = memo.link_hops();
    IsolatedResult result = simulate_isolated(*use.dag, *use.connections, world.layout().graph(), memo);
    link_hops_ += memo.link_hops() - before;
    const std::size_t simulated = result.exits.size();
    for (std::size_t member = simulated; member < use.shape.members; ++member)
      result.exits.push_back(result.exits[member - simulated]);
    result.counters.link_hops *= use.turns();
    return result;
  };
  if (share_) return simulate(memory(world.transport()).memo);
  network::Memo memo(world.transport());
  return simulate(memo);
}

StepResult Laboratory::run(const World& world, IsolatedResults& results, Recording* recording,
                           std::atomic<Time>* reached) {
  if (!share_) memories_.clear();
  Memory& with = memory(world.transport());
  const network::LinkHops before = link_hops_;
  network::LinkHops counted = with.memo.link_hops();
  Step step(world, with.episodes, results, recording, reached);
  while (true) {
    auto outcome = step.advance();
    link_hops_ += with.memo.link_hops() - counted;
    if (auto* done = std::get_if<StepResult>(&outcome)) {
      const Configuration& of = world.configuration();
      const bool packets = of.transport.fidelity == network::Fidelity::packet;
      if (packets && of.composition == Composition::coupled) link_hops_.simulated += done->link_hops;
      done->computed = link_hops_ - before;
      return std::move(*done);
    }
    for (const std::uint32_t number : std::get<Needs>(outcome).uses) {
      const Use& use = world.uses()[number];
      auto& slot = results[use.key];
      if (!slot) slot = std::make_shared<IsolatedResult>(isolated(world, use));
    }
    counted = with.memo.link_hops();  // isolated() has counted its own
  }
}

}  // namespace manyworlds::core::step
