// The choice between the time-sliced and the event-driven engine.
#pragma once

#include <memory>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

/// Returns the time-sliced engine (core/network/time_sliced) if it supports the protocol of the transport, else
/// make_engine(). Both give the same results; the time-sliced one is meant for long simulations.
std::unique_ptr<Engine> make_long_run_engine(const Transport& transport);

}  // namespace manyworlds::core::network
