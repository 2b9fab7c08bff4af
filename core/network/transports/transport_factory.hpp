// Builds the registry entry of a transport from its sender protocol: factories for the engine for pinned paths and for
// the per-packet engine.
#pragma once

#include <memory>
#include <utility>

#include "core/network/event_driven/packet_engine_body.hpp"
#include "core/network/transports/per_packet_factory.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

/// Returns the parameters of P for a transport: from a function of P that converts the transport if there is one, else
/// from the options of P, else the defaults.
template <SenderProtocol P>
typename P::Parameters parameters_of(const Transport& transport) {
  if constexpr (requires { P::parameters_from(transport); })
    return P::parameters_from(transport);
  else if constexpr (requires { P::options(); })
    return P::options().make(transport.kind_options);
  else
    return {};
}

template <SenderProtocol P>
std::unique_ptr<Engine> make_packet_engine(const Transport& transport, const typename P::Parameters& parameters) {
  return std::make_unique<PacketEngine<P>>(transport, parameters, transport_type(transport).marks);
}

/// Returns `type` with the factories for both engines and the options of P.
template <SenderProtocol P>
TransportType make_transport_type(TransportType type) {
  if constexpr (requires { P::options(); }) type.kind_options = P::options().infos();
  type.make_engine = [](const Transport& transport) {
    return make_packet_engine<P>(transport, parameters_of<P>(transport));
  };
  type.make_per_packet = [](const Transport& transport, std::shared_ptr<ForwardingTables> forwarding) {
    return per_packet::make_congestion_controlled<P>(transport, parameters_of<P>(transport), std::move(forwarding));
  };
  return type;
}

}  // namespace manyworlds::core::network
