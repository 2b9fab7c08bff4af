#include "io/log/sealed.hpp"

#include <xxhash.h>

#include "io/log/little_endian.hpp"

namespace manyworlds::io {

namespace {
constexpr std::string_view kMagic = "MWSEALED";
constexpr std::size_t kSealBytes = 24;  // magic, size, checksum
}  // namespace

void seal(std::string& bytes) {
  const std::uint64_t size = bytes.size();
  const std::uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  bytes += kMagic;
  put_little_endian(bytes, size);
  put_little_endian(bytes, checksum);
}

std::optional<std::string_view> unseal(std::string_view sealed) {
  if (sealed.size() < kSealBytes) return {};
  const std::string_view bytes = sealed.substr(0, sealed.size() - kSealBytes);
  const std::string_view seal = sealed.substr(bytes.size());
  if (seal.substr(0, kMagic.size()) != kMagic) return {};
  if (get_little_endian<std::uint64_t>(seal, 8) != bytes.size()) return {};
  if (get_little_endian<std::uint64_t>(seal, 16) != XXH3_64bits(bytes.data(), bytes.size())) return {};
  return bytes;
}

}  // namespace manyworlds::io
