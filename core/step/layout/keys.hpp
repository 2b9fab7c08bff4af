// What keys have of transports, options and the shapes of collectives.
#pragma once

#include "core/base/options.hpp"
#include "core/collective/dag/dag.hpp"
#include "core/network/fabric/transport.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::core::step {

/// Writes what of a transport has an effect.
void write_transport(sharing::KeyWriter& writer, const network::Transport& transport);
/// Writes names and values of options.
void write_options(sharing::KeyWriter& writer, const OptionSet& values);
/// Writes all of a shape.
void write_shape(sharing::KeyWriter& writer, const collective::Shape& shape);

/// Returns the key of write_transport(), for use in many keys on one transport.
sharing::Key transport_key(const network::Transport& transport);

/// Returns the key of an isolated collective, entered by all members at once, of a shape on connections with a route
/// signature.
sharing::Key collective_key(const collective::Shape& shape, const sharing::Key& route_signature,
                            const sharing::Key& transport);

}  // namespace manyworlds::core::step
