// The table of options that all transports share.
#include "core/network/fabric/transport.hpp"

namespace manyworlds::core::network {

const std::vector<std::string>& fidelity_names() {
  static const std::vector<std::string> names{"packet", "analytic", "fluid"};
  return names;
}

const OptionTable<Transport>& transport_options() {
  static const OptionTable<Transport> table{
      choice("routing", &Transport::routing, {"destination_mod_k", "ecmp_hash", "spray", "adaptive", "flowlet"},
             "how a packet's path is chosen: one for a transfer, or anew for every packet or burst"),
      choice("ecmp_hash_seeds", &Transport::ecmp_hash_seeds, {"per_hop", "per_switch", "same"},
             "routing ecmp_hash: the seeds of switches' hash functions; same: one function everywhere, so that tiers "
             "decide alike (hash polarisation)"),
      choice("ecmp_weights", &Transport::ecmp_weights, {"equal", "rate"},
             "routing ecmp_hash: next hops are equally likely, or by the rate that they lead on with (WCMP)"),
      choice("acks", &Transport::acks, {"coalesced", "in_band"},
             "acknowledgements as delay, or as packets of their own"),
      choice("fabric", &Transport::fabric, {"lossless", "lossy"}, "full queues pause their senders (PFC), or drop"),
      option("queue_bytes", &Transport::queue_bytes, "queue of a port that drops or trims", {128, 1'099'511'627'776},
             "bytes"),
      option("payload_bytes", &Transport::payload_bytes, "payload of a full packet", {64, 65'536}, "bytes"),
      option("header_bytes", &Transport::header_bytes, "headers of a packet", {0, 1'024}, "bytes"),
      option("ack_bytes", &Transport::ack_bytes, "an acknowledgement; coalesced, it delays and occupies no link",
             {0, 1'024}, "bytes"),
      option("window_bytes", &Transport::window_bytes, "static window: bytes in flight of one transfer",
             {64, 1'099'511'627'776}, "bytes"),
      option("pfc_xoff_bytes", &Transport::pfc_xoff_bytes, "an ingress queue above this pauses its sender",
             {1, 1'099'511'627'776}, "bytes"),
      option("pfc_xon_bytes", &Transport::pfc_xon_bytes, "an ingress queue at or below this lets its sender go on",
             {0, 1'099'511'627'776}, "bytes"),
      option("buffer_bytes", &Transport::buffer_bytes, "buffer of one ingress link; holds xoff and the headroom",
             {64, 1'099'511'627'776}, "bytes"),
      option("ecn_kmin_bytes", &Transport::ecn_kmin_bytes,
             "marking begins at this egress queue, at 100 Gb/s (scales with the link rate)", {0, 1'099'511'627'776},
             "bytes"),
      option("ecn_kmax_bytes", &Transport::ecn_kmax_bytes,
             "every packet is marked above this egress queue, at 100 Gb/s", {1, 1'099'511'627'776}, "bytes"),
      option("ecn_pmax_ppm", &Transport::ecn_pmax_ppm, "share of packets marked at kmax, parts per million",
             {0, 1'000'000}, "ppm"),
      option("seed", &Transport::seed, "seed of hashed decisions", {0, 9'007'199'254'740'992}),
  };
  return table;
}

}  // namespace manyworlds::core::network
