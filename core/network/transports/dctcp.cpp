// The options and the registry entry of DCTCP.
#include "core/network/transports/dctcp.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

const OptionTable<Dctcp::Parameters>& Dctcp::options() {
  static const OptionTable<Parameters> table{
      option("gain_ppm", &Parameters::gain_ppm, "g: weight of the last round trip in the marked share", {1, 1'000'000},
             "ppm"),
      option("start_bytes", &Parameters::start_bytes, "first window of a transfer; 0: the largest one, as RDMA starts",
             {0, 1'099'511'627'776}, "bytes"),
      option("most_bytes", &Parameters::most_bytes, "largest window; 0: 1.5 bandwidth-delay products of the path",
             {0, 1'099'511'627'776}, "bytes"),
      option("slow_start", &Parameters::slow_start, "double a smaller first window each round trip until a mark"),
  };
  return table;
}

TransportType dctcp_transport() {
  return make_transport_type<Dctcp>(
      {.name = "dctcp",
       .help = "DCTCP on a lossless fabric: the window shrinks with the share of marked bytes",
       .marks = true});
}

}  // namespace manyworlds::core::network
