// Keys of sub-simulations: a 128-bit digest of canonical bytes, with a second, independent digest and the length
// beside it so that a collision is an error, never a wrong answer.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace manyworlds::core::sharing {

struct Key {
  std::array<std::uint64_t, 2> digest{};
  std::array<std::uint64_t, 2> check{};
  std::uint64_t length = 0;
  auto operator<=>(const Key&) const = default;
  std::string hex() const;  // of the first digest, 32 characters
};

/// Canonical bytes, streamed into the digests as they are written; nothing is kept. finish() gives the key of what was
/// written so far.
class Writer {
 public:
  /// `domain` separates kinds of sub-simulation; the build's fingerprint is always the first thing written.
  explicit Writer(std::string_view domain);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Writer& integer(std::int64_t value);
  Writer& real(double value);  // by its bits
  Writer& text(std::string_view value);
  Writer& key(const Key& other);
  Key finish();

 private:
  void bytes(const void* data, std::size_t size);
  struct State;
  State* state_;
};

/// Fingerprint of the sources of core/ and topologies/, the compiler and its flags; made by CMake.
std::string_view build_fingerprint();

}  // namespace manyworlds::core::sharing
