// A two-level bitmap of N places that finds the next occupied place in a few instructions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace manyworlds::core::network {

template <std::uint32_t N>
class OccupancyBitmap {
 public:
  void set(std::uint32_t place) {
    words_[place / 64] |= 1ull << place % 64;
    summary_[place / 4096] |= 1ull << place / 64 % 64;
  }
  void clear(std::uint32_t place) {
    if ((words_[place / 64] &= ~(1ull << place % 64)) == 0) summary_[place / 4096] &= ~(1ull << place / 64 % 64);
  }
  /// Returns the first occupied place at or after `from`, wrapping around; N if no place is occupied.
  std::uint32_t next(std::uint32_t from) const {
    const std::uint32_t found = first(from);
    return found < N || from == 0 ? found : first(0);
  }

 private:
  std::uint32_t first(std::uint32_t from) const {
    if (from >= N) return N;
    if (const std::uint64_t here = words_[from / 64] >> from % 64; here != 0)
      return from + static_cast<std::uint32_t>(std::countr_zero(here));
    std::uint32_t word = from / 64 + 1;
    while (word < N / 64) {
      if (const std::uint64_t some = summary_[word / 64] >> word % 64; some != 0) {
        word += static_cast<std::uint32_t>(std::countr_zero(some));
        return word * 64 + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
      }
      word = (word / 64 + 1) * 64;
    }
    return N;
  }
  std::array<std::uint64_t, N / 64> words_{};
  std::array<std::uint64_t, (N / 64 + 63) / 64> summary_{};
};

}  // namespace manyworlds::core::network
