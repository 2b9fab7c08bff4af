#include "experiments/text/json.hpp"

#include <algorithm>
#include <cstdio>

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

/// Returns whether brackets outside strings are nested deeper than kMaxDepth. The result for invalid JSON does not
/// matter.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool inside = false;  // inside a string
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (inside) {
      if (c == '\\') ++at;
      inside = c != '"';
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    }
  }
  return false;
}

}  // namespace

void check_json_limits(std::string_view text, const std::string& name, std::size_t maximum) {
  if (text.size() > maximum) throw InputError(fmt::format("larger than {} bytes", maximum), name);
  if (too_deep(text)) throw InputError(fmt::format("nested deeper than {} levels", kMaxDepth), name);
}

InputError bad_json(const json::exception& error, const std::string& name, int line) {
  std::string text = error.what();
  const auto drop_through = [&](const std::string& mark) {
    if (const std::size_t at = text.find(mark); at != std::string::npos) text.erase(0, at + mark.size());
  };
  int at_line = 0, column = 0;
  const std::size_t place = text.find("line ");
  if (place != std::string::npos && std::sscanf(text.c_str() + place, "line %d, column %d", &at_line, &column) == 2)
    drop_through(": ");
  else
    drop_through("] ");
  if (text.starts_with("syntax error while parsing ")) drop_through(" - ");
  for (const auto& [theirs, ours] : {std::pair("string literal", "a text in double quotes"),
                                     {"end of input", "the end of the file"},
                                     {"invalid literal", "a word that is no value; a text needs double quotes"}})
    for (std::size_t at = 0; (at = text.find(theirs, at)) != std::string::npos; at += std::string(ours).size())
      text.replace(at, std::string(theirs).size(), ours);
  const std::string in_column = column > 0 ? fmt::format(" in column {}", column) : "";
  return InputError(fmt::format("bad JSON{}: {}", in_column, text), name, line > 0 ? line : std::max(at_line, 0));
}

json parse_json(std::string_view text, const std::string& name, std::size_t maximum) {
  check_json_limits(text, name, maximum);
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw bad_json(error, name);
  }
}

void JsonView::refuse(const std::string& expected) const {
  throw InputError(fmt::format("'{}' must be {}, not {}", name_, expected, value_.type_name()));
}

JsonView JsonView::at(const char* member) const {
  if (const auto found = find(member)) return *found;
  throw InputError(fmt::format("'{}' has no member '{}'", name_, member));
}

std::optional<JsonView> JsonView::find(const char* member) const {
  if (!value_.is_object()) refuse("an object");
  const auto found = value_.find(member);
  if (found == value_.end()) return std::nullopt;
  return JsonView(*found, member);
}

const json& JsonView::list() const {
  if (!value_.is_array()) refuse("a list");
  return value_;
}

std::size_t JsonView::size() const {
  return list().size();
}

void JsonView::for_each(const std::function<void(const JsonView&)>& visit) const {
  for (const json& one : list()) visit(JsonView(one, name_));
}

const std::string& JsonView::text() const {
  if (!value_.is_string()) refuse("a text");
  return value_.get_ref<const std::string&>();
}

bool JsonView::boolean() const {
  if (!value_.is_boolean()) refuse("true or false");
  return value_.get<bool>();
}

std::int64_t JsonView::whole(std::int64_t minimum, std::int64_t maximum) const {
  const bool fits = !value_.is_number_unsigned() ||
                    value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value_.is_number_integer() || !fits || value_.get<std::int64_t>() < minimum ||
      value_.get<std::int64_t>() > maximum)
    refuse(fmt::format("a whole number from {} to {}", minimum, maximum));
  return value_.get<std::int64_t>();
}

double JsonView::number(double minimum) const {
  if (!value_.is_number() || !(value_.get<double>() >= minimum))
    refuse(fmt::format("a number of at least {}", minimum));
  return value_.get<double>();
}

}  // namespace manyworlds::experiments::import
