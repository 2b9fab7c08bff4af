#include "experiments/shell/condition.hpp"

#include <algorithm>
#include <array>

#include "experiments/shell/arithmetic.hpp"
#include "experiments/shell/pattern.hpp"

namespace manyworlds::experiments::shell {
namespace {

constexpr int kMaxDepth = 60;
constexpr std::array<std::string_view, 6> kNumeric{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};

Truth compared(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "-eq") return truth(a == b);
  if (op == "-ne") return truth(a != b);
  if (op == "-lt") return truth(a < b);
  if (op == "-le") return truth(a <= b);
  return truth(op == "-gt" ? a > b : a >= b);
}

class Reader {
 public:
  Reader(const std::vector<Text>& words, bool double_brackets, Environment& environment)
      : words_(words), double_(double_brackets), environment_(environment) {}

  Truth whole() {
    if (words_.empty()) return Truth::no;
    const Truth value = any(0);
    return at_ == words_.size() ? value : Truth::unknown;
  }

 private:
  bool accept(std::string_view word) {
    if (at_ >= words_.size() || words_[at_].text != word) return false;
    ++at_;
    return true;
  }
  Truth any(int depth) {
    Truth value = all(depth + 1);
    while (accept(double_ ? "||" : "-o")) {
      const Truth other = all(depth + 1);
      if (value == Truth::yes || other == Truth::yes)
        value = Truth::yes;
      else if (other == Truth::unknown)
        value = other;
    }
    return value;
  }
  Truth all(int depth) {
    Truth value = one(depth + 1);
    while (accept(double_ ? "&&" : "-a")) {
      const Truth other = one(depth + 1);
      if (value == Truth::no || other == Truth::no)
        value = Truth::no;
      else if (other == Truth::unknown)
        value = other;
    }
    return value;
  }
  Truth one(int depth) {
    if (depth > kMaxDepth || at_ >= words_.size()) return Truth::unknown;
    if (accept("!")) return !one(depth + 1);
    if (double_ && accept("(")) {
      const Truth value = any(depth + 1);
      return accept(")") ? value : Truth::unknown;
    }
    return primary();
  }
  Truth primary() {
    const std::string& first = words_[at_].text;
    const bool binary = at_ + 2 < words_.size() && is_binary(words_[at_ + 1].text);
    if (binary) {
      at_ += 3;
      return binary_value(first, words_[at_ - 2].text, words_[at_ - 1].text);
    }
    if (first.size() == 2 && first[0] == '-' && at_ + 1 < words_.size()) {
      at_ += 2;
      return unary_value(first[1], words_[at_ - 1].text);
    }
    ++at_;
    return unary_value('n', first);
  }
  static bool is_binary(const std::string& word) {
    return word == "=" || word == "==" || word == "!=" || word == "<" || word == ">" || word == "=~" || word == "-nt" ||
           word == "-ot" || std::find(kNumeric.begin(), kNumeric.end(), word) != kNumeric.end();
  }
  /// Returns a text in which a variable that the script does not set is empty.
  std::string taken(const std::string& text) {
    const std::string name = name_if_unset(text);
    if (name.empty()) return text;
    environment_.assumed[name] = "";
    return "";
  }
  Truth unary_value(char op, const std::string& operand) {
    if (op != 'n' && op != 'z' && op != 'v') return Truth::unknown;
    const std::string text = taken(operand);
    if (op == 'v') return Truth::unknown;
    bool known_part = false, in_mark = false;
    for (const char c : text) {
      in_mark |= c == kMarkBegin;
      known_part |= !in_mark;
      in_mark &= c != kMarkEnd;
    }
    if (!is_known(text) && !known_part) return Truth::unknown;
    return truth(text.empty() == (op == 'z'));
  }
  Truth binary_value(const std::string& left, const std::string& op, const std::string& right) {
    const std::string a = taken(left), b = taken(right);
    if (!is_known(a) || !is_known(b)) return Truth::unknown;
    if (op == "=" || op == "==" || op == "!=") {
      const bool equal = double_ ? matches(b, a) : a == b;
      return truth(equal == (op != "!="));
    }
    if (std::find(kNumeric.begin(), kNumeric.end(), op) == kNumeric.end()) return Truth::unknown;
    const auto x = a.empty() && double_ ? std::optional<std::int64_t>(0) : integer_of(a);
    const auto y = integer_of(b);
    return x && y ? compared(op, *x, *y) : Truth::unknown;
  }

  const std::vector<Text>& words_;
  bool double_;
  Environment& environment_;
  std::size_t at_ = 0;
};

}  // namespace

Truth condition_value(const std::vector<Text>& words, bool double_brackets, Environment& environment) {
  return Reader(words, double_brackets, environment).whole();
}

std::string why_not_known(const std::vector<Text>& words) {
  std::string text = "a condition (";
  for (const Text& word : words) text += (text.back() == '(' ? "" : " ") + shown(word.text);
  text += ")";
  for (const Text& word : words)
    if (const std::string why = why_unknown(word.text); !why.empty()) return text + ": " + why;
  return text;
}

}  // namespace manyworlds::experiments::shell
