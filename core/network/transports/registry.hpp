// The transports we know, as one explicit list. Adding one is a new file and a line in registry.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/network/engine/engine.hpp"

namespace manyworlds::core::network {

namespace individual {
class IndividualEngine;
}
class Forwarding;

struct TransportType {
  std::string name;
  std::string help;
  bool window = false;            // transport.window_bytes means something to it
  bool marks = false;             // and so do the ecn_ options
  bool trims = false;             // it runs on ports that trim, and chooses paths and acknowledgements itself
  std::vector<OptionInfo> own{};  // options that only it has
  /// What is wrong between options that are each in range; "" if nothing is.
  std::string (*fault)(const Transport& transport) = [](const Transport&) { return std::string(); };
  /// For paths that are pinned, on a lossless fabric, with coalesced acknowledgements; null if it has none of that.
  std::unique_ptr<Engine> (*make_engine)(const Transport& transport) = nullptr;
  /// For packets that are individuals.
  std::unique_ptr<individual::IndividualEngine> (*make_individual)(const Transport& transport,
                                                                   std::shared_ptr<Forwarding> forwarding) = nullptr;
};

/// In the order in which `manyworlds list` shows them.
const std::vector<TransportType>& transports();
const TransportType& transport_type(const Transport& transport);

/// What a transport asks for that only packets as individuals can do (paths chosen on the way, loss, trimming,
/// acknowledgements in band), in words; "" where it asks for none of that.
std::string why_individuals(const Transport& transport);
bool needs_individuals(const Transport& transport);

/// The engine for pinned paths. Throws core::InputError for a transport that needs individuals.
std::unique_ptr<Engine> make_engine(const Transport& transport);

/// The options of transport_options() and its own that mean something to a kind: one without effect would be silently
/// ignored.
std::vector<OptionInfo> options_of(const TransportType& type);

/// What the options of a kind are for this transport, defaults filled in: all that its kind makes of it.
OptionSet options_of(const Transport& transport);

}  // namespace manyworlds::core::network
