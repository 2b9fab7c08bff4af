// Translates expressions for muparserx. Its names cannot contain dots, so names are replaced by k0, k1, …, which also
// keeps them apart from its constants and functions.
#include "experiments/tree/expression.hpp"

#include <fmt/format.h>
#include <mpParser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "core/base/error.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments {
namespace {

using import::Node;

constexpr std::size_t kMaxCharacters = 2'000;
constexpr std::array<std::string_view, 7> kFunctions{"min", "max", "abs", "sqrt", "log2", "floor", "ceil"};

bool is_connective(std::string_view name) {
  return name == "and" || name == "or";
}
bool is_function(std::string_view name) {
  return std::find(kFunctions.begin(), kFunctions.end(), name) != kFunctions.end();
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return begins_name(c) || is_digit(c) || c == '.';
}

/// What an expression is for, and what it is called in messages.
enum class Purpose { condition, number };

const char* word_for(Purpose purpose) {
  return purpose == Purpose::condition ? "where" : "formula";
}

[[noreturn]] void fail_at(const Node& node, Purpose purpose, const std::string& reason) {
  node.fail(fmt::format("{} '{}': {}", word_for(purpose), node.text, reason));
}

/// Reads an expression from left to right and writes it for muparserx.
class Translator {
 public:
  Translator(const Node& node, const Expression::Resolve& resolve, Purpose purpose)
      : node_(node), text_(node.text), resolve_(resolve), purpose_(purpose) {}

  std::string run() {
    if (node_.kind != Node::Kind::scalar)
      node_.fail(fmt::format("a {} must be an expression, not {}", word_for(purpose_), import::describe(node_)));
    if (text_.size() > kMaxCharacters)
      node_.fail(fmt::format("a {} of more than {} characters{}", word_for(purpose_), kMaxCharacters,
                             purpose_ == Purpose::condition ? "; split it" : ""));
    while (at_ < text_.size()) step();
    if (names.empty() && purpose_ == Purpose::condition) fail("it names no key, so it is always true or always false");
    if (!complete_) fail("a value is missing at its end");
    if (open_ > 0) fail("a parenthesis is not closed");
    return std::move(out_);
  }

  std::vector<ExpressionName> names;
  std::vector<std::string> typed;  // the names as the user wrote them

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  [[noreturn]] void fail(const std::string& reason) const { fail_at(node_, purpose_, reason); }
  bool after_equality() const { return last_operator_ == "==" || last_operator_ == "!="; }

