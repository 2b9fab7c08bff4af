// A protocol of protocol.hpp on the second engine, as a transport's options ask for it.
#pragma once

#include <memory>
#include <utility>

#include "core/network/per_packet/engine.hpp"
#include "core/network/per_packet/managed.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network::individual {

/// What all endpoints make of a transport.
NetworkOptions network_options(const Transport& transport);
ManagedOptions managed_options(const Transport& transport);

template <Protocol P>
std::unique_ptr<IndividualEngine> make_managed(const Transport& transport, const typename P::Parameters& parameters,
                                               std::shared_ptr<Forwarding> forwarding) {
  return std::make_unique<EngineOf<Managed<P>>>(
      Managed<P>(network_options(transport), managed_options(transport), parameters, std::move(forwarding)));
}

}  // namespace manyworlds::core::network::individual
