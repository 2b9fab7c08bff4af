#include "experiments/text/json_syntax.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <vector>

namespace manyworlds::experiments::import {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
}

/// Goes through a text as a parser would, with the brackets that are open.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<JsonFault> scan() {
    value();
    while (!fault_ && !open_.empty()) next_in_bracket();
    skip_blanks();
    if (!fault_ && !at_end()) fail(fmt::format("the document ends before {}: leave one of them out", here()));
    return fault_;
  }

 private:
  struct Bracket {
    char kind = '[';
    std::size_t at = 0;
    bool has_items = false;
  };

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (!at_end() && is_blank(text_[at_])) ++at_;
  }
  void fail(std::string what) {
    if (!fault_) fault_ = JsonFault{at_, std::move(what)};
  }

  /// Returns what stands at this place, as a message names it.
  std::string here() const {
    if (at_end()) return "the end of the file";
    std::size_t end = at_ + 1;
    constexpr std::size_t kMaxShown = 20;
    if (is_word(peek()))
      while (end < text_.size() && is_word(text_[end]) && end - at_ < kMaxShown) ++end;
    const char c = peek();
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      return fmt::format("byte {:#04x}", static_cast<unsigned char>(c));
    if (c == '"') return "a text";
    return fmt::format("'{}'", text_.substr(at_, end - at_));
  }

  void fail_unclosed() {
    const Bracket& last = open_.back();
    fail(fmt::format("the file ends, and the '{}' of line {} is not closed", last.kind, place_of(text_, last.at).line));
  }

  /// One item of the innermost bracket, or its end.
  void next_in_bracket() {
    Bracket& last = open_.back();
    const bool object = last.kind == '{';
    const char close = object ? '}' : ']';
    skip_blanks();
    if (at_end()) return fail_unclosed();
    if (peek() == close) {
      ++at_;
      open_.pop_back();
      return;
    }
    if (last.has_items) {
      if (peek() != ',')
        return fail(fmt::format("expected ',' or '{}', not {}: is a comma missing before it?", close, here()));
      ++at_;
      skip_blanks();
      if (at_end()) return fail_unclosed();
      if (peek() == close) return fail(fmt::format("there is a comma too many before '{}'", close));
    }
    last.has_items = true;
    if (object) {
      key();
      if (fault_) return;
    }
    value();
  }

  void key() {
    if (peek() == '\'') return fail("a key stands in double quotes, not in single ones");
    if (peek() == ',') return fail("there is a comma too many");
    if (peek() != '"') return fail_or_comment(fmt::format("expected a key in double quotes, not {}", here()));
    text();
    skip_blanks();
    if (fault_) return;
    if (at_end()) return fail_unclosed();
    if (peek() != ':') return fail(fmt::format("expected ':' behind a key, not {}", here()));
    ++at_;
  }

  void value() {
    skip_blanks();
    const char c = peek();
    if (at_end()) return open_.empty() ? fail("the file is empty") : fail_unclosed();
    if (c == '{' || c == '[') {
      open_.push_back({c, at_, false});
      ++at_;
    } else if (c == '"') {
      text();
    } else if (c == '-' || is_digit(c)) {
      number();
    } else if (c == '\'') {
      fail("a text stands in double quotes, not in single ones");
    } else if (c == ',') {
      fail("there is a comma too many");
    } else if (is_word(c)) {
      word();
    } else {
      fail_or_comment(fmt::format("expected a value, not {}", here()));
    }
  }

  void fail_or_comment(std::string otherwise) {
    const bool comment = text_.substr(at_).starts_with("//") || text_.substr(at_).starts_with("/*") || peek() == '#';
    fail(comment ? "JSON has no comments: leave it out" : std::move(otherwise));
  }

  void word() {
    for (const std::string_view known : {"true", "false", "null"})
      if (text_.substr(at_).starts_with(known) &&
          (at_ + known.size() == text_.size() || !is_word(text_[at_ + known.size()]))) {
        at_ += known.size();
        return;
      }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPython{
        {{"'True'", "true"}, {"'False'", "false"}, {"'None'", "null"}}};
    for (const auto& [theirs, ours] : kPython)
      if (here() == theirs) return fail(fmt::format("{} is {} in JSON", theirs, ours));
    fail(fmt::format("{} is no value; a text needs double quotes", here()));
  }

  void digits() {
    if (!is_digit(peek())) return fail(fmt::format("expected a digit in a number, not {}", here()));
    while (is_digit(peek())) ++at_;
  }

  void number() {
    if (peek() == '-') ++at_;
    if (peek() == '0')
      ++at_;  // nothing but a fraction or an exponent may follow
    else
      digits();
    if (peek() == '.') ++at_, digits();
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
  }

  void text() {
    const std::size_t begin = at_++;
    while (!at_end() && peek() != '"') {
      if (static_cast<unsigned char>(peek()) < 0x20) {
        at_ = peek() == '\n' || peek() == '\r' ? begin : at_;
        return fail(at_ == begin ? "the text that begins here is not closed in its line"
                                 : "a text holds a control character, which is written as \\t or \\u00..");
      }
      if (peek() == '\\' && !escape()) return;
      ++at_;
    }
    if (at_end()) {
      at_ = begin;
      return fail("the text that begins here is not closed");
    }
    ++at_;
  }

  bool escape() {
    ++at_;
    if (peek() != 'u' && std::string_view("\"\\/bfnrt").find(peek()) == std::string_view::npos)
      return fail("'\\' in a text is written as '\\\\'"), false;
    if (peek() != 'u') return true;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (std::isxdigit(static_cast<unsigned char>(peek())) == 0)
        return fail("'\\u' needs four hexadecimal digits"), false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Bracket> open_;
  std::optional<JsonFault> fault_;
};

}  // namespace

std::optional<JsonFault> find_json_fault(std::string_view text) {
  return Scanner(text).scan();
}

LineColumn place_of(std::string_view text, std::size_t at) {
  LineColumn place;
  for (const char c : text.substr(0, at)) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // a further byte of a character
    if (c == '\n')
      ++place.line, place.column = 1;
    else if (!continues)
      ++place.column;
  }
  return place;
}

}  // namespace manyworlds::experiments::import
