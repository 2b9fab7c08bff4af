#include "core/network/transports/static_window.hpp"

#include "core/network/individual/make_managed.hpp"
#include "core/network/packet_engine_body.hpp"

namespace manyworlds::core::network {

TransportType static_window_transport() {
  return {.name = "static_window",
          .help = "a fixed number of bytes in flight per transfer",
          .window = true,
          .make_engine =
              [](const Transport& transport) {
                return make_packet_engine<StaticWindow>(transport, {transport.window_bytes});
              },
          .make_individual =
              [](const Transport& transport, std::shared_ptr<Forwarding> forwarding) {
                return individual::make_managed<StaticWindow>(transport, {transport.window_bytes},
                                                              std::move(forwarding));
              }};
}

}  // namespace manyworlds::core::network
