// One `where` of a sweep: an expression over dotted keys that a combination must satisfy.
#pragma once

#include <string>

#include "experiments/axes/open_keys.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/tree/expression.hpp"

namespace manyworlds::experiments {

/// Keys are those of `base`. `model`, `cluster` and `cluster.gpu` are their names, `topology` and `transport` the
/// chosen component; `cluster.gpus` and `strategy.dp` are derived.
class Constraint {
 public:
  /// Parses the expression. Throws InputError at the node's line, also for a key that does not exist.
  explicit Constraint(const import::Node& node);

  /// Returns whether the settings satisfy the expression. Throws InputError if it is not boolean, or names an option
  /// that these settings do not have.
  bool holds(const Settings& settings) const;
  /// Returns whether it names an open key.
  bool depends_on(const OpenKeys& open) const;
  const std::string& text() const { return expression_.text(); }

 private:
  Expression expression_;
};

}  // namespace manyworlds::experiments
