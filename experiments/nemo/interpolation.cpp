#include "experiments/nemo/interpolation.hpp"

#include <fmt/format.h>

#include <vector>

#include "experiments/shell/arithmetic.hpp"
#include "experiments/shell/state.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxLength = 10'000;

class Interpolator {
 public:
  Interpolator(const Node& root, const Node& at, const std::map<std::string, std::string>& environment)
      : root_(root), at_(at), environment_(environment) {}

  std::string expand(const std::string& path, const std::string& text);

 private:
  std::string meaning(const std::string& path, const std::string& inside);
  std::string reference(const std::string& path, std::string name);
  std::string calculated(const std::string& path, const std::string& how, const std::vector<std::string>& words);
  std::vector<std::string> words_in(const std::string& path, const std::string& text);

  const Node& root_;
  const Node& at_;
  const std::map<std::string, std::string>& environment_;
  int depth_ = 0;
};

/// Returns the index behind the brace that closes the one before `at`; npos if there is none.
std::size_t end_of(const std::string& text, std::size_t at) {
  int open = 1;
  for (; at < text.size(); ++at) {
    if (text[at] == '{') ++open;
    if (text[at] == '}' && --open == 0) return at + 1;
  }
  return std::string::npos;
}

std::string Interpolator::expand(const std::string& path, const std::string& text) {
  if (++depth_ > kMaxDepth) at_.fail("its references lead to themselves, or too deep");
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.compare(at, 2, "${") == 0 ? end_of(text, at + 2) : std::string::npos;
    if (end == std::string::npos) {
      result.push_back(text[at++]);
      continue;
    }
    result += meaning(path, text.substr(at + 2, end - at - 3));
    at = end;
    if (result.size() > kMaxLength) at_.fail("its references make too long a text");
  }
  --depth_;
  return result;
}

/// Splits the arguments of a resolver at commas outside braces, and expands each.
std::vector<std::string> Interpolator::words_in(const std::string& path, const std::string& text) {
  std::vector<std::string> words(1);
  int open = 0;
  for (const char c : text) {
    open += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && open == 0)
      words.emplace_back();
    else
      words.back().push_back(c);
  }
  for (std::string& word : words) word = expand(path, std::string(import::trimmed(word, " \t'\"")));
  return words;
}

std::string Interpolator::meaning(const std::string& path, const std::string& inside) {
  const std::size_t colon = inside.find(':');
  const std::size_t brace = inside.find("${");
  if (colon == std::string::npos || (brace != std::string::npos && brace < colon)) return reference(path, inside);
  const std::string how = inside.substr(0, colon);
  const std::vector<std::string> words = words_in(path, inside.substr(colon + 1));
  if (how == "oc.env" || how == "env") {
    const auto given = environment_.find(words[0]);
    if (given != environment_.end()) return given->second;
    return words.size() > 1 ? words[1] : shell::unknown(fmt::format("${}, a variable of the environment", words[0]));
  }
  if (how == "oc.decode") return words[0];
  return calculated(path, how, words);
}

std::string Interpolator::calculated(const std::string&, const std::string& how,
                                     const std::vector<std::string>& words) {
  const char* sign = how == "multiply"                                           ? "*"
                     : how == "add"                                              ? "+"
                     : how == "divide" || how == "floor_div" || how == "int_div" ? "/"
                                                                                 : nullptr;
  const std::string why = fmt::format("${{{}:…}}, which is not calculated here", how);
  if (sign == nullptr || words.size() < 2) return shell::unknown(why);
  std::string expression;
  for (const std::string& word : words) {
    if (!shell::is_known(word)) return word;
    if (!shell::integer_of(word)) return shell::unknown(why);
    expression += (expression.empty() ? "" : sign) + word;
  }
  const auto value =
      shell::arithmetic_value(expression, [](const std::string&) { return std::optional<std::int64_t>(); });
  return value ? std::to_string(*value) : shell::unknown(why);
}

/// Returns the value that stands at a path, which begins with a dot for each level up.
std::string Interpolator::reference(const std::string& path, std::string name) {
  const std::string why = fmt::format("${{{}}}, which the file does not have", name);
  std::string from = path;
  bool relative = false;
  while (name.starts_with('.')) {
    relative = true;
    const std::size_t dot = from.rfind('.');
    from = dot == std::string::npos ? "" : from.substr(0, dot);
    name.erase(0, 1);
  }
  std::string whole = relative && !from.empty() ? from + "." + name : name;
  // A launcher's file stands below the name of its stage: ${training.model.x} is model.x here.
  if (!relative && root_.find(whole.substr(0, whole.find('.'))) == nullptr) {
    const std::size_t dot = whole.find('.');
    if (dot != std::string::npos) whole.erase(0, dot + 1);
  }
  const Node* node = &root_;
  std::size_t begin = 0;
  while (node != nullptr && begin <= whole.size()) {
    const std::size_t dot = std::min(whole.find('.', begin), whole.size());
    node = node->kind == Node::Kind::mapping ? node->find(whole.substr(begin, dot - begin)) : nullptr;
    begin = dot + 1;
  }
  if (node == nullptr || node->kind != Node::Kind::scalar) return shell::unknown(why);
  return expand(whole, node->text);
}

}  // namespace

std::string interpolated(const Node& root, const std::string& path, const Node& value,
                         const std::map<std::string, std::string>& environment) {
  return Interpolator(root, value, environment).expand(path, value.text);
}

}  // namespace manyworlds::experiments::jobs
