// Which layouts exist at all: one table of rules. A single experiment that breaks one is refused; in a sweep the
// combination is left out and kept with the rule's name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/graphs.hpp"
#include "experiments/world.hpp"

namespace manyworlds::experiments {

/// What an experiment is read for: whole training steps, or the network by itself.
enum class Scope : std::uint8_t { step, network };

struct Rule {
  std::string name;
  std::string reason;  // what would be right, in general
  std::string key;     // the setting that a message points at
  /// The values that break the rule, or nothing. Rules run in order: each may rely on those before it.
  std::function<std::optional<std::string>(const World&, GraphCache&)> check;
  bool steps_only = false;  // the network by itself can do without
};

const std::vector<Rule>& rules();

struct Violation {
  std::string rule, key, reason;  // reason: the rule's, and the values that broke it
};

/// The first rule that `world` breaks.
std::optional<Violation> find_violation(const World& world, GraphCache& graphs, Scope scope = Scope::step);

}  // namespace manyworlds::experiments
