#include "experiments/torchtitan/python_tokens.hpp"

#include <array>
#include <cctype>

#include "core/base/error.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

constexpr std::array<std::string_view, 24> kSymbols{
    "**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "**",
    "//",  "<<",  ">>",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@="};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Tokenizer {
 public:
  Tokenizer(std::string_view source, const std::string& file) : source_(source), file_(file) {}

  std::vector<Token> read() {
    while (at_ < source_.size()) {
      if (at_line_begin_ && brackets_.empty()) read_indentation();
      if (at_ < source_.size()) read_token();
    }
    if (!brackets_.empty()) fail("a bracket is not closed");
    end_line();
    while (indentations_.size() > 1) indentations_.pop_back(), add(TokenKind::dedent, "");
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw core::InputError("no valid Python: " + what, file_, line_);
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  void end_line() {
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::line_end && tokens_.back().kind != TokenKind::indent &&
        tokens_.back().kind != TokenKind::dedent)
      add(TokenKind::line_end, "");
  }

  void read_indentation() {
    std::size_t width = 0;
    for (; peek() == ' ' || peek() == '\t'; ++at_) width += peek() == '\t' ? 8 - width % 8 : 1;
    if (at_ >= source_.size() || peek() == '\n' || peek() == '#' || peek() == '\r') return;
    at_line_begin_ = false;
    if (width > indentations_.back()) {
      if (indentations_.size() > 100) fail("blocks are nested deeper than 100 levels");
      indentations_.push_back(width);
      add(TokenKind::indent, "");
    }
    while (width < indentations_.back()) {
      indentations_.pop_back();
      add(TokenKind::dedent, "");
      if (width > indentations_.back()) fail("the indentation fits no block around it");
    }
  }

  void read_token() {
    const char c = peek();
    if (c == '\n') {
      if (brackets_.empty()) end_line(), at_line_begin_ = true;
      ++line_, ++at_;
    } else if (c == '#') {
      while (at_ < source_.size() && peek() != '\n') ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3, ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (begins_name(c)) {
      read_name();
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0)) {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_text("");
    } else {
      read_symbol();
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    while (continues_name(peek())) ++at_;
    std::string name(source_.substr(begin, at_ - begin));
    const bool prefix = name.size() <= 2 && name.find_first_not_of("rRbBuUfF") == std::string::npos;
    if (prefix && (peek() == '"' || peek() == '\'')) return read_text(name);
    add(TokenKind::name, std::move(name));
  }

  void read_number() {
    const std::size_t begin = at_;
    while (continues_name(peek()) || peek() == '.' ||
           ((peek() == '+' || peek() == '-') && at_ > begin && (source_[at_ - 1] == 'e' || source_[at_ - 1] == 'E')))
      ++at_;
    std::string number;
    for (const char c : source_.substr(begin, at_ - begin))
      if (c != '_') number.push_back(c);
    add(TokenKind::number, std::move(number));
  }

  void read_text(const std::string& prefix) {
    const bool raw = prefix.find_first_of("rR") != std::string::npos;
    const bool formatted = prefix.find_first_of("fF") != std::string::npos;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const int begin = line_;
    at_ += triple ? 3 : 1;
    std::string text;
    while (true) {
      if (at_ >= source_.size() || (!triple && peek() == '\n')) line_ = begin, fail("a text does not end");
      const char c = peek();
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (c == '\n') ++line_;
      if (c == '\\' && at_ + 1 < source_.size()) {
        if (peek(1) == '\n') ++line_;
        if (raw || peek(1) != '\n') text += raw ? std::string{c, peek(1)} : std::string(1, escaped(peek(1)));
        at_ += 2;
        continue;
      }
      text.push_back(c);
      ++at_;
    }
    at_ += triple ? 3 : 1;
    tokens_.push_back({formatted ? TokenKind::formatted : TokenKind::text, std::move(text), begin});
  }
  static char escaped(char c) { return c == 'n' ? '\n' : c == 't' ? '\t' : c; }

  void read_symbol() {
    for (const std::string_view symbol : kSymbols)
      if (source_.substr(at_).starts_with(symbol)) {
        at_ += symbol.size();
        return add(TokenKind::symbol, std::string(symbol));
      }
    const char c = peek();
    constexpr std::string_view kSingle = "()[]{}+-*/%@&|^~<>=.,:;!";
    if (kSingle.find(c) == std::string_view::npos) fail("a character that means nothing");
    if (c == '(' || c == '[' || c == '{') brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (brackets_.size() > 100) fail("brackets are nested deeper than 100 levels");
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty() || brackets_.back() != c) fail("a bracket is closed that is not open");
      brackets_.pop_back();
    }
    ++at_;
    add(TokenKind::symbol, std::string(1, c));
  }

  std::string_view source_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_begin_ = true;
  std::string brackets_;  // that close those which are open
  std::vector<std::size_t> indentations_{0};
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> python_tokens(std::string_view source, const std::string& file) {
  return Tokenizer(source, file).read();
}

}  // namespace manyworlds::experiments::jobs::torchtitan
