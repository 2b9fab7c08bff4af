// The options and the registry entry of EQDS, which is implemented in core/network/per_packet/eqds.hpp.
#include "core/network/per_packet/eqds.hpp"

#include <bit>

#include "core/network/transports/per_packet_factory.hpp"

namespace manyworlds::core::network {
namespace {

struct EqdsOptions {
  std::int64_t eqds_window_packets = 50;
  std::int64_t eqds_paths = 128;
  std::int64_t eqds_packets_per_ack = 4;
};

const OptionTable<EqdsOptions>& options() {
  static const OptionTable<EqdsOptions> table{
      option("eqds_window_packets", &EqdsOptions::eqds_window_packets,
             "packets a sender sends unasked, asks for beyond what was pulled, and is pulled beyond what it asked for",
             {1, 65'536}, "packets"),
      option("eqds_paths", &EqdsOptions::eqds_paths, "ways that a sender sprays over; a power of two", {1, 256}),
      option("eqds_packets_per_ack", &EqdsOptions::eqds_packets_per_ack, "packets that one acknowledgement covers",
             {1, 65'536}, "packets"),
  };
  return table;
}

std::string fault(const Transport& transport) {
  const std::int64_t paths = options().make(transport.kind_options).eqds_paths;
  if (std::has_single_bit(static_cast<std::uint64_t>(paths))) return {};
  return fmt::format("eqds_paths {}, which is no power of two", paths);
}

std::unique_ptr<per_packet::PerPacketEngine> make(const Transport& transport,
                                                  std::shared_ptr<ForwardingTables> forwarding) {
  if (const std::string wrong = fault(transport); !wrong.empty()) throw InputError("transport: " + wrong);
  const EqdsOptions given = options().make(transport.kind_options);
  per_packet::EqdsParameters parameters;
  parameters.payload_bytes = transport.payload_bytes;
  parameters.seed = static_cast<std::uint64_t>(transport.seed);
  parameters.window_packets = static_cast<std::uint32_t>(given.eqds_window_packets);
  parameters.paths = static_cast<std::uint32_t>(given.eqds_paths);
  parameters.packets_per_ack = static_cast<std::uint32_t>(given.eqds_packets_per_ack);
  return std::make_unique<per_packet::EndpointEngine<per_packet::Eqds>>(
      per_packet::Eqds(per_packet::network_options(transport), parameters, std::move(forwarding)));
}

}  // namespace

TransportType eqds_transport() {
  return {.name = "eqds",
          .help = "EQDS: receivers pull, senders spray, switches trim",
          .trims = true,
          .kind_options = options().infos(),
          .fault = fault,
          .make_per_packet = make};
}

}  // namespace manyworlds::core::network
