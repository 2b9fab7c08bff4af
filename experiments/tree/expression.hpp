// The one language of conditions: `where` in a sweep, over its keys, and `--where`, over the columns of results; and of
// numbers, in tables of kernels. It is evaluated by muparserx.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/options.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments {

/// What a name in an expression stands for.
struct ExpressionName {
  std::string path;
  enum class Kind { boolean, number, text } kind = Kind::number;
  std::string unit;  // for numbers with a suffix: memory_peak_bytes < 80GiB
};

/// Names, numbers, texts, + - * / % ^ ( ), == != < <= > >=, and, or, true, false, min, max, abs, sqrt, log2,
/// floor, ceil. A text is in quotes; beside == or != of a name that is a text, the quotes may be left out.
class Expression {
 public:
  /// Returns the meaning of a name; throws InputError at `at` for one that does not exist.
  using Resolve = std::function<ExpressionName(const std::string& name, const import::Node& at)>;

  /// Parses the expression. Throws InputError at the node's line if it cannot be read or is not boolean.
  Expression(const import::Node& node, const Resolve& resolve);
  ~Expression();
  Expression(Expression&&) noexcept;

  /// Returns what the names stand for, in order of first occurrence.
  const std::vector<ExpressionName>& names() const;
  /// Returns the value for these values of names(). Throws InputError if it is not boolean.
  bool holds(const std::vector<core::OptionValue>& values) const;
  const std::string& text() const;
  /// Throws InputError that begins with the expression.
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same language for a number: "2 * blocks * argument_3". It need not have names.
class Formula {
 public:
  /// Parses the formula. Throws InputError at the node's line if it cannot be read or is no number.
  Formula(const import::Node& node, const Expression::Resolve& resolve);
  ~Formula();
  Formula(Formula&&) noexcept;

  /// Returns what the names stand for, in order of first occurrence.
  const std::vector<ExpressionName>& names() const;
  /// Returns the value for these values of names(). Throws InputError if it is no number.
  double value(const std::vector<double>& values) const;
  /// Throws InputError that begins with the formula.
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace manyworlds::experiments
