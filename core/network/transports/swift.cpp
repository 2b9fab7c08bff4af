// The options and the registry entry of Swift.
#include "core/network/transports/swift.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

const OptionTable<Swift::Parameters>& Swift::options() {
  static const OptionTable<Parameters> table{
      option("base_target_ps", &Parameters::base_target_ps, "delay to aim at; 0: 1.5 unloaded round trips of the path",
             {0, 1e12}, "ps"),
      option("hop_ps", &Parameters::hop_ps, "topology scaling: added to the target per link of the path", {0, 1e9},
             "ps"),
      option("flow_scaling_ps", &Parameters::flow_scaling_ps,
             "flow scaling: most that is added to the target for small windows; 0: five base targets", {0, 1e12}, "ps"),
      option("scaling_least_ppm", &Parameters::scaling_least_ppm,
             "flow scaling: window, in millionths of a packet, at which all of it is added", {1'000, 1'000'000'000},
             "ppm"),
      option("scaling_most_ppm", &Parameters::scaling_most_ppm,
             "flow scaling: window, in millionths of a packet, from which on nothing is added; above scaling_least_ppm",
             {1'000, 10'000'000'000}, "ppm"),
      option("additive_ppm", &Parameters::additive_ppm, "additive increase per round trip, millionths of a packet",
             {1'000, 1'000'000'000}, "ppm"),
      option("decrease_ppm", &Parameters::decrease_ppm, "beta: share of the excess delay that the window loses",
             {1'000, 1'000'000}, "ppm"),
      option("most_decrease_ppm", &Parameters::most_decrease_ppm, "max_mdf: most that one decrease takes",
             {1'000, 999'000}, "ppm"),
      option("least_window_ppm", &Parameters::least_window_ppm, "least window, millionths of a packet",
             {100, 1'000'000}, "ppm"),
      option("most_bytes", &Parameters::most_bytes,
             "largest window, also the first; 0: 1.5 bandwidth-delay products of the path", {0, 1'099'511'627'776},
             "bytes"),
  };
  return table;
}

TransportType swift_transport() {
  return make_transport_type<Swift>({.name = "swift",
                                     .help = "Swift on a lossless fabric: the window follows a delay target",
                                     .fault = [](const Transport& transport) {
                                       const Swift::Parameters parameters =
                                           Swift::options().make(transport.kind_options);
                                       if (parameters.scaling_least_ppm < parameters.scaling_most_ppm)
                                         return std::string();
                                       return fmt::format("scaling_least_ppm ({}) must be below scaling_most_ppm ({})",
                                                          parameters.scaling_least_ppm, parameters.scaling_most_ppm);
                                     }});
}

}  // namespace manyworlds::core::network
