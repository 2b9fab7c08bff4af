#include "experiments/keys/settings_map.hpp"

#include <algorithm>
#include <ranges>
#include <span>
#include <stdexcept>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::experiments {
namespace {

bool is_before(const Settings::value_type& setting, std::string_view key) {
  return setting.first < key;
}

/// Returns the setting of a key in a sorted block; null if it has none.
template <class Block>
auto* find_in(Block& block, std::string_view key) {
  const auto at = std::lower_bound(block.begin(), block.end(), key, is_before);
  return at != block.end() && at->first == key ? &*at : nullptr;
}

}  // namespace

/// Skips what is hidden, and takes the first of the two that are next.
void Settings::const_iterator::settle() {
  const std::vector<std::uint32_t>& hidden = settings_->hidden_;
  const std::size_t shared_size = settings_->shared_ ? settings_->shared_->size() : 0;
  while (hidden_ < hidden.size() && hidden[hidden_] == shared_) ++hidden_, ++shared_;
  const value_type* shared = shared_ < shared_size ? &(*settings_->shared_)[shared_] : nullptr;
  const value_type* own = own_ < settings_->own_.size() ? &settings_->own_[own_] : nullptr;
  at_ = shared == nullptr || (own != nullptr && own->first < shared->first) ? own : shared;
}

Settings::const_iterator& Settings::const_iterator::operator++() {
  const bool was_own = own_ < settings_->own_.size() && at_ == &settings_->own_[own_];
  ++(was_own ? own_ : shared_);
  settle();
  return *this;
}

Settings::Settings(std::initializer_list<value_type> settings) {
  for (const auto& [key, value] : settings) add(key, value);
}

std::size_t Settings::shared_place(std::string_view key) const {
  if (!shared_) return 0;
  const value_type* found = find_in(*shared_, key);
  return found == nullptr ? shared_->size() : static_cast<std::size_t>(found - shared_->data());
}

bool Settings::is_hidden(std::size_t place) const {
  return std::binary_search(hidden_.begin(), hidden_.end(), static_cast<std::uint32_t>(place));
}

void Settings::hide(std::size_t place) {
  const auto number = static_cast<std::uint32_t>(place);
  hidden_.insert(std::lower_bound(hidden_.begin(), hidden_.end(), number), number);
}

void Settings::reveal(std::size_t place) {
  const auto number = static_cast<std::uint32_t>(place);
  if (const auto at = std::lower_bound(hidden_.begin(), hidden_.end(), number); at != hidden_.end() && *at == number)
    hidden_.erase(at);
}

Settings::const_iterator Settings::lower_bound(std::string_view key) const {
  const_iterator result;
  result.settings_ = this;
  if (shared_)
    result.shared_ =
        static_cast<std::size_t>(std::lower_bound(shared_->begin(), shared_->end(), key, is_before) - shared_->begin());
  result.hidden_ =
      static_cast<std::size_t>(std::lower_bound(hidden_.begin(), hidden_.end(), result.shared_) - hidden_.begin());
  result.own_ = static_cast<std::size_t>(std::lower_bound(own_.begin(), own_.end(), key, is_before) - own_.begin());
  result.settle();
  return result;
}

Settings::const_iterator Settings::find(std::string_view key) const {
  const auto at = lower_bound(key);
  return at != end() && at->first == key ? at : end();
}

bool Settings::has_below(const std::string& path) const {
  const auto first = lower_bound(path + ".");
  return first != end() && first->first.starts_with(path + ".");
}

const core::OptionValue* Settings::value(std::string_view key) const {
  if (!own_.empty())
    if (const value_type* own = find_in(own_, key)) return &own->second;
  if (!shared_) return nullptr;
  const std::size_t place = shared_place(key);
  return place == shared_->size() || is_hidden(place) ? nullptr : &(*shared_)[place].second;
}

const core::OptionValue& Settings::at(std::string_view key) const {
  const core::OptionValue* found = value(key);
  if (found == nullptr) throw std::out_of_range("no setting '" + std::string(key) + "'");
  return *found;
}

core::OptionValue& Settings::at(std::string_view key) {
  if (value(key) == nullptr) throw std::out_of_range("no setting '" + std::string(key) + "'");
  return (*this)[key];
}

std::string Settings::text(std::string_view key) const {
  const core::OptionValue* found = value(key);
  return found == nullptr ? std::string() : std::get<std::string>(*found);
}

core::OptionValue& Settings::operator[](std::string_view key) {
  const auto at = std::lower_bound(own_.begin(), own_.end(), key, is_before);
  if (at != own_.end() && at->first == key) return at->second;
  core::OptionValue before;
  if (const std::size_t place = shared_place(key); shared_ && place < shared_->size() && !is_hidden(place)) {
    before = (*shared_)[place].second;
    hide(place);
  }
  return own_.emplace(at, std::string(key), std::move(before))->second;
}

