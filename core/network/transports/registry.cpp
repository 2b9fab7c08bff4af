// The list of transports, one line each.
#include "core/network/transports/registry.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::network {

// clang-format off
#define MANYWORLDS_TRANSPORTS(entry) \
  entry(static_window)               \
  entry(dcqcn)                       \
  entry(dctcp)                       \
  entry(eqds)                        \
  entry(hpcc)                        \
  entry(nscc)                        \
  entry(swift)                       \
  entry(timely)
// clang-format on

#define MANYWORLDS_DECLARE(name) TransportType name##_transport();
MANYWORLDS_TRANSPORTS(MANYWORLDS_DECLARE)

const std::vector<TransportType>& transports() {
#define MANYWORLDS_CALL(name) name##_transport(),
  static const std::vector<TransportType> all{MANYWORLDS_TRANSPORTS(MANYWORLDS_CALL)};
  return all;
}

const TransportType& transport_type(const Transport& transport) {
  for (const TransportType& type : transports())
    if (type.name == transport.kind) return type;
  MANYWORLDS_CHECK(false, "no transport '{}'", transport.kind);
}

std::string per_packet_reason(const Transport& transport) {
  if (transport_type(transport).trims) return transport.kind + " sprays, and its switches trim";
  if (transport.acks == Acks::in_band) return "acks in_band";
  if (transport.fabric == Fabric::lossy) return "fabric lossy";
  return transport.routing > Routing::ecmp_hash ? "routing is by packet" : "";
}

bool needs_per_packet(const Transport& transport) {
  return !per_packet_reason(transport).empty();
}

Routing routing_of(const Transport& transport) {
  return transport_type(transport).trims ? Routing::spray : transport.routing;
}

std::unique_ptr<Engine> make_engine(const Transport& transport) {
  if (needs_per_packet(transport))
    throw InputError(
        "transport: the engine for pinned paths takes routing destination_mod_k or ecmp_hash, acks coalesced and "
        "fabric "
        "lossless; the per-packet engine takes the others too");
  return transport_type(transport).make_engine(transport);
}

std::vector<OptionInfo> options_of(const TransportType& type) {
  std::vector<OptionInfo> infos;
  for (const OptionInfo& info : transport_options().infos()) {
    if (info.name == "window_bytes" && !type.window) continue;
    if (info.name.starts_with("ecn_") && !type.marks) continue;
    const bool of_fabric = info.name.starts_with("pfc_") || info.name == "buffer_bytes" || info.name == "routing" ||
                           info.name == "acks" || info.name == "fabric" || info.name.starts_with("ecmp_");
    if (of_fabric && type.trims) continue;
    infos.push_back(info);
  }
  infos.insert(infos.end(), type.kind_options.begin(), type.kind_options.end());
  return infos;
}

OptionSet options_of(const Transport& transport) {
  const OptionSet common = transport_options().read(transport);
  OptionSet values;
  for (const OptionInfo& info : options_of(transport_type(transport))) {
    const auto kind_options = transport.kind_options.find(info.name);
    const auto shared = common.find(info.name);
    values[info.name] = shared != common.end()                         ? shared->second
                        : kind_options != transport.kind_options.end() ? kind_options->second
                                                                       : info.default_value;
  }
  return values;
}

}  // namespace manyworlds::core::network
