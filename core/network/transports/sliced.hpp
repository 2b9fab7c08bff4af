// Engines for problems that go on for long.
#pragma once

#include <memory>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

/// As make_engine(), but in slices of time where the transport's protocol allows (sliced_engine.hpp). No answer depends
/// on which it is.
std::unique_ptr<Engine> make_running_engine(const Transport& transport);

}  // namespace manyworlds::core::network
