// What the functions of a configuration return, as far as literals and nested constructor calls tell. Nothing is
// executed: what any other code would give is unknown, with the reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/torchtitan/python_syntax.hpp"

namespace manyworlds::experiments::jobs::torchtitan {

enum class ValueKind : std::uint8_t { none, boolean, integer, real, text, list, object, unknown };

struct Value {
  ValueKind kind = ValueKind::none;
  std::string text;                     // of an object what was called: "Trainer.Config"; unknown: why
  std::int64_t integer = 0;             // and of true and false
  std::vector<Value> items;             // of a list, and of an object the arguments without names
  std::map<std::string, Value> fields;  // of an object: its arguments by name
  int line = 0;

  const Value* field(const std::string& name) const;
  bool is_object(const std::string& name) const { return kind == ValueKind::object && text == name; }
};

/// The functions of a file that take no argument without a default.
class PythonFile {
 public:
  /// Parses a file. Throws InputError for what is no Python.
  PythonFile(std::string_view source, std::string file);

  /// Returns the names of its functions that can be called without arguments, but for those that begin with '_'.
  std::vector<std::string> functions() const;
  /// Returns what a function returns. Throws InputError for a statement in it that is not followed.
  Value returned(const std::string& function) const;

 private:
  using Names = std::map<std::string, Value>;
  struct Budget;

  const Statement* find(const std::string& function) const;
  Value call(const Statement& function, Budget& budget) const;
  Value evaluate(const Expression& expression, const Names& names, Budget& budget) const;
  Value evaluate_call(const Expression& expression, const Names& names, Budget& budget) const;
  Value evaluate_binary(const Expression& expression, const Names& names, Budget& budget) const;
  void assign(const Expression& target, Value value, Names& names) const;
  [[noreturn]] void fail(int line, const std::string& what) const;

  std::string file_;
  std::vector<Statement> statements_;
  Names globals_;
};

}  // namespace manyworlds::experiments::jobs::torchtitan
