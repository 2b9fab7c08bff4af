// The wire format of protocol buffers (protobuf.dev, "Encoding"), as far as Chakra's messages need it: an own reader,
// as 100 lines spare every build a library and a compiler of schemas, and say where in a file something is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace manyworlds::experiments::chakra {

/// How the value of a field is written.
enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // of all but bytes
  std::string_view bytes;
  std::size_t offset = 0;  // in the file
};

/// Reads the fields of one message, which lies in a file at `offset`. Every function throws InputError with the file
/// and the offset for what the format does not allow.
class WireReader {
 public:
  WireReader(std::string_view bytes, const std::string& name, std::size_t offset = 0)
      : bytes_(bytes), name_(name), begin_(offset) {}

  bool done() const { return at_ == bytes_.size(); }
  std::size_t offset() const { return begin_ + at_; }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      if (shift == 63 && byte > 1) break;
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    fail("a number of more than 64 bits");
  }
  /// Reads a length and returns that many bytes.
  std::string_view sized() {
    const std::uint64_t size = varint();
    if (size > bytes_.size() - at_)
      fail(fmt::format("a part of {} bytes where {} follow: the file is cut, or is no trace", size,
                       bytes_.size() - at_));
    return take(size);
  }
  WireField field() {
    WireField field;
    field.offset = offset();
    const std::uint64_t key = varint();
    field.number = static_cast<std::uint32_t>(key >> 3);
    if (field.number == 0 || key >> 32 != 0) fail("a field with no number");
    field.type = static_cast<WireType>(key & 7);
    switch (field.type) {
      case WireType::varint:
        field.value = varint();
        return field;
      case WireType::fixed64:
        field.value = fixed(8);
        return field;
      case WireType::fixed32:
        field.value = fixed(4);
        return field;
      case WireType::bytes:
        field.bytes = sized();
        return field;
    }
    fail(fmt::format("a field of wire type {}, which there is not", key & 7));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw core::InputError(fmt::format("has {} at byte {}", what, offset()), name_);
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size() - at_) fail("its end inside of a message");
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  std::uint64_t fixed(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(size);
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t begin_, at_ = 0;
};

/// Writes the fields of one message.
class WireWriter {
 public:
  void varint(std::uint64_t value) {
    for (; value > 127; value >>= 7) bytes_.push_back(static_cast<char>((value & 127) | 128));
    bytes_.push_back(static_cast<char>(value));
  }
  void sized(std::string_view bytes) {
    varint(bytes.size());
    bytes_.append(bytes);
  }
  void number(std::uint32_t field, std::uint64_t value) {
    key(field, WireType::varint);
    varint(value);
  }
  void fixed(std::uint32_t field, WireType type, std::uint64_t value) {
    key(field, type);
    for (int byte = 0; byte < (type == WireType::fixed64 ? 8 : 4); ++byte)
      bytes_.push_back(static_cast<char>((value >> (8 * byte)) & 255));
  }
  void bytes(std::uint32_t field, std::string_view bytes) {
    key(field, WireType::bytes);
    sized(bytes);
  }
  const std::string& written() const { return bytes_; }

 private:
  void key(std::uint32_t field, WireType type) { varint(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type)); }

  std::string bytes_;
};

}  // namespace manyworlds::experiments::chakra
