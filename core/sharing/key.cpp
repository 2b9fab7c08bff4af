// Canonical bytes: every value is a tag and its little-endian bytes, every text carries its length, so that no two
// sequences of values write the same bytes. Two XXH3 streams with unrelated seeds digest them.
#include "core/sharing/key.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <memory>

#include "core/base/error.hpp"

namespace manyworlds::core::sharing {

namespace {

constexpr std::size_t kBlockBytes = 4096;  // values are gathered so that the hash is called once a block
constexpr XXH64_hash_t kDigestSeed = 0x6d616e79776f726cULL;
constexpr XXH64_hash_t kCheckSeed = 0x9e3779b97f4a7c15ULL;

enum Tag : std::uint8_t { kInteger = 1, kReal, kText, kKey };

struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using Stream = std::unique_ptr<XXH3_state_t, FreeState>;

Stream open_stream(XXH64_hash_t seed) {
  Stream stream(XXH3_createState());
  MANYWORLDS_CHECK(stream && XXH3_128bits_reset_withSeed(stream.get(), seed) == XXH_OK, "seed {:x}", seed);
  return stream;
}

void feed(XXH3_state_t* stream, const void* data, std::size_t size) {
  MANYWORLDS_CHECK(XXH3_128bits_update(stream, data, size) == XXH_OK, "{} bytes", size);
}

std::array<std::uint64_t, 2> digest_of(const XXH3_state_t* stream) {
  const XXH128_hash_t hash = XXH3_128bits_digest(stream);
  return {hash.high64, hash.low64};
}

constexpr std::uint64_t little_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

}  // namespace

std::string Key::hex() const {
  return fmt::format("{:016x}{:016x}", digest[0], digest[1]);
}

struct Writer::State {
  Stream digest = open_stream(kDigestSeed);
  Stream check = open_stream(kCheckSeed);
  std::uint64_t length = 0;  // of everything written, the block included
  std::size_t used = 0;
  std::array<unsigned char, kBlockBytes> block;

  void flush() {
    feed(digest.get(), block.data(), used);
    feed(check.get(), block.data(), used);
    used = 0;
  }
  void number(Tag tag, std::uint64_t bits) {
    constexpr std::size_t size = 1 + sizeof bits;
    if (used + size > kBlockBytes) flush();
    bits = little_endian(bits);
    block[used] = tag;
    std::memcpy(block.data() + used + 1, &bits, sizeof bits);
    used += size;
    length += size;
  }
};

Writer::Writer(std::string_view domain) : state_(nullptr) {
  auto state = std::make_unique<State>();
  state_ = state.get();
  text(build_fingerprint());
  text(domain);
  state.release();
}

Writer::~Writer() {
  delete state_;
}

Writer& Writer::integer(std::int64_t value) {
  state_->number(kInteger, static_cast<std::uint64_t>(value));
  return *this;
}

Writer& Writer::real(double value) {
  state_->number(kReal, std::bit_cast<std::uint64_t>(value));
  return *this;
}

Writer& Writer::text(std::string_view value) {
  state_->number(kText, value.size());
  bytes(value.data(), value.size());
  return *this;
}

Writer& Writer::key(const Key& other) {
  for (const std::uint64_t word : {other.digest[0], other.digest[1], other.check[0], other.check[1], other.length})
    state_->number(kKey, word);
  return *this;
}

/// The key of what was written so far; writing may go on.
Key Writer::finish() {
  state_->flush();
  return {digest_of(state_->digest.get()), digest_of(state_->check.get()), state_->length};
}

void Writer::bytes(const void* data, std::size_t size) {
  state_->length += size;
  if (size > kBlockBytes - state_->used) state_->flush();
  if (size > kBlockBytes) {
    feed(state_->digest.get(), data, size);
    feed(state_->check.get(), data, size);
  } else if (size > 0) {
    std::memcpy(state_->block.data() + state_->used, data, size);
    state_->used += size;
  }
}

}  // namespace manyworlds::core::sharing
