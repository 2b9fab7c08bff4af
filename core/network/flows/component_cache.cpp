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
  for (ComponentState& part : engine.save())
    parts.push_back({make_state(std::move(part.words)), std::move(part.flows), std::move(part.links)});
  return parts;
}

}  // namespace

std::shared_ptr<const State> make_state(StateWords words) {
  auto state = std::make_shared<State>();
  state->digest = digest_of(words);
  state->words = std::move(words);
  return state;
}

ComponentCache::ComponentCache(const Transport& transport, std::size_t byte_limit, bool periods)
    : transport_(transport),
      fast_forward_options_{periods, transport.rate_tolerance_ppm},
      engine_(make_engine(transport)),
      byte_limit_(byte_limit) {}

ComponentCache::ComponentCache(const Transport& transport, std::shared_ptr<const Graph> fabric)
    : transport_(transport),
      fast_forward_options_{true, transport.rate_tolerance_ppm},
      byte_limit_(std::size_t{1} << 30) {
  if (needs_per_packet(transport))
    fabric_ = std::move(fabric);
  else
    engine_ = make_engine(transport);
}

std::unique_ptr<Engine> ComponentCache::borrow_engine() {
  if (spare_engines_.empty()) return make_engine(transport_);
  std::unique_ptr<Engine> engine = std::move(spare_engines_.back());
  spare_engines_.pop_back();
  engine->reset();
  return engine;
}

ComponentCache::Found ComponentCache::outcome(const State& state, Time limit) {
  const Key key{state.digest, state.words.size(), limit};
  if (const auto found = outcomes_.find(key); found != outcomes_.end()) {
    ++hits_;
    return {found->second, true};
  }
  ++misses_;
  auto result = compute(state, limit);
  make_room(result->parts, result->deadlock.size());
  outcomes_.emplace(key, result);
  return {std::move(result), false};
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
  Engine& engine = scratch();
  load(engine);
  auto result = std::make_shared<const Parts>(parts_of(engine));
  make_room(*result, 0);
  joins_.emplace(key, result);
  return {std::move(result), false};
}

/// Translates link slots of the engine to link numbers of the state.
PauseDependencies ComponentCache::to_state_numbers(PauseDependencies waits, const std::vector<std::uint32_t>& slots) {
  const auto number = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  for (auto& [paused, holder] : waits) paused = number(paused), holder = number(holder);
  return waits;
}

std::shared_ptr<const Outcome> ComponentCache::compute(const State& state, Time limit) {
  Engine& engine = scratch();
  std::vector<std::uint64_t> orders(state.words[1]);  // flows are numbered in tie order
  std::iota(orders.begin(), orders.end(), 0u);
  std::vector<std::uint32_t> flows, links;
  engine.load(state.words, orders, flows, links);
  auto result = std::make_shared<Outcome>();
  FastForwarder fast_forwarder(engine, std::move(flows), state.words.size(), fast_forward_options_);
  fast_forwarder.run(limit, result->completed);
  std::sort(result->completed.begin(), result->completed.end());
  result->elapsed = fast_forwarder.now();
  if (result->completed.empty() && limit == kNever) result->deadlock = to_state_numbers(engine.deadlock(), links);
  result->parts = parts_of(engine);
  result->counters = fast_forwarder.counters();
  link_hops_ += fast_forwarder.link_hops();
  return result;
}

std::shared_ptr<const State> ComponentCache::fresh(const std::vector<LinkSpec>& path, std::int64_t bytes) {
  Engine& engine = scratch();
  Route route;
  for (const LinkSpec& spec : path) route.push_back(engine.add_link(spec));
  engine.start(route, bytes, 0);
  return make_state(std::move(engine.save().front().words));
}

}  // namespace manyworlds::core::network
