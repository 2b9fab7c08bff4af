// The settings of one experiment: values by dotted key.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// Values by dotted key, with every default filled in: "strategy.tp" -> 8. A choice is stored as its name ("topology"
/// -> "fat_tree") beside its options ("topology.oversubscription" -> 4). Missing required values are absent. Each of
/// a hundred thousand experiments has some hundred settings, so they lie in one block, sorted by key.
class Settings {
 public:
  using value_type = std::pair<std::string, core::OptionValue>;
  using const_iterator = std::vector<value_type>::const_iterator;

  Settings() = default;
  Settings(std::initializer_list<value_type> settings);

  const_iterator begin() const { return settings_.begin(); }
  const_iterator end() const { return settings_.end(); }
  std::size_t size() const { return settings_.size(); }
  bool empty() const { return settings_.empty(); }

  const_iterator lower_bound(std::string_view key) const;
  const_iterator find(std::string_view key) const;
  std::size_t count(std::string_view key) const { return find(key) == end() ? 0 : 1; }
  /// Throws std::out_of_range for a key that is not there.
  const core::OptionValue& at(std::string_view key) const;
  core::OptionValue& at(std::string_view key);
  /// Returns the text that `key` has; empty if the key is not there.
  std::string text(std::string_view key) const;

  /// Returns the value of `key`, which is added if it is not there.
  core::OptionValue& operator[](std::string_view key);
  /// Adds a value unless the key has one; returns whether it was added.
  bool add(std::string_view key, core::OptionValue value);
  /// Returns how many settings it removed: 0 or 1.
  std::size_t erase(std::string_view key);
  void erase(const_iterator setting) { settings_.erase(setting); }
  template <class Predicate>
  void erase_if(const Predicate& predicate) {
    std::erase_if(settings_, predicate);
  }

  bool operator==(const Settings&) const = default;

 private:
  std::vector<value_type> settings_;
};

}  // namespace manyworlds::experiments
