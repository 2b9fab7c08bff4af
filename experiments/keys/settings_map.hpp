// The settings of one experiment: values by dotted key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/options.hpp"

namespace manyworlds::experiments {

/// Values by dotted key, with every default filled in: "strategy.tp" -> 8. A choice is stored as its name ("topology"
/// -> "fat_tree") beside its options ("topology.oversubscription" -> 4). Missing required values are absent. Each of
/// a hundred thousand experiments has some hundred settings, most of which they have in common: these lie in one block
/// that they share, and each experiment holds what it has otherwise.
class Settings {
 public:
  using value_type = std::pair<std::string, core::OptionValue>;

  /// Goes through the settings in the order of their keys.
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Settings::value_type;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = const value_type&;

    const_iterator() = default;
    reference operator*() const { return *at_; }
    pointer operator->() const { return at_; }
    const_iterator& operator++();
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const { return at_ == other.at_; }

   private:
    friend class Settings;
    void settle();

    const Settings* settings_ = nullptr;
    std::size_t shared_ = 0, hidden_ = 0, own_ = 0;  // places in shared_, hidden_ and own_ of the settings
    pointer at_ = nullptr;                           // null: the end
  };

  Settings() = default;
  Settings(std::initializer_list<value_type> settings);

  const_iterator begin() const { return lower_bound({}); }
  const_iterator end() const { return {}; }
  std::size_t size() const { return (shared_ ? shared_->size() : 0) - hidden_.size() + own_.size(); }
  bool empty() const { return size() == 0; }

  const_iterator lower_bound(std::string_view key) const;
  const_iterator find(std::string_view key) const;
  std::size_t count(std::string_view key) const { return value(key) == nullptr ? 0 : 1; }
  /// Returns whether there is a setting below `path`, which has no dot at its end.
  bool has_below(const std::string& path) const;
  /// Returns the value of a key; null if it is not there.
  const core::OptionValue* value(std::string_view key) const;
  /// Throws std::out_of_range for a key that is not there.
  const core::OptionValue& at(std::string_view key) const;
  core::OptionValue& at(std::string_view key);
  /// Returns the text that `key` has; empty if the key is not there.
  std::string text(std::string_view key) const;

  /// Returns the value of `key`, which is added if it is not there.
  core::OptionValue& operator[](std::string_view key);
  /// Gives `key` a value; takes the shared one if that is equal.
  void set(std::string_view key, core::OptionValue value);
  /// Adds a value unless the key has one; returns whether it was added.
  bool add(std::string_view key, core::OptionValue value);
  /// Returns how many settings it removed: 0 or 1.
  std::size_t erase(std::string_view key);
  void erase(const const_iterator& setting) { erase(std::string(setting->first)); }
  template <class Predicate>
  void erase_if(const Predicate& predicate) {
    std::vector<std::string> erased;
    for (const value_type& setting : *this)
      if (predicate(setting)) erased.push_back(setting.first);
    for (const std::string& key : erased) erase(key);
  }

  /// Puts all settings into a block that copies share.
  void share();
  /// Shares the block of `other`, after other.share(), and holds only what is otherwise there.
  void share_with(const Settings& other);
  /// Returns how many settings it holds beside the block that it shares.
  std::size_t unshared() const { return own_.size(); }
  /// Returns whether it shares its block with `other` and has the same settings below `path`, which ends in a dot;
  /// false may also mean that this is not known.
  bool same_below(std::string_view path, const Settings& other) const;
  /// The same for all settings that are not below `path`.
  bool same_outside(std::string_view path, const Settings& other) const;
  /// Takes the settings below `path` from `from`, which shares its block with this.
  void copy_below(std::string_view path, const Settings& from);

  bool operator==(const Settings& other) const;

 private:
  using Block = std::vector<value_type>;  // sorted by key

  /// Returns the place of a key in the shared block, if it has one there; Block::size() otherwise.
  std::size_t shared_place(std::string_view key) const;
  bool is_hidden(std::size_t place) const;
  struct Part;
  Part below(std::string_view path) const;
  void hide(std::size_t place);
  void reveal(std::size_t place);

  std::shared_ptr<const Block> shared_;
  std::vector<std::uint32_t> hidden_;  // places in shared_ that are not there, or that own_ replaces; ascending
  Block own_;                          // disjoint from what of shared_ is visible
};

}  // namespace manyworlds::experiments
