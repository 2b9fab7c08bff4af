// The registry entry of the static window.
#include "core/network/transports/static_window.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

StaticWindow::Parameters StaticWindow::parameters_from(const Transport& transport) {
  return {transport.window_bytes};
}

TransportType static_window_transport() {
  return make_transport_type<StaticWindow>(
      {.name = "static_window", .help = "a fixed number of bytes in flight per transfer", .window = true});
}

}  // namespace manyworlds::core::network