  void step() {
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) >= 0x80 && !bare_text_)
      fail("letters outside ASCII stand outside a text; no key has one");
    if (c == '"' || c == '\'') return copy_quoted(c);
    if (c == ' ' || c == '\t') return static_cast<void>(out_ += text_[at_++]);
    if (bare_text_) return copy_bare_text();
    if (begins_name(c)) return copy_name();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return copy_number();
    copy_operator();
  }

  // muparserx reads beyond its stack if operators follow each other, so values and operators must alternate.
  void begin_value(const std::string& text) {
    if (complete_) fail(fmt::format("an operator is missing before '{}'", text));
    complete_ = true;
    signed_ = false;
  }
  void end_value(const std::string& op) {
    if (!complete_) fail(fmt::format("a value is missing before '{}'", op));
    complete_ = false;
  }

  void put_text(const std::string& text) {
    begin_value(text);
    if (text.find_first_of("\\\"") != std::string::npos)
      fail("a backslash or a quote stands in a text; no name has one");
    out_ += '"' + text + '"';
    bare_text_ = false;
    last_operator_.clear();
  }

  /// Copies a quoted text; the end of the expression does not close it.
  void copy_quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail(fmt::format("a text is not closed; it has no closing {}", quote));
    put_text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  void copy_bare_text() {
    const std::size_t end = std::min(text_.find_first_of(" \t()<>=!&|", at_), text_.size());
    if (end == at_) fail("a text is missing");
    put_text(text_.substr(at_, end - at_));
    at_ = end;
  }

  void copy_name() {
    std::size_t end = at_;
    while (end < text_.size() && continues_name(text_[end])) ++end;
    const std::string name = text_.substr(at_, end - at_);
    const bool follows_equality = after_equality();
    at_ = end;
    last_operator_.clear();
    if (is_connective(name)) {
      end_value(name);
      compared_ = kNone;
      return static_cast<void>(out_ += name);
    }
    if (is_function(name)) {
      if (complete_) fail(fmt::format("an operator is missing before '{}'", name));
      const std::size_t next = text_.find_first_not_of(" \t", at_);
      if (next == std::string::npos || text_[next] != '(') fail(fmt::format("'{}' needs ( ) after it", name));
      return static_cast<void>(out_ += name);
    }
    begin_value(name);
    if (name == "true" || name == "false") return static_cast<void>(out_ += name);
    if (name == "not") fail("'not' is no operator here; use the opposite comparison, as in tp != 8");
    if (name == "x") fail("'x' is no key; '*' multiplies");
    const auto known = std::find(typed.begin(), typed.end(), name);
    const auto index = static_cast<std::size_t>(known - typed.begin());
    if (known == typed.end()) {
      Node named = node_;
      named.text = name;
      names.push_back(resolve_(name, named));
      typed.push_back(name);
    }
    if (names[index].kind == ExpressionName::Kind::text && !follows_equality) check_text_operator(name);
    compared_ = index;
    out_ += fmt::format("k{}", index);
  }

  /// Texts are only compared for equality.
  void check_text_operator(const std::string& name) const {
    const std::size_t next = text_.find_first_not_of(" \t)", at_);
    const std::string_view op =
        next == std::string::npos ? std::string_view() : std::string_view(text_).substr(next, 2);
    if (op != "==" && op != "!=") fail(fmt::format("'{}' is text, which compares with == and != only", name));
  }

  /// Copies a number; a suffix is converted to the unit of the name before it.
  void copy_number() {
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    if (end + 1 < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const std::size_t digits = end + (text_[end + 1] == '-' || text_[end + 1] == '+' ? 2 : 1);
      if (digits < text_.size() && is_digit(text_[digits])) {
        end = digits;
        while (end < text_.size() && is_digit(text_[end])) ++end;
      }
    }
    const std::string number = text_.substr(at_, end - at_);
    begin_value(number);
    std::size_t unit = end;
    while (unit < text_.size() && text_[unit] == ' ') ++unit;
    std::size_t after = unit;
    while (after < text_.size() && (begins_name(text_[after]) || text_[after] == '/')) ++after;
    const std::string suffix = text_.substr(unit, after - unit);
    last_operator_.clear();
    if (suffix.empty() || suffix.front() == '/' || is_connective(suffix)) {
      out_ += number;
      at_ = end;
      return;
    }
    if (compared_ == kNone) fail(fmt::format("'{}{}' has a unit, but no name stands before it", number, suffix));
    core::OptionInfo info;
    info.kind = core::OptionInfo::Kind::real;
    info.unit = names[compared_].unit;
    Node value = node_;
    value.text = number + " " + suffix;
    value.quoted = false;
    out_ += fmt::format("{:.17g}", std::get<double>(import::read_value(value, info, typed[compared_])));
    at_ = after;
  }

  /// Copies an operator, but refuses what muparserx accepts and nobody can mean here: assignments, matrices,
  /// conditionals.
  void copy_operator() {
    const char c = text_[at_];
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (std::string_view("+-*/%^()<>=!&|,").find(c) == std::string_view::npos)
      fail(fmt::format("'{}' means nothing here; use keys, numbers, \"texts\", + - * / ( ) == != < <= > >= and or", c));
    if (c == '=' && next != '=') fail("'=' sets a value; '==' compares");
    if (c == '!' && next != '=') fail("'!' alone means nothing here; '!=' compares");
    const bool compares = c == '=' || c == '!' || c == '<' || c == '>';
    const bool two = (compares && next == '=') || ((c == '&' || c == '|') && next == c);
    last_operator_ = text_.substr(at_, two ? 2 : 1);
    if (c == '&' || c == '|') compared_ = kNone;
    bare_text_ = after_equality() && compared_ < names.size() && names[compared_].kind == ExpressionName::Kind::text;
    check_order(last_operator_);
    out_ += last_operator_;
    at_ += last_operator_.size();
  }

  void check_order(const std::string& op) {
    if (op == "(") {
      if (complete_) fail("an operator is missing before '('");
      ++open_;
    } else if (op == ")") {
      if (!complete_ || open_-- == 0) fail("a ')' closes nothing, or nothing is in it");
    } else if (!complete_ && !signed_ && (op == "+" || op == "-")) {
      signed_ = true;
    } else {
      end_value(op);
    }
  }

  const Node& node_;
  const std::string& text_;
  const Expression::Resolve& resolve_;
  Purpose purpose_;
  std::size_t at_ = 0;
  std::string out_;
  std::string last_operator_;     // before at_, if nothing but spaces stands between
  bool bare_text_ = false;        // an unquoted text may come next: after `name ==` with a name that is a text
  bool complete_ = false;         // what stands before at_ ends with a value
  bool signed_ = false;           // a sign stands before the next value
  int open_ = 0;                  // parentheses
  std::size_t compared_ = kNone;  // index of the last name of this comparison
};

