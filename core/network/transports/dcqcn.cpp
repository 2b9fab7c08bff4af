#include "core/network/transports/dcqcn.hpp"

#include "core/network/packet_engine_body.hpp"

namespace manyworlds::core::network {

TransportType dcqcn_transport() {
  return {.name = "dcqcn",
          .help = "DCQCN on a lossless (PFC) fabric: rates follow ECN marks",
          .marks = true,
          .make_engine = [](const Transport& transport) { return make_packet_engine<Dcqcn>(transport, {}); }};
}

}  // namespace manyworlds::core::network
