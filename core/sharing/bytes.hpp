// Serialization of results and messages as bytes: fixed-width little-endian fields in a fixed order, without field
// names, so that reader and writer must use the same sequence.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/base/error.hpp"

namespace manyworlds::core::sharing {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  /// Appends sizeof(T) bytes.
  template <Plain T>
  ByteWriter& put(T value) {
    auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
    if (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
    out_.append(bytes.data(), bytes.size());
    return *this;
  }
  ByteWriter& integer(std::int64_t value) { return put(value); }
  ByteWriter& real(double value) { return put(value); }
  ByteWriter& text(std::string_view value) {
    integer(static_cast<std::int64_t>(value.size()));
    out_.append(value);
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what a ByteWriter wrote. Throws InternalError if the bytes end too early or a count is impossible.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <Plain T>
  T get() {
    std::array<char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), take(sizeof(T)).data(), sizeof(T));
    if (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<T>(bytes);
  }
  std::int64_t integer() { return get<std::int64_t>(); }
  double real() { return get<double>(); }
  std::string text() { return std::string(view()); }
  std::string_view view() { return take(count(1)); }  // a text in place: valid as long as the bytes it was read from
  /// Reads a count of items of at least `min_item_bytes` each, which must fit into the remaining bytes.
  std::size_t count(std::size_t min_item_bytes) {
    const std::int64_t value = integer();
    MANYWORLDS_CHECK(value >= 0 && static_cast<std::uint64_t>(value) <= bytes_.size() / min_item_bytes,
                     "count {} of {} bytes left", value, bytes_.size());
    return static_cast<std::size_t>(value);
  }
  /// Checks that all bytes were read.
  void end() const { MANYWORLDS_CHECK(bytes_.empty(), "{} bytes too many", bytes_.size()); }

 private:
  std::string_view take(std::size_t size) {
    MANYWORLDS_CHECK(size <= bytes_.size(), "{} bytes wanted, {} left", size, bytes_.size());
    const std::string_view field = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return field;
  }
  std::string_view bytes_;
};

}  // namespace manyworlds::core::sharing
