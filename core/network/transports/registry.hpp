// The registry of transports: an explicit list. A new transport is a new file and a line in registry.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

namespace per_packet {
class PerPacketEngine;
}
class ForwardingTables;

struct TransportType {
  std::string name;
  std::string help;
  bool window = false;                     // uses transport.window_bytes
  bool marks = false;                      // uses ECN marks and thus the ecn_ options
  bool trims = false;                      // runs on ports that trim, and chooses paths and acknowledgements itself
  std::vector<OptionInfo> kind_options{};  // options of this transport only
  /// Returns what is wrong with a combination of options that are each in range; "" if nothing is.
  std::string (*fault)(const Transport& transport) = [](const Transport&) { return std::string(); };
  /// Makes the engine for pinned paths, lossless fabrics and coalesced acknowledgements; null if the transport has
  /// none.
  std::unique_ptr<Engine> (*make_engine)(const Transport& transport) = nullptr;
  /// Makes the per-packet engine.
  std::unique_ptr<per_packet::PerPacketEngine> (*make_per_packet)(
      const Transport& transport, std::shared_ptr<ForwardingTables> forwarding) = nullptr;
};

/// Returns all transports, in the order in which `manyworlds list` shows them.
const std::vector<TransportType>& transports();
/// Returns the entry of transport.kind, which must exist.
const TransportType& transport_type(const Transport& transport);

/// Returns, as text, the feature of a transport that only the per-packet engine supports (routing per packet, loss,
/// trimming, in-band acknowledgements); "" if it has none.
std::string per_packet_reason(const Transport& transport);
bool needs_per_packet(const Transport& transport);
/// Returns how packets choose their paths: by spraying if the transport trims, as its options say otherwise.
Routing routing_of(const Transport& transport);
/// Returns whether a transfer may take several paths.
inline bool spreads(const Transport& transport) {
  return routing_of(transport) > Routing::ecmp_hash;
}

/// Returns the engine for pinned paths. Throws core::InputError for a transport that needs the per-packet engine.
std::unique_ptr<Engine> make_engine(const Transport& transport);

/// Returns the options that affect a kind of transport: those of transport_options() that it uses and its own. All
/// others are rejected as unknown, because an option without effect would be silently ignored.
std::vector<OptionInfo> options_of(const TransportType& type);

/// Returns the values of these options for a transport, defaults included. They determine the behaviour of the
/// transport completely.
OptionSet options_of(const Transport& transport);

}  // namespace manyworlds::core::network
