// Keys that a search may leave open: a lower bound holds whatever values they have, so that one look at a layout
// discards, or keeps, all that differ in these alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment_config.hpp"

namespace manyworlds::experiments {

struct Factor;

/// Keys that are open, by families.
struct OpenKeys {
  bool network = false;    // some of the transport, of which no bound knows
  bool replicas = false;   // some of what replicas do together: ZeRO, its groups and buckets, the gradients' precision
  bool recompute = false;  // some of what is recomputed in the backward pass
  bool stage_layers = false, stage_recompute = false;  // the layers of each stage, and those of them that recompute
  // Of these, keys on which it depends whether a layout fits.
  bool zero_stage = false, zero_group = false, gradient_bits = false;
  bool recompute_kind = false, recompute_layers = false, recompute_stages = false;

  bool any() const { return network || replicas || recompute || stages(); }
  /// Whether something is chosen for each stage (core/step/estimate/best_stages.hpp).
  bool stages() const { return stage_layers || stage_recompute; }
  /// Returns whether a key belongs to a family of which some key is open.
  bool has(const std::string& path) const;
  /// Sets open keys, and those that depend on them, to values that forbid nothing and take no longer than any other: no
  /// ZeRO if its stage is open, as little recomputation as the chosen kind allows, layers on any stages.
  void make_neutral(Settings& settings) const;
  OpenKeys& operator|=(const OpenKeys& other);
};

/// Returns a list of numbers as a setting has it, such as 3+5.
std::string list_text(const std::vector<std::int64_t>& list);

/// Returns the families of a factor's keys; nullopt if some key is of none, so that it has to be chosen.
std::optional<OpenKeys> open_keys_of(const Factor& factor);

}  // namespace manyworlds::experiments
