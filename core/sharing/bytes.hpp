// Results as bytes: fixed-width little-endian fields in a fixed order.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace manyworlds::core::sharing {

class ByteWriter {
 public:
  ByteWriter& integer(std::int64_t value) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
    out_.append(bytes, 8);
    return *this;
  }
  ByteWriter& real(double value) { return integer(std::bit_cast<std::int64_t>(value)); }
  ByteWriter& text(std::string_view value) {
    integer(static_cast<std::int64_t>(value.size()));
    out_.append(value);
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Throws InternalError where the bytes end too soon or counts cannot be.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  std::int64_t integer() {
    const std::string_view field = take(8);
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(field[static_cast<std::size_t>(i)])) << (8 * i);
    return static_cast<std::int64_t>(value);
  }
  double real() { return std::bit_cast<double>(integer()); }
  std::string text() { return std::string(take(count(1))); }
  /// A count of items of at least `each` bytes, which must fit what is left.
  std::size_t count(std::size_t each) {
    const std::int64_t value = integer();
    MANYWORLDS_CHECK(value >= 0 && static_cast<std::uint64_t>(value) <= bytes_.size() / each,
                     "count {} of {} bytes left", value, bytes_.size());
    return static_cast<std::size_t>(value);
  }
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