mup::Value sample_of(ExpressionName::Kind kind) {
  if (kind == ExpressionName::Kind::boolean) return mup::Value(false);
  return kind == ExpressionName::Kind::text ? mup::Value(mup::string_type()) : mup::Value(mup::float_type(1));
}

/// A translated expression, and the parser that holds it.
class Evaluator {
 public:
  Evaluator(const Node& of, const Expression::Resolve& resolve, Purpose purpose) : node(of), purpose_(purpose) {
    Translator translator(node, resolve, purpose);
    const std::string translated = translator.run();
    names = std::move(translator.names);
    typed_ = std::move(translator.typed);
    for (const ExpressionName& name : names) values.push_back(sample_of(name.kind));
    try {
      for (std::size_t i = 0; i < values.size(); ++i)
        parser_.DefineVar(fmt::format("k{}", i), mup::Variable(&values[i]));
      parser_.SetExpr(translated);
    } catch (const mup::ParserError& error) {
      fail(error.GetMsg());
    }
  }

  [[noreturn]] void fail(const std::string& reason) const { fail_at(node, purpose_, reason); }
  bool condition() const {
    const mup::Value result = evaluate();
    if (result.GetType() != 'b') fail("it is no comparison; a where must be true or false");
    return result.GetBool();
  }
  double number() const {
    const mup::Value result = evaluate();
    if (result.GetType() != 'i' && result.GetType() != 'f') fail("it is no number");
    return result.GetFloat();
  }

  Node node;
  std::vector<ExpressionName> names;
  mutable std::vector<mup::Value> values;

 private:
  mup::Value evaluate() const {
    try {
      return parser_.Eval();
    } catch (const mup::ParserError& error) {
      std::string message = error.GetMsg();
      for (std::size_t i = typed_.size(); i-- > 0;) {
        const std::string number = fmt::format("k{}", i);
        for (std::size_t at = 0; (at = message.find(number, at)) != std::string::npos; at += typed_[i].size())
          message.replace(at, number.size(), typed_[i]);
      }
      fail(message);
    }
  }

  Purpose purpose_;
  std::vector<std::string> typed_;  // the names as the user wrote them
  mutable mup::ParserX parser_{mup::pckCOMMON | mup::pckNON_COMPLEX | mup::pckSTRING};
};

}  // namespace

struct Expression::State {
  Evaluator evaluator;
};

Expression::Expression(const Node& node, const Resolve& resolve)
    : state_(new State{{node, resolve, Purpose::condition}}) {
  state_->evaluator.condition();  // finds faults before any value is known
}

Expression::~Expression() = default;
Expression::Expression(Expression&&) noexcept = default;

const std::vector<ExpressionName>& Expression::names() const {
  return state_->evaluator.names;
}

bool Expression::holds(const std::vector<core::OptionValue>& values) const {
  std::vector<mup::Value>& of = state_->evaluator.values;
  MANYWORLDS_CHECK(values.size() == of.size(), "{} values for {} names", values.size(), of.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::visit([&](const auto& value) { of[i] = value; }, values[i]);
  return state_->evaluator.condition();
}

const std::string& Expression::text() const {
  return state_->evaluator.node.text;
}

void Expression::fail(const std::string& reason) const {
  state_->evaluator.fail(reason);
}

struct Formula::State {
  Evaluator evaluator;
};

Formula::Formula(const Node& node, const Expression::Resolve& resolve)
    : state_(new State{{node, resolve, Purpose::number}}) {
  state_->evaluator.number();
}

Formula::~Formula() = default;
Formula::Formula(Formula&&) noexcept = default;

const std::vector<ExpressionName>& Formula::names() const {
  return state_->evaluator.names;
}

double Formula::value(const std::vector<double>& values) const {
  std::vector<mup::Value>& of = state_->evaluator.values;
  MANYWORLDS_CHECK(values.size() == of.size(), "{} values for {} names", values.size(), of.size());
  for (std::size_t i = 0; i < values.size(); ++i) of[i] = values[i];
  return state_->evaluator.number();
}

void Formula::fail(const std::string& reason) const {
  state_->evaluator.fail(reason);
}

}  // namespace manyworlds::experiments
