// A protocol as a transport: on the engine for pinned paths and on the one for packets as individuals.
#pragma once

#include <memory>
#include <utility>

#include "core/network/event_driven/packet_engine_body.hpp"
#include "core/network/transports/make_managed.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

/// What a transport asks of P: P::of(transport) if it has that, else P's own options, else nothing.
template <Protocol P>
typename P::Parameters parameters_of(const Transport& transport) {
  if constexpr (requires { P::of(transport); })
    return P::of(transport);
  else if constexpr (requires { P::options(); })
    return P::options().make(transport.own);
  else
    return {};
}

template <Protocol P>
std::unique_ptr<Engine> make_packet_engine(const Transport& transport, const typename P::Parameters& parameters) {
  return std::make_unique<PacketEngine<P>>(transport, parameters, transport_type(transport).marks);
}

/// `type` with P in both engines, and with P's own options.
template <Protocol P>
TransportType in_both_engines(TransportType type) {
  if constexpr (requires { P::options(); }) type.own = P::options().infos();
  type.make_engine = [](const Transport& transport) {
    return make_packet_engine<P>(transport, parameters_of<P>(transport));
  };
  type.make_individual = [](const Transport& transport, std::shared_ptr<Forwarding> forwarding) {
    return individual::make_managed<P>(transport, parameters_of<P>(transport), std::move(forwarding));
  };
  return type;
}

}  // namespace manyworlds::core::network
