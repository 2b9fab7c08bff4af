// One `where` of a sweep: an expression over dotted keys that a combination must meet, evaluated by muparserx.
#pragma once

#include <memory>
#include <string>

#include "experiments/config/world.hpp"
#include "experiments/text/yaml.hpp"

namespace manyworlds::experiments {

/// Keys are those of `base`; `model`, `cluster` and `cluster.gpu` stand for their names, `topology` and `transport` for
/// the chosen component, `cluster.gpus` and `strategy.dp` for what follows. Texts stand in double quotes.
class Constraint {
 public:
  /// Parses; throws InputError at the node's line, also for a key that does not exist.
  explicit Constraint(const import::Node& node);
  ~Constraint();
  Constraint(Constraint&&) noexcept;

  /// Throws InputError where the expression is no truth value, or names an option this world does not have.
  bool holds(const Settings& settings) const;
  const std::string& text() const;

 private:
  struct Expression;
  std::unique_ptr<Expression> expression_;
};

}  // namespace manyworlds::experiments
