// Slot allocation in vectors. Objects of earlier problems are kept as spares, so that their memory is reused.
#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace manyworlds::core::network {

/// Appends an object and returns its slot. The object may be a spare with its previous contents.
template <class T>
std::uint32_t append_slot(std::vector<T>& objects, std::vector<T>& spares) {
  if (spares.empty()) {
    objects.emplace_back();
  } else {
    objects.push_back(std::move(spares.back()));
    spares.pop_back();
  }
  return static_cast<std::uint32_t>(objects.size() - 1);
}

/// Returns a free slot, or the slot of an appended object if none is free.
template <class T>
std::uint32_t acquire_slot(std::vector<std::uint32_t>& free, std::vector<T>& objects, std::vector<T>& spares) {
  if (free.empty()) return append_slot(objects, spares);
  const std::uint32_t slot = free.back();
  free.pop_back();
  return slot;
}

/// Moves all objects to the spares.
template <class T>
void recycle_all(std::vector<T>& objects, std::vector<T>& spares) {
  std::move(objects.begin(), objects.end(), std::back_inserter(spares));
  objects.clear();
}

}  // namespace manyworlds::core::network
