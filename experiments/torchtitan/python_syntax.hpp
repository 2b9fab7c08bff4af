// Python source as a tree of statements and expressions, of as much as configurations are written in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::jobs::torchtitan {

enum class ExpressionKind : std::uint8_t {
  number,
  text,
  name,
  constant,   // True, False, None
  list,       // also a tuple or a set
  mapping,    // parts are key, value, key, value, …
  call,       // parts are what is called and its arguments; `keywords` has the name of each argument, or ""
  attribute,  // text of parts[0]
  binary,     // parts[0] text parts[1]; and, or, comparisons, "in", "not in", "is", "is not" too
  unary,      // text parts[0]
  other,      // what is not followed; text says what it is
};

struct Expression {
  ExpressionKind kind = ExpressionKind::other;
  std::string text;
  std::vector<Expression> parts;
  std::vector<std::string> keywords;
  int line = 0;
};

enum class StatementKind : std::uint8_t { assignment, evaluation, returned, function, ignored, other };

struct Statement {
  StatementKind kind = StatementKind::ignored;
  std::string text;          // of a function its name; of others what the statement is
  Expression target, value;  // of an assignment; value of an evaluation and of what is returned
  std::vector<std::string> parameters;
  std::vector<Expression> defaults;  // of the last parameters
  std::vector<Statement> body;
  int line = 0;
};

/// Parses a file. Throws InputError for what is no Python.
std::vector<Statement> parse_python(std::string_view source, const std::string& file);

}  // namespace manyworlds::experiments::jobs::torchtitan
