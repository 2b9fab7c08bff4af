#include "core/network/flows/simulated_component.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <xxhash.h>

namespace manyworlds::core::network {
namespace {

/// Translates link slots of the engine to link numbers of the state.
PauseDependencies to_state_numbers(PauseDependencies waits, const std::vector<std::uint32_t>& slots) {
  const auto number = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(std::find(slots.begin(), slots.end(), slot) - slots.begin());
  };
  for (auto& [paused, holder] : waits) paused = number(paused), holder = number(holder);
  return waits;
}

}  // namespace

std::array<std::uint64_t, 2> digest_of(const StateWords& words) {
  const XXH128_hash_t digest = XXH3_128bits(words.data(), words.size() * sizeof(words[0]));
  return {digest.low64, digest.high64};
}

std::shared_ptr<const State> make_state(ComponentState saved) {
  auto state = std::make_shared<State>();
  state->digest = digest_of(saved.words);
  state->words = std::move(saved.words);
  state->least_ps = saved.least_ps;
  return state;
}

std::vector<Outcome::Part> components_of(Engine& engine) {
  std::vector<Outcome::Part> parts;
  for (ComponentState& part : engine.save()) {
    std::vector<std::uint32_t> flows = std::move(part.flows), links = std::move(part.links);
    parts.push_back({make_state(std::move(part)), std::move(flows), std::move(links)});
  }
  return parts;
}

SimulatedComponent simulate_component(Engine& engine, const FastForwardOptions& options, const State& state,
                                      Time limit) {
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
  result->parts = components_of(engine);
  result->counters = fast_forwarder.counters();
  return {std::move(result), fast_forwarder.link_hops()};
}

}  // namespace manyworlds::core::network
