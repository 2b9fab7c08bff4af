// Computation and storage of cached components.
#include "core/network/flows/component_cache.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <xxhash.h>

#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

namespace {

std::array<std::uint64_t, 2> digest_of(const StateWords& words) {
  const XXH128_hash_t digest = XXH3_128bits(words.data(), words.size() * sizeof(words[0]));
  return {digest.low64, digest.high64};
}

ComponentCache::Parts parts_of(Engine& engine) {
  ComponentCache::Parts parts;
  for (ComponentState& part : engine.save()) {
    std::vector<std::uint32_t> flows = std::move(part.flows), links = std::move(part.links);
    parts.push_back({make_state(std::move(part)), std::move(flows), std::move(links)});
  }
  return parts;
}

/// Translates link slots of the engine to link numbers of the state.
PauseDependencies to_state_numbers(PauseDependencies waits, const std::vector<std::uint32_t>& slots) {
  const auto number = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  for (auto& [paused, holder] : waits) paused = number(paused), holder = number(holder);
  return waits;
}

}  // namespace

std::shared_ptr<const State> make_state(ComponentState saved) {
  auto state = std::make_shared<State>();
  state->digest = digest_of(saved.words);
  state->words = std::move(saved.words);
  state->least_ps = saved.least_ps;
  return state;
}

/// The simulation of a state to its first completions.
struct ComponentCache::Simulation final : AheadTask {
  Simulation(std::shared_ptr<const State> begin, std::shared_ptr<Simulators> with)
      : state(std::move(begin)), simulators(std::move(with)) {}
  void work(std::size_t thread) override {
    simulated = simulate(simulators->engine(thread), simulators->options, *state, kNever);
    simulators->link_hops_ahead += simulated.link_hops.simulated;
  }

  std::shared_ptr<const State> state;
  std::shared_ptr<Simulators> simulators;
  Simulated simulated;  // once it is done
};

Engine& ComponentCache::Simulators::engine(std::size_t thread) {
  std::unique_ptr<Engine>& engine = engines[thread];
  if (!engine)
    engine = make_engine(transport);
  else
    engine->reset();
  return *engine;
}

ComponentCache::ComponentCache(const Transport& transport, std::size_t byte_limit, bool periods)
    : transport_(transport),
      simulators_(new Simulators{transport, {periods, transport.rate_tolerance_ppm}}),
      byte_limit_(byte_limit) {
  simulate_with(nullptr);
}

ComponentCache::ComponentCache(const Transport& transport, std::shared_ptr<const Graph> fabric)
    : ComponentCache(transport) {
  if (needs_per_packet(transport)) fabric_ = std::move(fabric);
}

void ComponentCache::simulate_with(HelperThreads* helpers) {
  helpers_ = helpers != nullptr && helpers->threads() > 1 ? helpers : nullptr;
  simulators_->engines.resize(helpers_ == nullptr ? 1 : helpers->threads());
}

std::unique_ptr<Engine> ComponentCache::borrow_engine() {
  if (spare_engines_.empty()) return make_engine(transport_);
  std::unique_ptr<Engine> engine = std::move(spare_engines_.back());
  spare_engines_.pop_back();
  engine->reset();
  return engine;
}

ComponentCache::Found ComponentCache::outcome(const State& state, Time limit) {
  const Key key = key_of(state, limit);
  if (const auto found = outcomes_.find(key); found != outcomes_.end()) {
    ++hits_;
    return {found->second, true};
  }
  return take(key, simulate(simulators_->engine(0), simulators_->options, state, limit));
}

std::shared_ptr<const Outcome> ComponentCache::known_outcome(const State& state) {
  const auto found = outcomes_.find(key_of(state, kNever));
  if (found == outcomes_.end()) return nullptr;
  ++hits_;
  return found->second;
}

std::shared_ptr<AheadTask> ComponentCache::begin(const std::shared_ptr<const State>& state) {
  if (helpers_ == nullptr) return nullptr;
  if (begun_.size() > prune_begun_at_) {
    std::erase_if(begun_, [](const auto& item) { return item.second.expired(); });
    prune_begun_at_ = 2 * begun_.size() + 1'024;
  }
  std::weak_ptr<Simulation>& slot = begun_[key_of(*state, kNever)];
  if (auto begun = slot.lock()) return begun;
  auto simulation = std::make_shared<Simulation>(state, simulators_);
  slot = simulation;
  helpers_->offer(simulation);
  return simulation;
}

/// Counts a simulation when its outcome is used, so that nothing depends on which thread did it when.
ComponentCache::Found ComponentCache::outcome(const State& state, const std::shared_ptr<AheadTask>& begun) {
  if (begun == nullptr) return outcome(state, kNever);
  if (auto known = known_outcome(state)) return {std::move(known), true};
  helpers_->finish(*begun);
  const Key key = key_of(state, kNever);
  begun_.erase(key);
  return take(key, static_cast<const Simulation&>(*begun).simulated);
}

/// Adds a new outcome to the cache.
ComponentCache::Found ComponentCache::take(const Key& key, Simulated simulated) {
  ++misses_;
  link_hops_ += simulated.link_hops;
  make_room(simulated.outcome->parts, simulated.outcome->deadlock.size());
  outcomes_.emplace(key, simulated.outcome);
  return {std::move(simulated.outcome), false};
}

void ComponentCache::make_room(const Parts& parts, std::size_t waits) {
  std::size_t bytes = sizeof(Outcome) + 128 + waits * sizeof(PauseDependencies::value_type);
  for (const Outcome::Part& part : parts) bytes += part.state->words.size() * 8 + part.links.size() * 8 + 128;
  if (bytes_ + bytes > byte_limit_) outcomes_.clear(), joins_.clear(), bytes_ = 0;
  bytes_ += bytes;
}

ComponentCache::Joined ComponentCache::join(const StateWords& words, const std::function<void(Engine&)>& load) {
  const Key key{digest_of(words), words.size(), 0};
  if (const auto found = joins_.find(key); found != joins_.end()) return {found->second, true};
  Engine& engine = simulators_->engine(0);
  load(engine);
  auto result = std::make_shared<const Parts>(parts_of(engine));
  make_room(*result, 0);
  joins_.emplace(key, result);
  return {std::move(result), false};
}

ComponentCache::Simulated ComponentCache::simulate(Engine& engine, const FastForwardOptions& options,
                                                   const State& state, Time limit) {
  std::vector<std::uint64_t> orders(state.words[1]);  // flows are numbered in tie order
  std::iota(orders.begin(), orders.end(), 0u);
  std::vector<std::uint32_t> flows, links;
  engine.load(state.words, orders, flows, links);
  auto result = std::make_shared<Outcome>();
  FastForwarder fast_forwarder(engine, std::move(flows), state.words.size(), options);
  fast_forwarder.run(limit, result->completed);
  std::sort(result->completed.begin(), result->completed.end());
  result->elapsed = fast_forwarder.now();
  if (result->completed.empty() && limit == kNever) result->deadlock = to_state_numbers(engine.deadlock(), links);
  result->parts = parts_of(engine);
  result->counters = fast_forwarder.counters();
  return {std::move(result), fast_forwarder.link_hops()};
}

std::shared_ptr<const State> ComponentCache::fresh(const std::vector<LinkSpec>& path, std::int64_t bytes) {
  Engine& engine = simulators_->engine(0);
  Route route;
  for (const LinkSpec& spec : path) route.push_back(engine.add_link(spec));
  engine.start(route, bytes, 0);
  return make_state(std::move(engine.save().front()));
}

}  // namespace manyworlds::core::network
