// A first-in first-out queue of trivially copyable values in a ring buffer that only grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace manyworlds::core::network {

template <class T>
class Fifo {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Fifo() = default;
  Fifo(const Fifo& other) : size_(other.size_) {
    if (size_ > 0) reserve(other.capacity_);
    for (std::uint32_t i = 0; i < size_; ++i) ring_[i] = other[i];
  }
  Fifo(Fifo&& other) noexcept { swap(other); }
  Fifo& operator=(Fifo other) noexcept {
    swap(other);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const T& front() const { return ring_[head_]; }
  T& back() { return ring_[(head_ + size_ - 1) & (capacity_ - 1)]; }
  const T& operator[](std::size_t i) const { return ring_[(head_ + i) & (capacity_ - 1)]; }
  T& operator[](std::size_t i) { return ring_[(head_ + i) & (capacity_ - 1)]; }

  void push(const T& value) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    ring_[(head_ + size_++) & (capacity_ - 1)] = value;
  }
  void pop() {
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }
  void clear() { head_ = size_ = 0; }

 private:
  void reserve(std::uint32_t capacity) {  // a power of two
    ring_.reset(new T[capacity]);
    capacity_ = capacity;
  }
  [[gnu::noinline]] void grow() {
    Fifo larger;
    larger.reserve(ring_ ? 2 * capacity_ : 8);
    for (std::uint32_t i = 0; i < size_; ++i) larger.ring_[i] = (*this)[i];
    larger.size_ = size_;
    swap(larger);
  }
  void swap(Fifo& other) {
    std::swap(ring_, other.ring_), std::swap(capacity_, other.capacity_);
    std::swap(head_, other.head_), std::swap(size_, other.size_);
  }

  std::unique_ptr<T[]> ring_;
  std::uint32_t capacity_ = 0, head_ = 0, size_ = 0;
};

}  // namespace manyworlds::core::network
