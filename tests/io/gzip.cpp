// What is written compressed: any reader of gzip has the bytes again, whatever the pieces they came in.
#include "io/pictures/gzip.hpp"

#include <catch2/catch.hpp>
#include <random>

using namespace manyworlds;
using namespace manyworlds::io;

namespace {

std::string compressed(const std::string& bytes, std::size_t piece) {
  std::string all;
  GzipStream stream([&](std::string_view out) { all += out; });
  for (std::size_t begin = 0; begin < bytes.size(); begin += piece)
    stream.append(std::string_view(bytes).substr(begin, piece));
  stream.finish();
  return all;
}

/// Reads one gzip member by zlib itself, which checks its length and checksum.
std::string decompressed(const std::string& bytes, std::size_t size) {
  std::string all(size + 1, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  std::string from = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(all.data());
  stream.avail_out = static_cast<uInt>(all.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  all.resize(stream.total_out);
  inflateEnd(&stream);
  return all;
}

}  // namespace

TEST_CASE("what is compressed is read again, and does not depend on the pieces that it came in") {
  std::mt19937_64 random(3);
  std::string noise(300'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  for (const std::string& bytes : {std::string(), std::string("a"), std::string(1'000'000, 'x'), noise}) {
    const std::string whole = compressed(bytes, 1 << 30);
    CHECK(decompressed(whole, bytes.size()) == bytes);
    CHECK(compressed(bytes, 777) == whole);
  }
  CHECK(compressed(std::string(1'000'000, 'x'), 4'096).size() < 2'000);
}
