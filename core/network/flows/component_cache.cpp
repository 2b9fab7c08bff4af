// Computation and storage of cached components.
#include "core/network/flows/component_cache.hpp"

#include <optional>
#include <utility>

#include "core/network/flows/component_messages.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

namespace {

constexpr double kLinkHopCost_ns = 55;  // measured on the development machine

// Outcomes that take as many are kept: some 60 microseconds, for some kilobytes.
constexpr std::int64_t kKeptLinkHops = 1'024;

/// Returns what others have simulated from a state, or nothing if it is an answer about another. Throws InternalError
/// if it is damaged.
std::optional<SimulatedComponent> read_answer(const std::string& bytes, const State& state) {
  ComponentAnswer answer = decode_answer(bytes);
  if (answer.digest != state.digest) return {};
  return std::move(answer.simulated);
}

}  // namespace

/// The simulation of a state to its first completions.
struct ComponentCache::Simulation final : AheadTask {
  Simulation(std::shared_ptr<const State> begin, std::shared_ptr<Simulators> with, double takes_ns)
      : AheadTask(takes_ns), state(std::move(begin)), simulators(std::move(with)) {}
  std::string question() const override {
    return encode(ComponentQuestion{simulators->transport, simulators->options.periods, state->words});
  }
  void work(std::size_t thread) override {
    simulated = simulate_component(simulators->engine(thread), simulators->options, *state, kNever);
    simulators->link_hops_ahead += simulated.link_hops.simulated;
  }
  bool take(const std::string& answer) override {
    auto taken = read_answer(answer, *state);
    if (taken) simulated = std::move(*taken);
    return taken.has_value();
  }

  std::shared_ptr<const State> state;
  std::shared_ptr<Simulators> simulators;
  SimulatedComponent simulated;  // once it is done
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
  helpers_ = helpers;
  simulators_->engines.resize(helpers_ == nullptr ? 1 : helpers->threads());
}

std::unique_ptr<Engine> ComponentCache::borrow_engine() {
  if (spare_engines_.empty()) return make_engine(transport_);
  std::unique_ptr<Engine> engine = std::move(spare_engines_.back());
  spare_engines_.pop_back();
  engine->reset();
  return engine;
}

void ComponentCache::keep_with(sharing::Keeper* keeper) {
  keeper_ = keeper;
  kept_under_ = encode(ComponentQuestion{transport_, simulators_->options.periods, {}});
}

sharing::Key ComponentCache::kept_key(const State& state, Time limit) const {
  sharing::KeyWriter writer("component");
  writer.text(kept_under_).integer(limit).integer(std::ssize(state.words));
  for (const std::uint64_t half : state.digest) writer.integer(static_cast<std::int64_t>(half));
  return writer.finish();
}

/// Returns what another process or run has computed, and adds it to the cache; null if there is nothing of use.
std::shared_ptr<const Outcome> ComponentCache::kept_outcome(const State& state, Time limit) {
  if (keeper_ == nullptr) return nullptr;
  const std::optional<std::string> kept = keeper_->find(kept_key(state, limit));
  if (!kept) return nullptr;
  try {
    const auto answer = read_answer(*kept, state);
    if (!answer) return nullptr;
    ++hits_;
    make_room(answer->outcome->parts, answer->outcome->deadlock.size());
    outcomes_.emplace(key_of(state, limit), answer->outcome);
    return answer->outcome;
  } catch (const InternalError&) {  // it is damaged
    return nullptr;
  }
}

ComponentCache::Found ComponentCache::outcome(const State& state, Time limit) {
  const Key key = key_of(state, limit);
  if (const auto found = outcomes_.find(key); found != outcomes_.end()) {
    ++hits_;
    return {found->second, true};
  }
  if (auto kept = kept_outcome(state, limit)) return {std::move(kept), true};
  return take(key, state, simulate_component(simulators_->engine(0), simulators_->options, state, limit));
}

std::shared_ptr<const Outcome> ComponentCache::known_outcome(const State& state) {
  const auto found = outcomes_.find(key_of(state, kNever));
  if (found == outcomes_.end()) return nullptr;
  ++hits_;
  return found->second;
}

std::shared_ptr<AheadTask> ComponentCache::begin(const std::shared_ptr<const State>& state) {
  if (helpers_ == nullptr || !helpers_->may_help()) return nullptr;
  if (begun_.size() > prune_begun_at_) {
    std::erase_if(begun_, [](const auto& item) { return item.second.expired(); });
    prune_begun_at_ = 2 * begun_.size() + 1'024;
  }
  std::weak_ptr<Simulation>& slot = begun_[key_of(*state, kNever)];
  if (auto begun = slot.lock()) return begun;
  auto simulation = std::make_shared<Simulation>(state, simulators_, expected_ns(*state));
  slot = simulation;
  helpers_->offer(simulation);
  return simulation;
}

/// Counts a simulation when its outcome is used, so that nothing depends on which thread did it when.
ComponentCache::Found ComponentCache::outcome(const State& state, const std::shared_ptr<AheadTask>& begun) {
  if (begun == nullptr) return outcome(state, kNever);
  if (auto known = known_outcome(state)) return {std::move(known), true};
  if (!begun->is_done())
    if (auto kept = kept_outcome(state, kNever)) return {std::move(kept), true};
  helpers_->finish(*begun);
  const Key key = key_of(state, kNever);
  begun_.erase(key);
  return take(key, state, static_cast<const Simulation&>(*begun).simulated);
}

/// Returns about what the simulation of a state takes: the mean over the least time that its flows take.
double ComponentCache::expected_ns(const State& state) const {
  const double per_ps = least_ps_ > 0 ? static_cast<double>(link_hops_.simulated) / least_ps_ : 0;
  return static_cast<double>(state.least_ps) * per_ps * kLinkHopCost_ns;
}

/// Adds a new outcome to the cache.
ComponentCache::Found ComponentCache::take(const Key& key, const State& state, SimulatedComponent simulated) {
  ++misses_;
  if (key.limit == kNever) least_ps_ += static_cast<double>(state.least_ps);
  link_hops_ += simulated.link_hops;
  make_room(simulated.outcome->parts, simulated.outcome->deadlock.size());
  outcomes_.emplace(key, simulated.outcome);
  if (keeper_ != nullptr && simulated.link_hops.simulated >= kKeptLinkHops)
    keeper_->keep(kept_key(state, key.limit), encode(ComponentAnswer{state.digest, simulated}));
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
  auto result = std::make_shared<const Parts>(components_of(engine));
  make_room(*result, 0);
  joins_.emplace(key, result);
  return {std::move(result), false};
}

std::shared_ptr<const State> ComponentCache::fresh(const std::vector<LinkSpec>& path, std::int64_t bytes) {
  Engine& engine = simulators_->engine(0);
  Route route;
  for (const LinkSpec& spec : path) route.push_back(engine.add_link(spec));
  engine.start(route, bytes, 0);
  return make_state(std::move(engine.save().front()));
}

}  // namespace manyworlds::core::network
