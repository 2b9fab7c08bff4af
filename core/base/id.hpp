// Ids as types. A rank, a communicator and an instance of a collective are all numbers from 0; as types of their own,
// one where another is meant does not compile.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace manyworlds::core {

/// The number of one thing among others of its kind, from 0; `Tag` names the kind. It has the size of its number and
/// converts into one, or from one, only where that is written out.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto value) : value_(static_cast<std::uint32_t>(value)) {}

  constexpr std::uint32_t value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint32_t value_ = 0;
};

/// All ids below a number, ascending.
template <class Id>
class IdRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(std::uint32_t at) : at_(at) {}
    constexpr Id operator*() const { return Id(at_); }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::uint32_t at_;
  };
  constexpr explicit IdRange(std::integral auto size) : size_(static_cast<std::uint32_t>(size)) {}

  constexpr Iterator begin() const { return Iterator(0); }
  constexpr Iterator end() const { return Iterator(size_); }

 private:
  std::uint32_t size_;
};

/// A vector that is indexed by the ids of one kind of thing.
template <class Id, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t size) : elements_(size) {}
  IdVector(std::size_t size, const T& value) : elements_(size, value) {}
  explicit IdVector(std::vector<T> elements) : elements_(std::move(elements)) {}

  decltype(auto) operator[](Id id) { return elements_[id.value()]; }
  decltype(auto) operator[](Id id) const { return elements_[id.value()]; }

  std::size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  IdRange<Id> ids() const { return IdRange<Id>(size()); }
  /// Returns the id that the next element gets.
  Id next_id() const { return Id(size()); }

  auto begin() { return elements_.begin(); }
  auto begin() const { return elements_.begin(); }
  auto end() { return elements_.end(); }
  auto end() const { return elements_.end(); }
  decltype(auto) front() const { return elements_.front(); }
  decltype(auto) back() { return elements_.back(); }
  decltype(auto) back() const { return elements_.back(); }

  void push_back(T element) { elements_.push_back(std::move(element)); }
  template <class... Arguments>
  decltype(auto) emplace_back(Arguments&&... arguments) {
    return elements_.emplace_back(std::forward<Arguments>(arguments)...);
  }
  void resize(std::size_t size) { elements_.resize(size); }
  void resize(std::size_t size, const T& value) { elements_.resize(size, value); }
  void assign(std::size_t size, const T& value) { elements_.assign(size, value); }
  void clear() { elements_.clear(); }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> elements_;
};

}  // namespace manyworlds::core

template <class Tag>
struct std::hash<manyworlds::core::Id<Tag>> {
  std::size_t operator()(manyworlds::core::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>()(id.value()); }
};

template <class Tag>
struct fmt::formatter<manyworlds::core::Id<Tag>> : fmt::formatter<std::uint32_t> {
  template <class Context>
  auto format(manyworlds::core::Id<Tag> id, Context& context) const {
    return fmt::formatter<std::uint32_t>::format(id.value(), context);
  }
};
