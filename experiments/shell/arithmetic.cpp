#include "experiments/shell/arithmetic.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace manyworlds::experiments::shell {
namespace {

using Value = std::optional<std::int64_t>;

constexpr int kMaxDepth = 100;
constexpr std::int64_t kMaxExponent = 62;

struct Operator {
  std::string_view text;
  int precedence;
};
/// Longer ones first, as they are read.
constexpr std::array<Operator, 17> kOperators{{{"**", 11},
                                               {"<<", 8},
                                               {">>", 8},
                                               {"<=", 7},
                                               {">=", 7},
                                               {"==", 6},
                                               {"!=", 6},
                                               {"&&", 2},
                                               {"||", 1},
                                               {"*", 10},
                                               {"/", 10},
                                               {"%", 10},
                                               {"+", 9},
                                               {"-", 9},
                                               {"<", 7},
                                               {">", 7},
                                               {"&", 5}}};

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > kMaxExponent) return std::nullopt;
  std::int64_t result = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  return result;
}

Value shifted(std::string_view op, std::int64_t a, std::int64_t b) {
  if (b < 0 || b > kMaxExponent || a < 0) return std::nullopt;
  if (op == ">>") return a >> b;
  const auto factor = power(2, b);
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, *factor, &result)) return std::nullopt;
  return result;
}

Value divided(std::string_view op, std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? std::nullopt : op == "%" ? Value(0) : Value(-a);
  return op == "/" ? a / b : a % b;
}

Value compared(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "<") return a < b;
  if (op == ">") return a > b;
  if (op == "<=") return a <= b;
  if (op == ">=") return a >= b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "||") return a != 0 || b != 0;
  return a & b;
}

Value applied(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "**") return power(a, b);
  if (op == "<<" || op == ">>") return shifted(op, a, b);
  if (op == "/" || op == "%") return a == INT64_MIN ? std::nullopt : divided(op, a, b);
  if (op == "*") return __builtin_mul_overflow(a, b, &result) ? std::nullopt : Value(result);
  if (op == "+") return __builtin_add_overflow(a, b, &result) ? std::nullopt : Value(result);
  if (op == "-") return __builtin_sub_overflow(a, b, &result) ? std::nullopt : Value(result);
  return compared(op, a, b);
}

class Reader {
 public:
  Reader(const std::string& text, const std::function<Value(const std::string&)>& value_of)
      : text_(text), value_of_(value_of) {}

  Value whole() {
    const Value value = ternary(0);
    skip_blanks();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  Value ternary(int depth) {
    const Value condition = binary(1, depth + 1);
    if (!condition || !accept('?')) return condition;
    const Value yes = ternary(depth + 1);
    if (!yes || !accept(':')) return std::nullopt;
    const Value no = ternary(depth + 1);
    return *condition != 0 ? yes : no;
  }
  const Operator* next_operator() {
    skip_blanks();
    for (const Operator& op : kOperators)
      if (rest_.starts_with(op.text)) return &op;
    return nullptr;
  }
  Value binary(int precedence, int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    Value left = unary(depth + 1);
    for (const Operator* op = next_operator(); left && op != nullptr && op->precedence >= precedence;
         op = next_operator()) {
      rest_.remove_prefix(op->text.size());
      const Value right = binary(op->text == "**" ? op->precedence : op->precedence + 1, depth + 1);
      left = right ? applied(op->text, *left, *right) : std::nullopt;
    }
    return left;
  }
  Value unary(int depth) {
    if (depth > kMaxDepth) return std::nullopt;
    if (accept('-')) {
      const Value value = unary(depth + 1);
      return value && *value != INT64_MIN ? Value(-*value) : std::nullopt;
    }
    if (accept('+')) return unary(depth + 1);
    if (accept('!')) {
      const Value value = unary(depth + 1);
      return value ? Value(*value == 0) : std::nullopt;
    }
    if (accept('(')) {
      const Value value = ternary(depth + 1);
      return accept(')') ? value : std::nullopt;
    }
    return primary();
  }
  Value primary() {
    skip_blanks();
    std::size_t length = 0;
    while (length < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[length])) != 0 || rest_[length] == '_'))
      ++length;
    const std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (word.empty()) return std::nullopt;
    return std::isdigit(static_cast<unsigned char>(word[0])) != 0 ? integer_of(word) : value_of_(word);
  }

  const std::string& text_;
  const std::function<Value(const std::string&)>& value_of_;
  std::string_view rest_ = text_;
};

}  // namespace

std::optional<std::int64_t> integer_of(const std::string& text) {
  std::string_view digits = text;
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;  // octal to bash
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> arithmetic_value(const std::string& text,
                                             const std::function<Value(const std::string&)>& value_of) {
  return Reader(text, value_of).whole();
}

}  // namespace manyworlds::experiments::shell
