// The registry entry of DCQCN.
#include "core/network/transports/dcqcn.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

TransportType dcqcn_transport() {
  return make_transport_type<Dcqcn>(
      {.name = "dcqcn", .help = "DCQCN on a lossless (PFC) fabric: rates follow ECN marks", .marks = true});
}

}  // namespace manyworlds::core::network
