// The words of Python source: names, numbers, texts, operators, and where blocks begin and end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::jobs::torchtitan {

enum class TokenKind : std::uint8_t { name, number, text, formatted, symbol, line_end, indent, dedent, end };

struct Token {
  TokenKind kind;
  std::string text;  // of a text what it says, without quotes and escapes
  int line = 0;
};

/// Throws InputError for a text that does not end, for brackets that do not match and for blocks that do not fit.
std::vector<Token> python_tokens(std::string_view source, const std::string& file);

}  // namespace manyworlds::experiments::jobs::torchtitan
