#include "core/network/transports/dcqcn.hpp"

#include "core/network/individual/make_managed.hpp"
#include "core/network/packet_engine_body.hpp"

namespace manyworlds::core::network {

TransportType dcqcn_transport() {
  return {.name = "dcqcn",
          .help = "DCQCN on a lossless (PFC) fabric: rates follow ECN marks",
          .marks = true,
          .make_engine = [](const Transport& transport) { return make_packet_engine<Dcqcn>(transport, {}); },
          .make_individual =
              [](const Transport& transport, std::shared_ptr<Forwarding> forwarding) {
                return individual::make_managed<Dcqcn>(transport, {}, std::move(forwarding));
              }};
}

}  // namespace manyworlds::core::network
