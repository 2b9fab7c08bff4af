// A UTF-8 decoder for one character at a time (RFC 3629).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace manyworlds::core {

constexpr char32_t kInvalidUtf8 = 0xFFFFFFFF;

struct Utf8Character {
  std::size_t length;  // in bytes
  char32_t code;       // kInvalidUtf8 for a byte that begins no valid character; the length is then 1
};

/// Returns the number of bytes of a character that begins with `lead`, a byte >= 0xC0.
constexpr std::size_t utf8_length(unsigned lead) {
  return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

/// Returns the character at `text[at]`, which must exist. Overlong forms, surrogates and truncated characters are
/// invalid.
inline Utf8Character utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = utf8_length(lead);
  char32_t code = lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {1, kInvalidUtf8};
    code = code << 6u | (byte(i) & 0x3Fu);
  }
  constexpr char32_t kMinCode[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (lead < 0xC0 || code < kMinCode[length] || code > 0x10FFFF || surrogate) return {1, kInvalidUtf8};
  return {length, code};
}

}  // namespace manyworlds::core
