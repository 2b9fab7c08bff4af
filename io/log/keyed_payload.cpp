#include "io/log/keyed_payload.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "io/log/little_endian.hpp"

namespace manyworlds::io {

namespace {

using core::sharing::Key;

constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kMaxExamples = 10;

std::uint64_t key_bound_checksum(std::string_view result, const Key& key) {
  std::string words;
  for (const std::uint64_t word : {key.digest[0], key.digest[1], key.check[0], key.check[1], key.length})
    put_little_endian(words, word);
  return XXH3_64bits_withSeed(result.data(), result.size(), XXH3_64bits(words.data(), words.size()));
}

}  // namespace

std::string keyed_payload(const Key& key, std::string_view result) {
  std::string payload(result);
  put_little_endian(payload, key_bound_checksum(result, key));
  return payload;
}

std::optional<std::string_view> verified_result(std::string_view payload, const Key& key) {
  if (payload.size() < kChecksumBytes) return {};
  const std::string_view result = payload.substr(0, payload.size() - kChecksumBytes);
  if (get_little_endian<std::uint64_t>(payload, result.size()) != key_bound_checksum(result, key)) return {};
  return result;
}

void InvalidRecords::add(std::uint64_t offset, const Key& key, std::string_view reason) {
  ++count;
  if (examples.size() < kMaxExamples) examples.push_back({offset, key, std::string(reason)});
}

std::string InvalidRecords::describe(const std::string& path) const {
  std::string lines;
  for (const InvalidRecord& one : examples)
    lines += fmt::format("{}: the record at byte {} does not hold the result of its key {}: {}\n", path, one.offset,
                         one.key.hex(), one.reason);
  if (count > examples.size())
    lines += fmt::format("{}: and {} records more of that kind\n", path, count - examples.size());
  return lines;
}

}  // namespace manyworlds::io
