#include "experiments/torchtitan/python_syntax.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.hpp"
#include "experiments/torchtitan/python_tokens.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

using enum ExpressionKind;

constexpr int kMaxDepth = 200;
/// Statements without effect on values.
constexpr std::array<std::string_view, 5> kIgnored{"import", "from", "pass", "assert", "global"};
constexpr std::array<std::string_view, 9> kBlocks{"class", "if",   "for",   "while", "with",
                                                  "try",   "elif", "async", "else"};
/// Binary operators by how closely they bind, the loosest first.
const std::vector<std::vector<std::string_view>>& operators() {
  static const std::vector<std::vector<std::string_view>> levels{
      {"or"},       {"and"},    {"==", "!=", "<", ">", "<=", ">=", "in", "is", "not"},
      {"|"},        {"^"},      {"&"},
      {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
  return levels;
}

template <std::size_t n>
bool is_one(const std::array<std::string_view, n>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Parser {
 public:
  Parser(std::string_view source, const std::string& file) : file_(file), tokens_(python_tokens(source, file)) {}

  std::vector<Statement> file() {
    std::vector<Statement> statements;
    while (now().kind != TokenKind::end) read_statements(statements);
    return statements;
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is(std::string_view text) const {
    return (now().kind == TokenKind::symbol || now().kind == TokenKind::name) && now().text == text;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  bool accept(TokenKind kind) {
    if (now().kind != kind) return false;
    if (kind != TokenKind::end) ++at_;
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw core::InputError("no valid Python: " + what, file_, now().line);
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("'" + std::string(text) + "' is missing before '" + now().text + "'");
  }
  Expression at_here(ExpressionKind kind, std::string text = "") const {
    Expression one;
    one.kind = kind, one.text = std::move(text), one.line = now().line;
    return one;
  }

  /// Skips to the end of the line, and the block that begins there.
  void skip_statement() {
    while (now().kind != TokenKind::line_end && now().kind != TokenKind::end) ++at_;
    accept(TokenKind::line_end);
    if (!accept(TokenKind::indent)) return;
    for (int depth = 1; depth > 0 && now().kind != TokenKind::end; ++at_)
      depth += now().kind == TokenKind::indent ? 1 : now().kind == TokenKind::dedent ? -1 : 0;
  }

  /// Skips to a bracket that closes, or to a comma outside others.
  void skip_to_close(bool stop_at_comma) {
    for (int depth = 0; now().kind != TokenKind::end; ++at_) {
      const bool opens = is("(") || is("[") || is("{"), closes = is(")") || is("]") || is("}");
      if (depth == 0 && (closes || (stop_at_comma && is(",")) || now().kind == TokenKind::line_end)) return;
      depth += opens ? 1 : closes ? -1 : 0;
    }
  }

  void read_statements(std::vector<Statement>& to) {
    if (accept(TokenKind::line_end) || accept(TokenKind::dedent)) return;
    if (accept(TokenKind::indent)) fail("a block that nothing begins");
    if (accept("@")) return skip_line();
    if (is("def")) return to.push_back(read_function());
    Statement one;
    one.line = now().line, one.text = now().text;
    if (now().kind == TokenKind::name && (is_one(kIgnored, now().text) || is_one(kBlocks, now().text))) {
      one.kind = is_one(kIgnored, now().text) ? StatementKind::ignored : StatementKind::other;
      skip_statement();
      return to.push_back(std::move(one));
    }
    to.push_back(read_simple());
    if (!accept(";") && !accept(TokenKind::line_end) && now().kind != TokenKind::end)
      fail("'" + now().text + "' stands where a line would end");
  }
  void skip_line() {
    while (now().kind != TokenKind::line_end && now().kind != TokenKind::end) ++at_;
  }

  Statement read_simple() {
    Statement one;
    one.line = now().line;
    if (accept("return")) {
      one.kind = StatementKind::returned;
      one.value = at_here(constant, "None");
      if (now().kind != TokenKind::line_end && now().kind != TokenKind::end) one.value = read_listing();
      return one;
    }
    one.kind = StatementKind::evaluation;
    one.value = read_listing();
    if (accept(":")) {
      read_expression();  // what the target is said to be
      if (!is("=")) one.kind = StatementKind::ignored;
    }
    while (accept("=")) {
      if (one.kind == StatementKind::assignment)
        one.target = unfollowed(one.target, "a = b = c");
      else
        one.target = std::move(one.value);
      one.kind = StatementKind::assignment;
      one.value = read_listing();
    }
    if (now().kind == TokenKind::symbol && now().text.size() > 1 && now().text.back() == '=') {
      one.kind = StatementKind::other, one.text = now().text;
      ++at_;
      read_listing();
    }
    return one;
  }

  Statement read_function() {
    Statement one;
    one.kind = StatementKind::function, one.line = now().line;
    ++at_;
    one.text = now().text;
    if (!accept(TokenKind::name)) fail("a function lacks its name");
    expect("(");
    while (!is(")")) {
      while (accept("*") || accept("**") || accept("/")) {
      }
      if (now().kind == TokenKind::name) {
        one.parameters.push_back(now().text), ++at_;
        if (accept(":")) read_expression();
        if (accept("=")) one.defaults.push_back(read_expression());
      }
      if (!accept(",") && !is(")")) fail("a parameter is not understood");
    }
    expect(")");
    if (accept("->")) read_expression();
    expect(":");
    if (!accept(TokenKind::line_end)) {
      one.body.push_back(read_simple());
      return one;
    }
    if (!accept(TokenKind::indent)) fail("a function has no body");
    if (++depth_ > kMaxDepth) fail("functions are nested too deep");
    while (now().kind != TokenKind::dedent && now().kind != TokenKind::end) read_statements(one.body);
    --depth_;
    accept(TokenKind::dedent);
    return one;
  }

  /// An expression, or several between commas.
  Expression read_listing() {
    Expression first = read_expression();
    if (!is(",")) return first;
    Expression all = at_here(list);
    all.parts.push_back(std::move(first));
    while (accept(",")) {
      if (now().kind == TokenKind::line_end || now().kind == TokenKind::end || is("=")) break;
      all.parts.push_back(read_expression());
    }
    return all;
  }

  Expression read_expression() {
    if (++depth_ > kMaxDepth) fail("an expression is nested too deep");
    Expression one = read_choice();
    --depth_;
    return one;
  }

  Expression read_choice() {
    if (is("lambda") || is("await") || is("yield")) {
      Expression one = at_here(other, "'" + now().text + "'");
      skip_to_close(true);
      return one;
    }
    Expression one = read_binary(0);
    if (accept(":=")) return read_expression(), unfollowed(one, "an assignment inside an expression");
    if (!accept("if")) return one;
    read_binary(0);
    expect("else");
    read_expression();
    return unfollowed(one, "a choice by 'if'");
  }
  static Expression unfollowed(const Expression& at, const std::string& what) {
    Expression one;
    one.line = at.line, one.text = what;
    return one;
  }

  Expression read_binary(std::size_t level) {
    if (level == operators().size()) return read_unary();
    if (level == 2 && is("not")) return read_prefixed();
    Expression left = read_binary(level + 1);
    for (int length = 0; now().kind == TokenKind::symbol || now().kind == TokenKind::name; ++length) {
      if (length > kMaxDepth) fail("a chain of operators is too long");
      const auto& known = operators()[level];
      if (std::find(known.begin(), known.end(), now().text) == known.end()) break;
      if (is("not") && next().text != "in") break;
      Expression both = at_here(binary, now().text);
      const std::string first = now().text;
      ++at_;
      if ((first == "not" && accept("in")) || (first == "is" && accept("not")))
        both.text = first == "not" ? "not in" : "is not";
      both.parts.push_back(std::move(left));
      both.parts.push_back(read_binary(level + 1));
      left = std::move(both);
    }
    return left;
  }

  Expression read_prefixed() {
    if (++depth_ > kMaxDepth) fail("an expression is nested too deep");
    Expression one = at_here(unary, now().text);
    ++at_;
    one.parts.push_back(one.text == "not" ? read_binary(2) : read_unary());
    --depth_;
    return one;
  }

  Expression read_unary() {
    if (is("-") || is("+") || is("~")) return read_prefixed();
    Expression base = read_postfix();
    if (!is("**")) return base;
    Expression power = at_here(binary, "**");
    ++at_;
    power.parts.push_back(std::move(base));
    power.parts.push_back(read_unary());
    return power;
  }

  Expression read_postfix() {
    Expression one = read_atom();
    for (int length = 0;; ++length) {
      if (length > kMaxDepth) fail("a chain of members is too long");
      if (accept(".")) {
        Expression member = at_here(attribute, now().text);
        if (!accept(TokenKind::name)) fail("a member lacks its name");
        member.parts.push_back(std::move(one));
        one = std::move(member);
      } else if (is("(")) {
        one = read_call(std::move(one));
      } else if (accept("[")) {
        skip_to_close(false);
        expect("]");
        one = unfollowed(one, "a subscript");
      } else {
        return one;
      }
    }
  }

  Expression read_call(Expression callee) {
    Expression call = callee;
    call.kind = ExpressionKind::call, call.text.clear(), call.keywords.clear();
    call.parts = {std::move(callee)};
    expect("(");
    while (!is(")")) {
      std::string keyword;
      if (now().kind == TokenKind::name && next().kind == TokenKind::symbol && next().text == "=")
        keyword = now().text, at_ += 2;
      Expression argument = at_here(other, "an argument with *");
      if (is("*") || is("**"))
        keyword = "*", skip_to_close(true);
      else
        argument = read_expression();
      if (is("for") || is("async")) argument = unfollowed(argument, "a comprehension"), skip_to_close(false);
      call.keywords.push_back(std::move(keyword));
      call.parts.push_back(std::move(argument));
      if (!accept(",") && !is(")")) fail("',' or ')' is missing before '" + now().text + "'");
    }
    expect(")");
    return call;
  }

  Expression read_atom() {
    const Token token = now();
    if (token.kind == TokenKind::text || token.kind == TokenKind::formatted) return read_texts();
    if (token.kind == TokenKind::number) return take(number);
    if (token.kind == TokenKind::name)
      return take(token.text == "True" || token.text == "False" || token.text == "None" ? constant : name);
    if (is("...")) return take(other);
    if (accept("(")) return read_bracketed(")");
    if (accept("[")) return read_bracketed("]");
    if (accept("{")) return read_bracketed("}");
    fail("'" + token.text + "' stands where a value would");
  }
  Expression take(ExpressionKind kind) {
    Expression one = at_here(kind, now().text);
    ++at_;
    return one;
  }

  Expression read_texts() {
    Expression one = at_here(text);
    for (; now().kind == TokenKind::text || now().kind == TokenKind::formatted; ++at_) {
      if (now().kind == TokenKind::formatted) one.kind = other;
      one.text += now().text;
    }
    if (one.kind == other) one.text = "a formatted text";
    return one;
  }

  Expression read_bracketed(const char* close) {
    Expression one = at_here(list);
    bool comma = close[0] != ')';
    while (!is(close)) {
      if (is("*") || is("**")) one.kind = other, one.text = "a list with *", ++at_;
      one.parts.push_back(read_expression());
      if (accept(":")) {
        if (one.kind == list) one.kind = mapping;
        one.parts.push_back(read_expression());
      }
      if (is("for") || is("async")) one.kind = other, one.text = "a comprehension", skip_to_close(false);
      if (accept(","))
        comma = true;
      else if (!is(close))
        fail("',' or '" + std::string(close) + "' is missing before '" + now().text + "'");
    }
    expect(close);
    if (!comma && one.parts.size() == 1 && one.kind == list) {
      Expression inner = std::move(one.parts.front());  // (a) is a, (a,) a tuple
      return inner;
    }
    return one;
  }

  const std::string& file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<Statement> parse_python(std::string_view source, const std::string& file) {
  return Parser(source, file).file();
}

}  // namespace manyworlds::experiments::jobs::torchtitan
