// Evaluates `where` expressions with muparserx. Its names cannot contain dots, so keys are replaced by k0, k1, …, which
// also keeps them apart from its constants and functions.
#include "experiments/sweep/constraint.hpp"

#include <mpParser.h>

#include <cctype>
#include <string_view>
#include <vector>

#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using import::Node;

constexpr std::size_t kMaxCharacters = 2'000;

struct UsedKey {
  std::string key;      // as the user wrote it
  std::string setting;  // key in Settings
};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool continues_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
}

/// Returns whether a word belongs to the expression language; every other word must be a key.
bool is_expression_word(std::string_view name) {
  for (const std::string_view word :
       {"true", "false", "and", "or", "not", "min", "max", "abs", "sqrt", "log2", "floor", "ceil"})
    if (name == word) return true;
  return false;
}

std::string setting_of(const std::string& key, const Node& node) {
  for (const std::string derived : {"cluster.gpus", "strategy.dp"})
    if (key == derived || "." + key == derived.substr(derived.find('.'))) return derived;
  const Target target = find_typed_key(key, node);
  if (!target.section) return target.path;
  if (!target.section->catalog.empty()) return target.path + ".name";
  if (target.section->choices.empty())
    node.fail(fmt::format("'{}' is a section; a where compares single values, such as '{}.{}'", key, key,
                          names_in(*target.section).front()));
  return target.path;
}

}  // namespace

struct Constraint::Expression {
  Node node;
  std::string numbered_text;
  std::vector<UsedKey> used;
  mutable std::vector<mup::Value> values;
  mutable mup::ParserX parser{mup::pckCOMMON | mup::pckNON_COMPLEX | mup::pckSTRING};

  void read();
  std::size_t copy_text(std::size_t at);
  std::size_t copy_name(std::size_t at);
  void check_operator(std::size_t at) const;
  [[noreturn]] void fail(const std::string& reason) const {
    node.fail(fmt::format("where '{}': {}", node.text, reason));
  }
};

/// Copies a quoted text; the end of the expression does not close it.
std::size_t Constraint::Expression::copy_text(std::size_t at) {
  const std::size_t end = node.text.find('"', at + 1);
  if (end == std::string::npos) fail("a text is not closed; end it with \"");
  const std::string quoted = node.text.substr(at, end + 1 - at);
  if (quoted.find('\\') != std::string::npos) fail("a backslash stands in a text; no name has one");
  numbered_text += quoted;
  return end + 1;
}

std::size_t Constraint::Expression::copy_name(std::size_t at) {
  std::size_t end = at;
  while (end < node.text.size() && continues_name(node.text[end])) ++end;
  const std::string key = node.text.substr(at, end - at);
  if (is_expression_word(key)) {
    numbered_text += key;
    return end;
  }
  if (key == "x") fail("'x' is no key; '*' multiplies");
  Node named = node;
  named.text = key;
  std::size_t index = 0;
  while (index < used.size() && used[index].key != key) ++index;
  if (index == used.size()) used.push_back({key, setting_of(key, named)});
  numbered_text += fmt::format("k{}", index);
  return end;
}

/// Refuses what muparserx accepts but nobody can mean here: assignments, matrices, conditionals.
void Constraint::Expression::check_operator(std::size_t at) const {
  const std::string& text = node.text;
  const char c = text[at];
  if (c == '=' && (at == 0 || std::string_view("=!<>").find(text[at - 1]) == std::string_view::npos) &&
      (at + 1 >= text.size() || text[at + 1] != '='))
    fail("'=' sets a value; '==' compares");
  if (c == '!' && (at + 1 >= text.size() || text[at + 1] != '=')) fail("'!' alone means nothing here; '!=' compares");
  if (std::string_view("+-*/%^()<>=!&|, \t").find(c) == std::string_view::npos)
    fail(fmt::format("'{}' means nothing here; use keys, numbers, \"texts\", + - * / ( ) == != < <= > >= and or", c));
}

void Constraint::Expression::read() {
  if (node.kind != Node::Kind::scalar)
    node.fail(fmt::format("a where must be an expression, not {}", import::describe(node)));
  if (node.text.size() > kMaxCharacters)
    node.fail(fmt::format("a where of more than {} characters; split it", kMaxCharacters));
  const std::string& text = node.text;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x80) fail("letters outside ASCII stand outside a text; no key has one");
    if (text[at] == '"') {
      at = copy_text(at);
    } else if (begins_name(text[at])) {
      at = copy_name(at);
    } else if (std::isdigit(byte) != 0) {
      while (at < text.size() && (continues_name(text[at]))) numbered_text += text[at++];
    } else {
      check_operator(at);
      numbered_text += text[at++];
    }
  }
  if (used.empty()) fail("it names no key, so it is always true or always false");
}

Constraint::Constraint(const Node& node) : expression_(std::make_unique<Expression>()) {
  expression_->node = node;
  expression_->read();
  expression_->values.resize(expression_->used.size());
  try {
    for (std::size_t i = 0; i < expression_->used.size(); ++i)
      expression_->parser.DefineVar(fmt::format("k{}", i), mup::Variable(&expression_->values[i]));
    expression_->parser.SetExpr(expression_->numbered_text);
  } catch (const mup::ParserError& error) {
    expression_->fail(error.GetMsg());
  }
}

Constraint::~Constraint() = default;
Constraint::Constraint(Constraint&&) noexcept = default;

const std::string& Constraint::text() const {
  return expression_->node.text;
}

bool Constraint::holds(const Settings& settings) const {
  const Expression& e = *expression_;
  for (std::size_t i = 0; i < e.used.size(); ++i) {
    if (e.used[i].key == "cluster.gpus" || e.used[i].key == "strategy.dp") {
      const ExperimentConfig config = config_of(settings);
      e.values[i] = e.used[i].key == "cluster.gpus" ? config.cluster.gpus() : config.configuration.strategy.dp;
      continue;
    }
    const auto found = settings.find(e.used[i].setting);
    if (found == settings.end()) e.fail(fmt::format("'{}' has no value in every combination", e.used[i].key));
    std::visit([&](const auto& held) { e.values[i] = held; }, found->second);
  }
  try {
    const mup::IValue& result = e.parser.Eval();
    if (result.GetType() == 'b') return result.GetBool();
  } catch (const mup::ParserError& error) {
    std::string message = error.GetMsg();
    for (std::size_t i = e.used.size(); i-- > 0;) {
      const std::string number = fmt::format("k{}", i);
      for (std::size_t at = 0; (at = message.find(number, at)) != std::string::npos; at += e.used[i].key.size())
        message.replace(at, number.size(), e.used[i].key);
    }
    e.fail(message);
  }
  e.fail("it is no comparison; a where must be true or false");
}

}  // namespace manyworlds::experiments
