// The options and the registry entry of TIMELY.
#include "core/network/transports/timely.hpp"

#include "core/network/transports/transport_factory.hpp"

namespace manyworlds::core::network {

const OptionTable<Timely::Parameters>& Timely::options() {
  static const OptionTable<Parameters> table{
      choice("variant", &Parameters::variant, {"patched", "original"},
             "patched: has one fixed point, where flows share alike; original: as first published"),
      option("low_ps", &Parameters::low_ps,
             "T_low: below this round trip the rate grows; 0: 1.5 unloaded round trips of the path", {0, 1e12}, "ps"),
      option(
          "high_ps", &Parameters::high_ps,
          "T_high: above this round trip it falls whatever the gradient; 0: 5 unloaded round trips; never below T_low",
          {0, 1e12}, "ps"),
      option("gain_ppm", &Parameters::gain_ppm, "alpha: weight of a new difference of round trips", {1, 1'000'000},
             "ppm"),
      option("decrease_ppm", &Parameters::decrease_ppm, "beta: multiplicative decrease", {1, 1'000'000}, "ppm"),
      option("patched_ppm", &Parameters::patched_ppm, "beta of the patched form between T_low and T_high",
             {1, 1'000'000}, "ppm"),
      option("additive_bps", &Parameters::additive_bps, "delta: additive increase; 0: a thousandth of the line rate",
             {0, 1e12}, "b/s"),
      option("segment_bytes", &Parameters::segment_bytes, "one decision per so many bytes acknowledged",
             {1, 1'073'741'824}, "bytes"),
  };
  return table;
}

TransportType timely_transport() {
  return make_transport_type<Timely>(
      {.name = "timely",
       .help = "TIMELY on a lossless fabric: rates follow the gradient of the round trip time",
       .fault = [](const Transport& transport) {
         const Timely::Parameters parameters = Timely::options().make(transport.kind_options);
         if (parameters.high_ps == 0 || parameters.low_ps <= parameters.high_ps) return std::string();
         return fmt::format("low_ps ({}) must be at most high_ps ({})", parameters.low_ps, parameters.high_ps);
       }});
}

}  // namespace manyworlds::core::network
