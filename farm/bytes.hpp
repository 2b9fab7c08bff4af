// Plain values to bytes and back, for messages between processes of one build on machines of one kind.
// A reader that runs out throws InternalError: only our own programs write what it reads.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/error.hpp"

namespace manyworlds::farm {

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> ByteWriter& put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
    return *this;
  }
  ByteWriter& put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> T get() {
    T value;
    std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint64_t>();
    return std::string(cut(size));
  }
  bool at_end() const { return bytes_.empty(); }
  /// A count of things that take at least `smallest` bytes each: never more than what is left could hold.
  std::uint64_t count(std::size_t smallest) {
    const auto many = get<std::uint64_t>();
    MANYWORLDS_CHECK(many <= bytes_.size() / smallest, "{} items in {} bytes", many, bytes_.size());
    return many;
  }

 private:
  std::string_view cut(std::uint64_t size) {
    MANYWORLDS_CHECK(size <= bytes_.size(), "message ends {} bytes early", size - bytes_.size());
    const std::string_view front = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return front;
  }
  std::string_view bytes_;
};

}  // namespace manyworlds::farm
