// The options and the registry entry of NSCC.
#include "core/network/transports/nscc.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

const OptionTable<Nscc::Parameters>& Nscc::options() {
  static const OptionTable<Parameters> table{
      option("target_ps", &Parameters::target_ps,
             "queueing delay to aim at; 0: one unloaded round trip of the path, as for fabrics that do not trim",
             {0, 1e12}, "ps"),
      option("fast_delay_ps", &Parameters::fast_delay_ps, "below this queueing delay the increase may be fast",
             {0, 1e12}, "ps"),
      option("most_bytes", &Parameters::most_bytes,
             "largest window, also the first; 0: 1.5 bandwidth-delay products of the path", {0, 1'099'511'627'776},
             "bytes"),
      option("decrease_ppm", &Parameters::decrease_ppm, "gamma: share of the excess delay that the window loses",
             {1'000, 1'000'000}, "ppm"),
      option("delay_gain_ppm", &Parameters::delay_gain_ppm, "weight of a new delay in the average", {1'000, 1'000'000},
             "ppm"),
      option("quick_gate", &Parameters::quick_gate,
             "quick adapt needs less than the largest window over 2^this acknowledged in a period", {0, 20}),
  };
  return table;
}

TransportType nscc_transport() {
  return make_transport_type<Nscc>(
      {.name = "nscc",
       .help = "NSCC of Ultra Ethernet on a lossless fabric: marks and delay together move the window",
       .marks = true});
}

}  // namespace manyworlds::core::network
