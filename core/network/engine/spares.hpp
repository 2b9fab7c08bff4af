// Things by slot, and those of problems before, whose memory is used again.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace manyworlds::core::network {

/// The slot of one more, which may hold what it held before.
template <class T>
std::uint32_t add_slot(std::vector<T>& used, std::vector<T>& spare) {
  if (spare.empty()) {
    used.emplace_back();
  } else {
    used.push_back(std::move(spare.back()));
    spare.pop_back();
  }
  return static_cast<std::uint32_t>(used.size() - 1);
}

/// A free slot, or that of one more.
template <class T>
std::uint32_t take_slot(std::vector<std::uint32_t>& free, std::vector<T>& used, std::vector<T>& spare) {
  if (free.empty()) return add_slot(used, spare);
  const std::uint32_t slot = free.back();
  free.pop_back();
  return slot;
}

template <class T>
void put_aside(std::vector<T>& used, std::vector<T>& spare) {
  std::move(used.begin(), used.end(), std::back_inserter(spare));
  used.clear();
}

}  // namespace manyworlds::core::network
