// The headroom check of lossless (PFC) fabrics.
#include "core/network/transports/pfc_headroom.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/network/transports/registry.hpp"

namespace manyworlds::core::network {

void check_pfc_headroom(const Graph& graph, const Transport& transport) {
  if (transport_type(transport).trims || transport.fabric == Fabric::lossy) return;
  const std::int64_t packet = transport.payload_bytes + transport.header_bytes;
  if (transport.pfc_xon_bytes > transport.pfc_xoff_bytes)
    throw InputError(fmt::format("transport.pfc_xon_bytes ({}) must not exceed transport.pfc_xoff_bytes ({})",
                                 transport.pfc_xon_bytes, transport.pfc_xoff_bytes));
  for (const Link& link : graph.links) {
    // Bytes that still arrive after XOFF: those of two link latencies, of the pause frame (ack_bytes), and of a packet
    // whose transmission had begun at each end.
    const auto in_flight = static_cast<std::int64_t>(static_cast<Int128>(link.bits_per_second) * 2 * link.latency_ps /
                                                     (8 * static_cast<Int128>(kSecond)));
    const std::int64_t needed = transport.pfc_xoff_bytes + in_flight + 3 * packet + transport.ack_bytes;
    if (transport.buffer_bytes < needed)
      throw InputError(
          fmt::format("transport.buffer_bytes ({}) cannot keep a {} Gb/s link lossless: at least {} is needed "
                      "for transport.pfc_xoff_bytes {} and what is on its way for two latencies of {:g} us",
                      transport.buffer_bytes, link.bits_per_second / 1'000'000'000, needed, transport.pfc_xoff_bytes,
                      1e6 * seconds(link.latency_ps)));
  }
}

}  // namespace manyworlds::core::network
