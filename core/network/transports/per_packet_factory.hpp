// Factory of the per-packet engine for congestion-controlled senders, configured from the options of a transport.
#pragma once

#include <memory>
#include <utility>

#include "core/network/per_packet/congestion_controlled.hpp"
#include "core/network/per_packet/engine.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network::per_packet {

/// Returns the options of the network that a transport implies, for any endpoint.
NetworkOptions network_options(const Transport& transport);
/// Returns the options of the endpoint for congestion-controlled senders.
SenderOptions sender_options(const Transport& transport);

template <SenderProtocol P>
std::unique_ptr<PerPacketEngine> make_congestion_controlled(const Transport& transport,
                                                            const typename P::Parameters& parameters,
                                                            std::shared_ptr<ForwardingTables> forwarding) {
  return std::make_unique<EndpointEngine<CongestionControlled<P>>>(CongestionControlled<P>(
      network_options(transport), sender_options(transport), parameters, std::move(forwarding)));
}

}  // namespace manyworlds::core::network::per_packet
