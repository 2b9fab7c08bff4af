// A set of packet numbers at or above a base that only increases: a ring buffer of bits that grows with the largest
// distance from the base.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace manyworlds::core::network::per_packet {

class BitWindow {
 public:
  std::uint32_t base() const { return base_; }
  std::uint32_t count() const { return count_; }

  bool test(std::uint32_t number) const {
    if (number - base_ >= capacity()) return false;
    return (words_[word(number)] >> number % 64 & 1) != 0;
  }
  /// Inserts `number`, which must be at or above the base. Returns true if it was not in the set.
  bool set(std::uint32_t number) {
    while (number - base_ >= capacity()) grow();
    std::uint64_t& bits = words_[word(number)];
    const std::uint64_t bit = 1ull << number % 64;
    if ((bits & bit) != 0) return false;
    bits |= bit;
    ++count_;
    return true;
  }
  /// Removes `number`. Returns true if it was in the set.
  bool clear(std::uint32_t number) {
    if (!test(number)) return false;
    words_[word(number)] &= ~(1ull << number % 64);
    --count_;
    return true;
  }
  /// Raises the base and removes all numbers below it.
  void move_to(std::uint32_t base) {
    for (; count_ > 0 && base_ < base; ++base_) clear(base_);
    base_ = base;
  }
  /// Moves the base past the contiguous numbers from it on that are in the set, and removes them.
  void skip_contiguous() {
    while (clear(base_)) ++base_;
  }
  /// Returns the lowest number; the set must not be empty.
  std::uint32_t lowest() const {
    std::uint32_t number = base_;
    if (const std::uint64_t bits = words_[word(number)] >> number % 64; bits != 0)
      return number + static_cast<std::uint32_t>(std::countr_zero(bits));
    for (number = (number / 64 + 1) * 64; words_[word(number)] == 0;) number += 64;
    return number + static_cast<std::uint32_t>(std::countr_zero(words_[word(number)]));
  }
  void reset() {
    words_.assign(words_.size(), 0);
    base_ = count_ = 0;
  }

 private:
  // One word stays unused, so that a word of the ring never represents two different ranges of numbers.
  std::uint32_t capacity() const { return words_.size() < 2 ? 0 : static_cast<std::uint32_t>(words_.size() - 1) * 64; }
  std::size_t word(std::uint32_t number) const { return number / 64 & (words_.size() - 1); }
  void grow() {
    std::vector<std::uint64_t> larger(words_.empty() ? 8 : 2 * words_.size());
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      const std::uint32_t at = base_ / 64 + i;
      larger[at & (larger.size() - 1)] = words_[at & (words_.size() - 1)];
    }
    words_.swap(larger);
  }
  std::vector<std::uint64_t> words_;
  std::uint32_t base_ = 0, count_ = 0;
};

}  // namespace manyworlds::core::network::per_packet
