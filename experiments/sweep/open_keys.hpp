// Keys that a search may leave open: a lower bound holds whatever values they have, so that one look at a layout
// discards, or keeps, all that differ in these alone.
#pragma once

#include <optional>
#include <string>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

struct Factor;

/// Families of keys that are open together.
struct OpenKeys {
  bool network = false;    // the transport, of which no bound knows
  bool replicas = false;   // what replicas do together: ZeRO, its groups and buckets, the gradients' precision
  bool recompute = false;  // what is recomputed in the backward pass

  bool any() const { return network || replicas || recompute; }
  /// Returns whether a key belongs to an open family.
  bool has(const std::string& path) const;
  /// Sets the keys of open families that rules or a lower bound look at to values that forbid nothing and take no
  /// longer than any other: no ZeRO, no recomputation.
  void make_neutral(Settings& settings) const;
  OpenKeys& operator|=(const OpenKeys& other);
};

/// Returns the families of a factor's keys; nullopt if some key is of none, so that it has to be chosen.
std::optional<OpenKeys> open_keys_of(const Factor& factor);

}  // namespace manyworlds::experiments
