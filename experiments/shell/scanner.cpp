#include "experiments/shell/scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.hpp"
#include "experiments/shell/state.hpp"

namespace manyworlds::experiments::shell {
namespace {

constexpr int kMaxNesting = 60;
constexpr std::string_view kWordEnds = " \t\r\n;&|<>()";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

}  // namespace

void Scanner::fail(const std::string& what) const {
  fail_at(line_, what);
}

void Scanner::fail_at(int line, const std::string& what) const {
  throw core::InputError(what, file_, line);
}

void Scanner::skip(std::size_t count) {
  for (; count > 0 && !at_end(); --count) line_ += text_[at_++] == '\n';
}

void Scanner::skip_blanks() {
  while (!at_end()) {
    if (is_blank(peek()))
      ++at_;
    else if (next_is("\\\n"))
      skip(2);
    else if (next_is("\\\r\n"))
      skip(3);
    else if (peek() == '#')
      while (!at_end() && peek() != '\n') ++at_;
    else
      return;
  }
}

void Scanner::skip_lines() {
  for (skip_blanks(); peek() == '\n'; skip_blanks()) skip_line_end();
}

void Scanner::skip_line_end() {
  skip(1);
  if (!announced_.empty()) read_here_documents();
}

bool Scanner::accept(std::string_view what) {
  if (!next_is(what)) return false;
  skip(what.size());
  return true;
}

void Scanner::copy(std::string& to, std::size_t count) {
  const std::size_t end = std::min(at_ + count, text_.size());
  to.append(text_, at_, end - at_);
  skip(end - at_);
}

/// Copies an unknown part, whose reason may hold any character.
void Scanner::copy_mark(std::string& to) {
  const std::size_t end = text_.find(kMarkEnd, at_);
  copy(to, (end == std::string::npos ? text_.size() : end + 1) - at_);
}

void Scanner::copy_single_quoted(std::string& to) {
  const int begin = line_;
  const std::size_t end = text_.find('\'', at_ + 1);
  if (end == std::string::npos) fail_at(begin, "the single quote that begins here never ends");
  copy(to, end + 1 - at_);
}

void Scanner::copy_double_quoted(std::string& to, int depth) {
  const int begin = line_;
  copy(to, 1);
  while (!at_end() && peek() != '"') {
    if (peek() == kMarkBegin)
      copy_mark(to);
    else if (next_is("\\\n"))
      skip(2);
    else if (peek() == '\\')
      copy(to, 2);
    else if (peek() == '$')
      copy_dollar(to, depth + 1);
    else if (peek() == '`')
      copy_backquoted(to);
    else
      copy(to, 1);
  }
  if (at_end()) fail_at(begin, "the double quote that begins here never ends");
  copy(to, 1);
}

void Scanner::copy_backquoted(std::string& to) {
  const int begin = line_;
  copy(to, 1);
  while (!at_end() && peek() != '`') copy(to, peek() == '\\' ? 2 : 1);
  if (at_end()) fail_at(begin, "the backquote that begins here never ends");
  copy(to, 1);
}

void Scanner::copy_dollar(std::string& to, int depth) {
  if (depth > kMaxNesting) fail("expansions nest too deep");
  copy(to, 1);
  if (peek() == '{')
    copy_nested(to, '{', '}', depth);
  else if (peek() == '(')
    copy_nested(to, '(', ')', depth);
}

/// Copies from a bracket to the one that closes it.
void Scanner::copy_nested(std::string& to, char open, char close, int depth) {
  const int begin = line_;
  copy(to, 1);
  for (int level = 1; level > 0;) {
    if (at_end()) fail_at(begin, fmt::format("the '{}' that begins here never ends", open));
    const char c = peek();
    if (c == close) --level;
    if (c == open) ++level;
    if (c == open || c == close)
      copy(to, 1);
    else if (open == '(' && c == '#' && (to.back() == ' ' || to.back() == '\n'))
      while (!at_end() && peek() != '\n') ++at_;
    else
      copy_one(to, depth + 1);
  }
}

/// Copies a character, or what a quote or an expansion encloses.
void Scanner::copy_one(std::string& to, int depth) {
  if (depth > kMaxNesting) fail("expansions nest too deep");
  if (peek() == kMarkBegin)
    copy_mark(to);
  else if (next_is("\\\n"))
    skip(2);
  else if (next_is("\\\r\n"))
    skip(3);
  else if (peek() == '\\')
    copy(to, 2);
  else if (peek() == '\'')
    copy_single_quoted(to);
  else if (peek() == '"')
    copy_double_quoted(to, depth);
  else if (peek() == '`')
    copy_backquoted(to);
  else if (peek() == '$')
    copy_dollar(to, depth);
  else
    copy(to, 1);
}

Word Scanner::read_word() {
  Word word{"", line_};
  while (!at_end()) {
    if (next_is("\\\n")) {
      skip(2);
      continue;
    }
    if (kWordEnds.find(peek()) != std::string_view::npos) break;
    copy_one(word.raw, 0);
  }
  return word;
}

std::string Scanner::next_word() {
  const std::size_t at = at_;
  const int line = line_;
  std::size_t end = at_;
  while (end < text_.size() && kWordEnds.find(text_[end]) == std::string_view::npos) ++end;
  std::string word = text_.substr(at_, end - at_);
  at_ = at, line_ = line;
  return word;
}

std::string Scanner::read_enclosed(char open, char close) {
  const int begin = line_;
  std::string text;
  for (int level = 1;;) {
    if (at_end()) fail_at(begin, fmt::format("the '{}' that begins here never ends", open));
    if (peek() == open) ++level;
    if (peek() == close && --level == 0) break;
    if (peek() == open || peek() == close)
      copy(text, 1);
    else
      copy_one(text, 0);
  }
  skip(1);
  return text;
}

std::string Scanner::read_placeholder() {
  if (peek() != '<' || (std::isalpha(static_cast<unsigned char>(peek(1))) == 0)) return "";
  std::size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '>' && text_[end] != '\n' && text_[end] != '<') ++end;
  if (end >= text_.size() || text_[end] != '>') return "";
  std::string placeholder = text_.substr(at_, end + 1 - at_);
  skip(placeholder.size());
  return placeholder;
}

std::shared_ptr<HereDocument> Scanner::announce(const std::string& end, bool quoted, bool strip_tabs) {
  auto document = std::make_shared<HereDocument>();
  document->quoted = quoted;
  announced_.push_back({end, strip_tabs, document});
  return document;
}

void Scanner::read_here_documents() {
  std::vector<Announced> announced;
  announced.swap(announced_);
  for (const Announced& one : announced) {
    one.document->line = line_;
    for (;;) {
      if (at_end())
        fail_at(one.document->line, fmt::format("the here-document that begins here lacks its end, {}", one.end));
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string line = text_.substr(at_, end - at_);
      if (one.strip_tabs) line.erase(0, std::min(line.find_first_not_of('\t'), line.size()));
      skip(end - at_ + 1);
      if (line == one.end || line == one.end + "\r") break;
      one.document->text += line + "\n";
    }
  }
}

}  // namespace manyworlds::experiments::shell
