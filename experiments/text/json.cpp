#include "experiments/text/json.hpp"

#include <algorithm>
#include <cstdio>

#include "experiments/text/json_syntax.hpp"

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

InputError bad_json(const json::exception& error, const std::string& name, std::string_view text, int line) {
  if (const auto fault = find_json_fault(text)) {
    const LineColumn at = place_of(text, fault->at);
    return InputError("bad JSON: " + fault->what, fmt::format("{}:{}", name, at.line), at.column);
  }
  // The syntax is right, and a text or a number is not: the library's words, behind its own place.
  std::string what = error.what();
  const auto drop_through = [&](const std::string& mark) {
    if (const std::size_t at = what.find(mark); at != std::string::npos) what.erase(0, at + mark.size());
  };
  int at_line = 0;
  const std::size_t place = what.find("line ");
  if (place != std::string::npos && std::sscanf(what.c_str() + place, "line %d", &at_line) == 1)
    drop_through(": ");
  else
    drop_through("] ");
  if (what.starts_with("syntax error while parsing ")) drop_through(" - ");
  return InputError("bad JSON: " + what, name, line > 0 ? line : std::max(at_line, 0));
}

json parse_json(std::string_view text, const std::string& name, std::size_t maximum) {
  check_json_limits(text, name, maximum);
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw bad_json(error, name, text);
  }
}

void JsonView::refuse(const std::string& expected) const {
  throw InputError(
      fmt::format("'{}' must be {}, not {}", name_, expected, value_.is_number() ? value_.dump() : value_.type_name()));
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
