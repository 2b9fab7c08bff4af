// Escaping of text for terminals, shells, CSV, HTML and Markdown.
#include "core/base/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/number_in.hpp"
#include "core/base/utf8.hpp"

namespace manyworlds::core {
namespace {

enum class LineEndPolicy : std::uint8_t { keep, escape };

/// Returns whether the character must be escaped: a control character, a bidirectional formatting character, a Unicode
/// line separator or invalid UTF-8, which an output device would interpret or hide instead of showing it.
bool needs_escape(char32_t code, LineEndPolicy line_ends) {
  if (code == '\n' || code == '\t') return line_ends == LineEndPolicy::escape;
  const bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || direction || code == 0x2028 || code == 0x2029 || code == kInvalidUtf8;
}

/// Calls `escaped(bytes, code)` for each character of `text` that must be escaped and `plain(bytes)` for each run of
/// ordinary characters between them, in order.
template <class Plain, class Escaped>
void for_each_run(std::string_view text, LineEndPolicy line_ends, Plain plain, Escaped escaped) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x7F) {
      ++at;
      continue;
    }
    const auto [length, code] = utf8_at(text, at);
    const bool line_end = line_ends == LineEndPolicy::keep && text.substr(at, 2) == "\r\n";
    if (needs_escape(code, line_ends) && !line_end) {
      plain(text.substr(begin, at - begin));
      escaped(text.substr(at, length), code);
      begin = at + length;
    }
    at += length;
  }
  plain(text.substr(begin));
}

std::string printable(std::string_view text, LineEndPolicy line_ends) {
  std::string result;
  const auto append_escape = [&](std::string_view bytes, char32_t code) {
    result += code == kInvalidUtf8 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]))
                                   : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
  };
  for_each_run(
      text, line_ends, [&](std::string_view bytes) { result += bytes; }, append_escape);
  return result;
}

/// Returns whether a shell reads the word unchanged without quotation marks. A leading = is excluded because zsh
/// replaces =name by the path of a command.
bool is_bare_word(std::string_view word) {
  constexpr std::string_view kSafe = "_-./:=,+@%0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return !word.empty() && word.front() != '=' && word.find_first_not_of(kSafe) == std::string_view::npos;
}

/// Returns the word as $'…'. Bytes are written as octal escapes because these mean the same in every locale; ! is
/// escaped because shells with history expansion interpret it here too.
std::string dollar_quoted(std::string_view word) {
  std::string result = "$'";
  const auto octal = [&](std::string_view bytes) {
    for (const char byte : bytes) result += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  };
  const auto plain = [&](std::string_view bytes) {
    for (const char& byte : bytes) {
      if (byte == '\'' || byte == '\\' || byte == '!')
        octal({&byte, 1});
      else
        result += byte;
    }
  };
  for_each_run(word, LineEndPolicy::escape, plain, [&](std::string_view bytes, char32_t) { octal(bytes); });
  return result + "'";
}

bool is_number(std::string_view text) {
  const auto value = number_in<double>(text);
  return value && std::isfinite(*value);
}

/// Returns whether a spreadsheet would interpret the text as a formula, any leading apostrophes ignored.
bool looks_like_formula(std::string_view text) {
  const std::size_t begin = text.find_first_not_of('\'');
  return begin != std::string_view::npos && std::string_view("=+-@\t").find(text[begin]) != std::string_view::npos;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return printable(text, LineEndPolicy::keep);
}

std::string line_text(std::string_view text) {
  return printable(text, LineEndPolicy::escape);
}

std::string shell_quoted(std::string_view word) {
  if (is_bare_word(word)) return std::string(word);
  if (line_text(word) != word) return dollar_quoted(word);
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::string as_operand(const std::string& path) {
  return path.starts_with('-') ? "./" + path : path;
}

std::string csv_field(std::string_view text) {
  const bool guarded = looks_like_formula(text) && !is_number(text);
  const std::string field = (guarded ? "'" : "") + terminal_text(text);
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

std::string_view csv_text(std::string_view field) {
  return field.starts_with('\'') && looks_like_formula(field) ? field.substr(1) : field;
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : terminal_text(text)) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string escape_markdown(std::string_view text) {
  const std::string printable = terminal_text(text);
  const auto makes_link = [&](std::size_t at) {
    const std::string_view rest = std::string_view(printable).substr(at);
    return rest.starts_with("://") || (rest.starts_with('.') && at >= 3 && printable.compare(at - 3, 3, "www") == 0);
  };
  std::string safe;
  for (std::size_t at = 0; at < printable.size(); ++at) {
    const char c = printable[at];
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '\n' || c == '\r') {
      safe += ' ';
    } else {
      if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos || makes_link(at)) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

}  // namespace manyworlds::core
