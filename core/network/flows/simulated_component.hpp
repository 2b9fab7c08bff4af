// The simulation of a component of flows that share links, from its canonical state to its first completions: a pure
// function of the state, wherever it is computed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/engine/engine.hpp"
#include "core/network/flows/fast_forward.hpp"

namespace manyworlds::core::network {

/// A canonical state and the digest of its words.
struct State {
  StateWords words;
  std::array<std::uint64_t, 2> digest{};
  Time least_ps = 0;  // see ComponentState, a function of the words
};
std::array<std::uint64_t, 2> digest_of(const StateWords& words);
/// Returns the state that an engine saved, without its slots.
std::shared_ptr<const State> make_state(ComponentState saved);

/// The result of simulating a state.
struct Outcome {
  struct Part {
    std::shared_ptr<const State> state;
    std::vector<std::uint32_t> flows, links;  // their numbers in the simulated state
  };
  Time elapsed = 0;
  std::vector<std::uint32_t> completed;  // flow numbers, ascending
  std::vector<Part> parts;               // the connected components that remain
  PauseDependencies deadlock;            // waits between link numbers if nothing will ever complete (PFC deadlock)
  Counters counters;
};

struct SimulatedComponent {
  std::shared_ptr<const Outcome> outcome;
  LinkHops link_hops;
};
/// Simulates `state` in an empty engine, at most for `limit`.
SimulatedComponent simulate_component(Engine& engine, const FastForwardOptions& options, const State& state,
                                      Time limit);

/// Returns the components of an engine, with its slots.
std::vector<Outcome::Part> components_of(Engine& engine);

}  // namespace manyworlds::core::network
