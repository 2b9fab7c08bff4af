#include "experiments/text/json.hpp"

#include "core/base/error.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using nlohmann::json;

constexpr std::size_t kMaximumDepth = 64;

/// Whether brackets outside of texts are nested deeper than that; what is no JSON may be told either way.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool inside = false;  // a text
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (inside) {
      if (c == '\\') ++at;
      inside = c != '"';
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaximumDepth) return true;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    }
  }
  return false;
}

}  // namespace

json parse_json(std::string_view text, const std::string& name, std::size_t most) {
  if (text.size() > most) throw InputError(fmt::format("larger than {} bytes", most), name);
  if (too_deep(text)) throw InputError(fmt::format("nested deeper than {} levels", kMaximumDepth), name);
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("bad JSON: {}", error.what()), name);
  }
}

void JsonView::refuse(const std::string& wanted) const {
  throw InputError(fmt::format("'{}' must be {}, not {}", name_, wanted, value_.type_name()));
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

std::int64_t JsonView::whole(std::int64_t least, std::int64_t most) const {
  const bool fits = !value_.is_number_unsigned() ||
                    value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value_.is_number_integer() || !fits || value_.get<std::int64_t>() < least || value_.get<std::int64_t>() > most)
    refuse(fmt::format("a whole number from {} to {}", least, most));
  return value_.get<std::int64_t>();
}

double JsonView::number(double least) const {
  if (!value_.is_number() || !(value_.get<double>() >= least)) refuse(fmt::format("a number of at least {}", least));
  return value_.get<double>();
}

}  // namespace manyworlds::experiments::import
