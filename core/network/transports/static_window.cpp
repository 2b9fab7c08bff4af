#include "core/network/transports/static_window.hpp"

#include "core/network/transports/in_both_engines.hpp"

namespace manyworlds::core::network {

StaticWindow::Parameters StaticWindow::of(const Transport& transport) {
  return {transport.window_bytes};
}

TransportType static_window_transport() {
  return in_both_engines<StaticWindow>(
      {.name = "static_window", .help = "a fixed number of bytes in flight per transfer", .window = true});
}

}  // namespace manyworlds::core::network
