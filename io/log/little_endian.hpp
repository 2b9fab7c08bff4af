// Integers as bytes, least significant first on every machine: the one encoding of all our binary formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace manyworlds::io {

template <class Unsigned>
void put_little_endian(std::string& to, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) to.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

/// Reads an integer at `offset`; the caller guarantees that the bytes exist.
template <class Unsigned>
Unsigned get_little_endian(std::string_view from, std::size_t offset) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    const auto byte = static_cast<unsigned char>(from[offset + i]);
    value = static_cast<Unsigned>(value | (static_cast<Unsigned>(byte) << (8 * i)));
  }
  return value;
}

}  // namespace manyworlds::io
