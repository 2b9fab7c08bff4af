// The options and the registry entry of HPCC.
#include "core/network/transports/hpcc.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

const OptionTable<Hpcc::Parameters>& Hpcc::options() {
  static const OptionTable<Parameters> table{
      option("utilisation_ppm", &Parameters::utilisation_ppm, "eta: how full the fullest link should be",
             {100'000, 999'999}, "ppm"),
      option("most_stages", &Parameters::most_stages,
             "maxStage: round trips of additive increase until a multiplicative step", {0, 1'000}),
      option("expected_flows", &Parameters::expected_flows,
             "N: flows that may share a link; each adds W_init (1 - eta) / N per round trip", {1, 1'000'000}),
  };
  return table;
}

namespace {

/// A sender compares what the n-th link of its path says with what it said before (section 3.2 of the paper), which
/// must be the same link.
std::string fault_of(const Transport& transport) {
  return spreads(transport) ? "hpcc compares the counters of the links of one path; routing must be destination_mod_k "
                              "or ecmp_hash"
                            : "";
}

}  // namespace

TransportType hpcc_transport() {
  return make_transport_type<Hpcc>({.name = "hpcc",
                                    .help = "HPCC on a lossless fabric: windows follow what every link tells of itself",
                                    .fault = fault_of});
}

}  // namespace manyworlds::core::network
