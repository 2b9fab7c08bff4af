// A first-in first-out queue of plain values in one ring of memory that only grows.
#pragma once

#include <cstddef>
#include <vector>

namespace manyworlds::core::network {

template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const T& front() const { return ring_[head_]; }
  const T& operator[](std::size_t i) const { return ring_[(head_ + i) & (ring_.size() - 1)]; }

  void push(const T& value) {
    if (size_ == ring_.size()) grow();
    ring_[(head_ + size_++) & (ring_.size() - 1)] = value;
  }
  void clear() { head_ = size_ = 0; }
  void pop() {
    head_ = (head_ + 1) & (ring_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 8 : 2 * ring_.size());  // a power of two
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    ring_.swap(larger);
    head_ = 0;
  }
  std::vector<T> ring_;
  std::size_t head_ = 0, size_ = 0;
};

}  // namespace manyworlds::core::network
