// The options of the per-packet engine that follow from a transport.
#include "core/network/transports/per_packet_factory.hpp"

namespace manyworlds::core::network::per_packet {

NetworkOptions network_options(const Transport& transport) {
  const TransportType& type = transport_type(transport);
  NetworkOptions options;
  options.ports = type.trims                          ? PortKind::trimming
                  : transport.fabric == Fabric::lossy ? PortKind::drop_tail
                                                      : PortKind::lossless;
  options.steering = type.trims                                                                     ? Steering::hashed
                     : transport.routing == Routing::adaptive                                       ? Steering::adaptive
                     : transport.routing == Routing::spray || transport.routing == Routing::flowlet ? Steering::hashed
                                                                                                    : Steering::pinned;
  options.marks = type.marks;
  options.full_packet_bytes = transport.payload_bytes + transport.header_bytes;
  options.control_bytes = transport.ack_bytes;
  options.queue_bytes = transport.queue_bytes;
  options.pfc_xoff_bytes = transport.pfc_xoff_bytes;
  options.pfc_xon_bytes = transport.pfc_xon_bytes;
  options.buffer_bytes = transport.buffer_bytes;
  options.ecn_kmin_bytes = transport.ecn_kmin_bytes;
  options.ecn_kmax_bytes = transport.ecn_kmax_bytes;
  options.ecn_pmax_ppm = transport.ecn_pmax_ppm;
  return options;
}

SenderOptions sender_options(const Transport& transport) {
  SenderOptions options;
  options.payload_bytes = transport.payload_bytes;
  options.seed = static_cast<std::uint64_t>(transport.seed);
  options.scale_up_window_bytes = transport.window_bytes;
  options.acks_in_band = transport.acks == Acks::in_band;
  options.path_granularity =
      transport.routing == Routing::flowlet ? PathGranularity::per_flowlet : PathGranularity::per_packet;
  options.reordering_packets = network_options(transport).steering == Steering::pinned ? 3 : 64;
  return options;
}

}  // namespace manyworlds::core::network::per_packet
