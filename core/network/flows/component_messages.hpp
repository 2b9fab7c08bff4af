// The simulation of a component by another process: the question, which holds all that the outcome depends on, and the
// answer. Both are checked when they are read, since what another process sends may be damaged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/network/fabric/transport.hpp"
#include "core/network/flows/simulated_component.hpp"

namespace manyworlds::core::network {

/// What to simulate, without a limit.
struct ComponentQuestion {
  Transport transport;
  bool periods = true;  // see FastForwardOptions
  StateWords words;
};
std::string encode(const ComponentQuestion& question);
/// Throws InternalError on bytes that encode() did not write.
ComponentQuestion decode_question(const std::string& bytes);

/// The outcome of the state with `digest`.
struct ComponentAnswer {
  std::array<std::uint64_t, 2> digest{};
  SimulatedComponent simulated;
};
std::string encode(const ComponentAnswer& answer);
/// Throws InternalError on bytes that encode() did not write.
ComponentAnswer decode_answer(const std::string& bytes);

}  // namespace manyworlds::core::network