void Settings::set(std::string_view key, core::OptionValue value) {
  const auto at = std::lower_bound(own_.begin(), own_.end(), key, is_before);
  const bool is_own = at != own_.end() && at->first == key;
  const std::size_t place = shared_place(key);
  if (shared_ && place < shared_->size()) {
    if ((*shared_)[place].second == value) {
      if (is_own) own_.erase(at);
      return reveal(place);
    }
    if (!is_own && !is_hidden(place)) hide(place);
  }
  if (is_own)
    at->second = std::move(value);
  else
    own_.emplace(at, std::string(key), std::move(value));
}

bool Settings::add(std::string_view key, core::OptionValue value) {
  if (count(key) > 0) return false;
  set(key, std::move(value));
  return true;
}

std::size_t Settings::erase(std::string_view key) {
  if (const auto at = std::lower_bound(own_.begin(), own_.end(), key, is_before);
      at != own_.end() && at->first == key) {
    own_.erase(at);
    return 1;
  }
  const std::size_t place = shared_place(key);
  if (!shared_ || place == shared_->size() || is_hidden(place)) return 0;
  hide(place);
  return 1;
}

void Settings::share() {
  if (hidden_.empty() && own_.empty()) return;
  shared_ = std::make_shared<const Block>(begin(), end());
  hidden_.clear();
  own_.clear();
}

void Settings::share_with(const Settings& other) {
  Settings result;
  result.shared_ = other.shared_;
  if (other.shared_)
    for (std::uint32_t place = 0; place < other.shared_->size(); ++place) result.hidden_.push_back(place);
  for (const auto& [key, value] : *this) result.set(key, value);
  *this = std::move(result);
}

/// The places of what is below a path.
struct Settings::Part {
  std::size_t hidden = 0, hidden_end = 0, own = 0, own_end = 0;
};

Settings::Part Settings::below(std::string_view path) const {
  const auto is_below = [&](const value_type& setting) { return setting.first.compare(0, path.size(), path) <= 0; };
  const auto range_in = [&](const Block& block) {
    const auto first = std::lower_bound(block.begin(), block.end(), path, is_before);
    const auto last = std::partition_point(first, block.end(), is_below);
    return std::pair{static_cast<std::size_t>(first - block.begin()), static_cast<std::size_t>(last - block.begin())};
  };
  Part part;
  std::tie(part.own, part.own_end) = range_in(own_);
  if (!shared_) return part;
  const auto [begin, end] = range_in(*shared_);
  const auto place = [&](std::size_t at) {
    return static_cast<std::size_t>(std::lower_bound(hidden_.begin(), hidden_.end(), at) - hidden_.begin());
  };
  part.hidden = place(begin);
  part.hidden_end = place(end);
  return part;
}

namespace {

template <class Values>
bool equal_parts(const Values& mine, std::size_t begin, std::size_t end, const Values& theirs, std::size_t first,
                 std::size_t last) {
  return std::ranges::equal(std::span(mine).subspan(begin, end - begin),
                            std::span(theirs).subspan(first, last - first));
}

}  // namespace

bool Settings::same_below(std::string_view path, const Settings& other) const {
  if (shared_ != other.shared_) return false;
  const Part mine = below(path), theirs = other.below(path);
  return equal_parts(hidden_, mine.hidden, mine.hidden_end, other.hidden_, theirs.hidden, theirs.hidden_end) &&
         equal_parts(own_, mine.own, mine.own_end, other.own_, theirs.own, theirs.own_end);
}

bool Settings::same_outside(std::string_view path, const Settings& other) const {
  if (shared_ != other.shared_) return false;
  const Part mine = below(path), theirs = other.below(path);
  return equal_parts(hidden_, 0, mine.hidden, other.hidden_, 0, theirs.hidden) &&
         equal_parts(hidden_, mine.hidden_end, hidden_.size(), other.hidden_, theirs.hidden_end,
                     other.hidden_.size()) &&
         equal_parts(own_, 0, mine.own, other.own_, 0, theirs.own) &&
         equal_parts(own_, mine.own_end, own_.size(), other.own_, theirs.own_end, other.own_.size());
}

void Settings::copy_below(std::string_view path, const Settings& from) {
  MANYWORLDS_CHECK(shared_ == from.shared_, "settings of two blocks");
  const Part mine = below(path), theirs = from.below(path);
  const auto replace = [](auto& all, std::size_t begin, std::size_t end, const auto& with, std::size_t first,
                          std::size_t last) {
    const auto at = [](auto& of, std::size_t place) { return of.begin() + static_cast<std::ptrdiff_t>(place); };
    all.insert(all.erase(at(all, begin), at(all, end)), at(with, first), at(with, last));
  };
  replace(hidden_, mine.hidden, mine.hidden_end, from.hidden_, theirs.hidden, theirs.hidden_end);
  replace(own_, mine.own, mine.own_end, from.own_, theirs.own, theirs.own_end);
}

bool Settings::operator==(const Settings& other) const {
  if (shared_ == other.shared_ && hidden_ == other.hidden_ && own_ == other.own_) return true;
  return size() == other.size() && std::equal(begin(), end(), other.begin());
}

}  // namespace manyworlds::experiments
