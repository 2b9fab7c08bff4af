#include "experiments/astra_sim/files/json_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::astra_sim {

using core::InputError;
using import::JsonView;

JsonKeys::JsonKeys(std::string_view text, std::string name)
    : name_(std::move(name)), document_(import::parse_json(text, name_)) {
  if (!document_.is_object()) throw InputError("must be an object of keys and values", name_);
}

void JsonKeys::check(const std::vector<std::string>& known, const char* what) const {
  for (const auto& [key, value] : document_.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw InputError(fmt::format("{}: is no key of {}{}", key.substr(0, 60), what, suggestion(key, known)), name_);
}

void JsonKeys::fail(const char* key, const std::string& right) const {
  std::string given = has(key) ? document_.at(key).dump(-1, ' ', true).substr(0, 60) : "nothing";
  throw InputError(fmt::format("{}: must be {}, not {}", key, right, given), name_);
}

std::int64_t JsonKeys::whole(const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
  if (!has(key)) return otherwise;
  try {
    return JsonView(document_.at(key), key).whole(least, most);
  } catch (const InputError&) {
    fail(key, fmt::format("an integer from {} to {}", least, most));
  }
}

double JsonKeys::number(const char* key, double otherwise, double most) const {
  if (!has(key)) return otherwise;
  const nlohmann::json& value = document_.at(key);
  if (!value.is_number() || !(value.get<double>() > 0 && value.get<double>() <= most))
    fail(key, fmt::format("a number above 0, up to {:g}", most));
  return value.get<double>();
}

bool JsonKeys::flag(const char* key) const {
  return whole(key, 0, 0, 1) != 0;
}

std::optional<std::string> JsonKeys::text(const char* key) const {
  if (!has(key)) return std::nullopt;
  if (!document_.at(key).is_string()) fail(key, "a text");
  return document_.at(key).get<std::string>();
}

std::vector<std::string> JsonKeys::texts(const char* key) const {
  std::vector<std::string> all;
  if (!has(key)) return all;
  const nlohmann::json& list = document_.at(key);
  const auto is_text = [](const nlohmann::json& one) { return one.is_string(); };
  if (!list.is_array() || list.empty() || !std::all_of(list.begin(), list.end(), is_text))
    fail(key, "a list of names, one per dimension of the network");
  for (const nlohmann::json& one : list) all.push_back(one.get<std::string>());
  return all;
}

}  // namespace manyworlds::experiments::astra_sim
