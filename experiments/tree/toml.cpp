// Builds the tree from what toml++ parses.
#include "experiments/tree/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
// toml++ asserts what a file need not have, such as how the name of a table begins, and without assertions lets Clang
// assume it; then it reports what is there instead. So it must do neither.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "core/base/escape.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::import {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::ptrdiff_t kMaxBrackets = 500'000;  // of lists and tables, each of which toml++ allocates
constexpr std::size_t kMaxPoints = 1'000;         // in a line: a.b.c.d = 1 is as many tables, one in the other

class TreeBuilder {
 public:
  explicit TreeBuilder(const std::string& name) : file_(std::make_shared<const std::string>(name)) {}

  Node node(const toml::node& from, std::size_t depth) const {
    Node result;
    result.file = file_;
    result.line = static_cast<int>(from.source().begin.line);
    if (depth > kMaxDepth) result.fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    if (const toml::table* table = from.as_table()) {
      result.kind = Node::Kind::mapping;
      for (const auto& [key, value] : *table) result.entries.push_back(entry(key, value, depth));
      // toml++ sorts by name; messages and tables follow the file.
      std::stable_sort(result.entries.begin(), result.entries.end(),
                       [](const Entry& a, const Entry& b) { return a.line < b.line; });
    } else if (const toml::array* array = from.as_array()) {
      result.kind = Node::Kind::sequence;
      for (const toml::node& item : *array) result.items.push_back(node(item, depth + 1));
    } else {
      result.kind = Node::Kind::scalar;
      result.quoted = from.is_string();
      result.text = scalar(from);
    }
    return result;
  }

 private:
  Entry entry(const toml::key& key, const toml::node& value, std::size_t depth) const {
    Entry result;
    result.key = core::line_text(key.str());
    result.line = static_cast<int>(key.source().begin.line);
    result.value = node(value, depth + 1);
    if (result.value.kind != Node::Kind::mapping) result.value.line = result.line;
    return result;
  }
  static std::string scalar(const toml::node& from) {
    if (const auto* text = from.as_string()) return text->get();
    if (const auto* number = from.as_integer()) return std::to_string(number->get());
    if (const auto* truth = from.as_boolean()) return truth->get() ? "true" : "false";
    if (const auto* number = from.as_floating_point()) return fmt::format("{}", number->get());
    std::ostringstream text;
    if (const auto* date = from.as_date()) text << date->get();
    if (const auto* time = from.as_time()) text << time->get();
    if (const auto* both = from.as_date_time()) text << both->get();
    return text.str();
  }

  std::shared_ptr<const std::string> file_;
};

void check_limits(std::string_view text, const std::string& name) {
  if (std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; }) > kMaxBrackets)
    throw core::InputError(fmt::format("more than {} lists and tables", kMaxBrackets), name);
  int line = 1;
  std::size_t points = 0;
  for (const char c : text) {
    if (c == '\n') ++line, points = 0;
    if (c == '.' && ++points > kMaxPoints)
      throw core::InputError(fmt::format("more than {} points in one line", kMaxPoints), name, line);
  }
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& name) {
  check_size(text.size(), name);
  check_text(text, name);
  check_limits(text, name);
  try {
    return TreeBuilder(name).node(toml::parse(text, name), 0);
  } catch (const toml::parse_error& error) {
    throw core::InputError(fmt::format("no valid TOML: {}", error.description()), name,
                           static_cast<int>(error.source().begin.line));
  }
}

}  // namespace manyworlds::experiments::import
