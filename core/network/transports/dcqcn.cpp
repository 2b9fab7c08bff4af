#include "core/network/transports/dcqcn.hpp"

#include "core/network/transports/in_both_engines.hpp"

namespace manyworlds::core::network {

TransportType dcqcn_transport() {
  return in_both_engines<Dcqcn>(
      {.name = "dcqcn", .help = "DCQCN on a lossless (PFC) fabric: rates follow ECN marks", .marks = true});
}

}  // namespace manyworlds::core::network
