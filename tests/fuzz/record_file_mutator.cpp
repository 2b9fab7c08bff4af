#include "tests/fuzz/record_file_mutator.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "io/log/keyed_payload.hpp"
#include "io/log/little_endian.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace manyworlds::fuzz {

namespace {

constexpr std::size_t kRecordHeaderBytes = 72;

void set_word(std::string& bytes, std::size_t offset, std::uint64_t word) {
  std::string encoded;
  io::put_little_endian(encoded, word);
  bytes.replace(offset, encoded.size(), encoded);
}

/// A file header of build `build-1`, whose checksum fits.
std::string file_header() {
  std::string header = "MWRECLOG";
  io::put_little_endian(header, std::uint32_t{1});
  io::put_little_endian(header, std::uint32_t{7});
  header += "build-1";
  io::put_little_endian(header, static_cast<std::uint64_t>(XXH3_64bits(header.data(), header.size())));
  return header;
}

/// Keys are few, so that records repeat each other's, wholly or in part.
void append_record(std::string& bytes, std::mt19937& random) {
  bytes += "MWRC";
  io::put_little_endian(bytes, static_cast<std::uint32_t>(random() % 3));
  const std::size_t payload = random() % 4 == 0 ? 0 : random() % 100;
  io::put_little_endian(bytes, static_cast<std::uint64_t>(payload));
  for (int word = 0; word < 5; ++word) io::put_little_endian(bytes, std::uint64_t{random() % 3});
  bytes += std::string(16, '\0');  // checksums, made to fit below
  for (std::size_t i = 0; i < payload; ++i) bytes += static_cast<char>(random());
}

/// Makes the inner check of a result fit, where there is room for one.
void repair_inside(std::string& bytes, std::size_t at, std::size_t payload) {
  constexpr std::size_t kCheckBytes = 8, kKey = 16;
  if (payload < kCheckBytes) return;
  core::sharing::Key key;
  std::size_t from = at + kKey;
  for (std::uint64_t* word : {&key.digest[0], &key.digest[1], &key.check[0], &key.check[1], &key.length}) {
    *word = io::get_little_endian<std::uint64_t>(bytes, from);
    from += sizeof *word;
  }
  const std::string result = bytes.substr(at + kRecordHeaderBytes, payload - kCheckBytes);
  bytes.replace(at + kRecordHeaderBytes, payload, io::keyed_payload(key, result));
}

/// Walks the records as a reader would and makes every marker and checksum fit.
void repair(std::string& bytes, std::mt19937& random) {
  std::size_t at = file_header().size();
  while (at <= bytes.size() && bytes.size() - at >= kRecordHeaderBytes) {
    bytes.replace(at, 4, "MWRC");
    if (random() % 16 == 0) set_word(bytes, at + 8, random() % 2 ? std::uint64_t{1} << (random() % 64) : ~0ull);
    const auto payload = io::get_little_endian<std::uint64_t>(bytes, at + 8);
    const std::size_t left = bytes.size() - at - kRecordHeaderBytes;
    if (payload <= left && random() % 2 == 0) repair_inside(bytes, at, static_cast<std::size_t>(payload));
    if (payload <= left && random() % 8 != 0)
      set_word(bytes, at + 56, XXH3_64bits(bytes.data() + at + kRecordHeaderBytes, payload));
    set_word(bytes, at + 64, XXH3_64bits_withSeed(bytes.data() + at, 64, at));
    if (payload > left) return;
    at += kRecordHeaderBytes + static_cast<std::size_t>(payload);
  }
}

}  // namespace

std::size_t mutate_record_file(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes;
  if (size < file_header().size()) {
    bytes = file_header();
  } else {
    if (random() % 4 != 0) size = LLVMFuzzerMutate(data, size, max_size);
    bytes.assign(reinterpret_cast<const char*>(data), size);
  }
  if (random() % 3 == 0) append_record(bytes, random);
  if (random() % 2 == 0) {
    if (bytes.size() >= file_header().size()) bytes.replace(0, file_header().size(), file_header());
    repair(bytes, random);
  }
  const std::size_t kept = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), kept);
  return kept;
}

}  // namespace manyworlds::fuzz
