// Keys from canonical bytes: every value is written as a tag and its little-endian bytes, and every text with its
// length, so that no two different sequences of values give the same bytes. Two XXH3 streams with unrelated seeds
// digest them.
#include "core/sharing/key.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <memory>

#include "core/base/error.hpp"

namespace manyworlds::core::sharing {

namespace {

constexpr std::size_t kBlockBytes = 4096;  // values are buffered so that the hash function is called once per block
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

struct KeyWriter::State {
  Stream digest = open_stream(kDigestSeed);
  Stream check = open_stream(kCheckSeed);
  std::uint64_t length = 0;  // bytes written so far, including those in the block
  std::size_t block_used = 0;
  std::array<unsigned char, kBlockBytes> block;

  void flush() {
    feed(digest.get(), block.data(), block_used);
    feed(check.get(), block.data(), block_used);
    block_used = 0;
  }
  void append(Tag tag, std::uint64_t bits) {
    constexpr std::size_t size = 1 + sizeof bits;
    if (block_used + size > kBlockBytes) flush();
    bits = little_endian(bits);
    block[block_used] = tag;
    std::memcpy(block.data() + block_used + 1, &bits, sizeof bits);
    block_used += size;
    length += size;
  }
};

KeyWriter::KeyWriter(std::string_view domain) : state_(nullptr) {
  auto state = std::make_unique<State>();
  state_ = state.get();
  text(build_fingerprint());
  text(domain);
  state.release();
}

KeyWriter::~KeyWriter() {
  delete state_;
}

KeyWriter& KeyWriter::integer(std::int64_t value) {
  state_->append(kInteger, static_cast<std::uint64_t>(value));
  return *this;
}

KeyWriter& KeyWriter::real(double value) {
  state_->append(kReal, std::bit_cast<std::uint64_t>(value));
  return *this;
}

KeyWriter& KeyWriter::text(std::string_view value) {
  state_->append(kText, value.size());
  bytes(value.data(), value.size());
  return *this;
}

KeyWriter& KeyWriter::key(const Key& other) {
  for (const std::uint64_t word : {other.digest[0], other.digest[1], other.check[0], other.check[1], other.length})
    state_->append(kKey, word);
  return *this;
}

/// Returns the key of everything written so far; further values may be written afterwards.
Key KeyWriter::finish() {
  state_->flush();
  return {digest_of(state_->digest.get()), digest_of(state_->check.get()), state_->length};
}

void KeyWriter::bytes(const void* data, std::size_t size) {
  state_->length += size;
  if (size > kBlockBytes - state_->block_used) state_->flush();
  if (size > kBlockBytes) {
    feed(state_->digest.get(), data, size);
    feed(state_->check.get(), data, size);
  } else if (size > 0) {
    std::memcpy(state_->block.data() + state_->block_used, data, size);
    state_->block_used += size;
  }
}

}  // namespace manyworlds::core::sharing
