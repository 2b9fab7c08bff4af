#include "experiments/config/settings_map.hpp"

#include <algorithm>
#include <stdexcept>

namespace manyworlds::experiments {
namespace {

bool is_before(const Settings::value_type& setting, std::string_view key) {
  return setting.first < key;
}

}  // namespace

Settings::Settings(std::initializer_list<value_type> settings) {
  for (const auto& [key, value] : settings) add(key, value);
}

Settings::const_iterator Settings::lower_bound(std::string_view key) const {
  return std::lower_bound(begin(), end(), key, is_before);
}

Settings::const_iterator Settings::find(std::string_view key) const {
  const auto at = lower_bound(key);
  return at != end() && at->first == key ? at : end();
}

const core::OptionValue& Settings::at(std::string_view key) const {
  const auto found = find(key);
  if (found == end()) throw std::out_of_range("no setting '" + std::string(key) + "'");
  return found->second;
}

core::OptionValue& Settings::at(std::string_view key) {
  if (find(key) == end()) throw std::out_of_range("no setting '" + std::string(key) + "'");
  return (*this)[key];
}

std::string Settings::text(std::string_view key) const {
  const auto found = find(key);
  return found == end() ? std::string() : std::get<std::string>(found->second);
}

core::OptionValue& Settings::operator[](std::string_view key) {
  const auto at = std::lower_bound(settings_.begin(), settings_.end(), key, is_before);
  if (at != settings_.end() && at->first == key) return at->second;
  return settings_.emplace(at, std::string(key), core::OptionValue())->second;
}

bool Settings::add(std::string_view key, core::OptionValue value) {
  if (count(key) > 0) return false;
  (*this)[key] = std::move(value);
  return true;
}

std::size_t Settings::erase(std::string_view key) {
  const auto found = find(key);
  if (found == end()) return 0;
  settings_.erase(found);
  return 1;
}

}  // namespace manyworlds::experiments
