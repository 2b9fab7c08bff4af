// Keys: equal bytes give equal keys, unequal values never write equal bytes, and writing is fast.
#include "core/sharing/key.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <xxhash.h>

namespace {

using manyworlds::core::sharing::Key;
using manyworlds::core::sharing::KeyWriter;

Key key_of(const std::function<void(KeyWriter&)>& write, std::string_view domain = "test") {
  KeyWriter writer(domain);
  write(writer);
  return writer.finish();
}

}  // namespace

TEST_CASE("equal values in equal order give equal keys") {
  const auto write = [](KeyWriter& w) { w.integer(-7).real(0.25).text("ring").key(Key{{1, 2}, {3, 4}, 5}); };
  CHECK(key_of(write) == key_of(write));
}

TEST_CASE("every change of a value, of the order, of the type or of the domain changes both digests") {
  const std::vector<std::function<void(KeyWriter&)>> writes = {
      [](KeyWriter&) {},
      [](KeyWriter& w) { w.integer(0); },
      [](KeyWriter& w) { w.integer(0).integer(0); },
      [](KeyWriter& w) { w.integer(1).integer(2); },
      [](KeyWriter& w) { w.integer(2).integer(1); },
      [](KeyWriter& w) { w.integer(INT64_MIN); },
      [](KeyWriter& w) { w.real(0.0); },
      [](KeyWriter& w) { w.real(-0.0); },
      [](KeyWriter& w) { w.real(1.0); },
      [](KeyWriter& w) { w.text(""); },
      [](KeyWriter& w) { w.text("ab").text("c"); },
      [](KeyWriter& w) { w.text("a").text("bc"); },
      [](KeyWriter& w) { w.text("abc"); },
      [](KeyWriter& w) { w.text("abc").text(""); },
      [](KeyWriter& w) { w.text(std::string("abc\0", 4)); },
      [](KeyWriter& w) {
        w.key(Key{{1, 2}, {3, 4}, 5});
      },
      [](KeyWriter& w) {
        w.key(Key{{1, 2}, {3, 4}, 6});
      },
      [](KeyWriter& w) {
        w.key(Key{{2, 1}, {3, 4}, 5});
      },
      [](KeyWriter& w) { w.integer(1).integer(2).integer(3).integer(4).integer(5); },
  };
  std::set<std::array<std::uint64_t, 2>> digests, checks;
  std::set<std::string> names;
  for (const auto& write : writes)
    for (const std::string_view domain : {"kernel", "collective"}) {
      const Key key = key_of(write, domain);
      digests.insert(key.digest);
      checks.insert(key.check);
      names.insert(key.hex());
      CHECK(key.digest != key.check);
    }
  CHECK(digests.size() == 2 * writes.size());
  CHECK(checks.size() == 2 * writes.size());
  CHECK(names.size() == 2 * writes.size());
}

TEST_CASE("a text cannot imitate the values that follow it") {
  // The nine bytes that integer(0x41) writes, put inside a text instead, and a domain that swallows the first value.
  const std::string imitation = std::string("\1\x41", 2) + std::string(7, '\0');
  const Key two = key_of([](KeyWriter& w) { w.text("").integer(0x41); });
  const Key one = key_of([&](KeyWriter& w) { w.text(imitation); });
  CHECK(two.length == one.length);
  CHECK(two != one);
  CHECK(key_of([](KeyWriter& w) { w.text("b"); }, "a") != key_of([](KeyWriter&) {}, "ab"));
}

TEST_CASE("the length counts a tag and eight bytes a number and the characters of every text") {
  const std::uint64_t empty = 2 * 9 + manyworlds::core::sharing::build_fingerprint().size() + 4;
  CHECK(key_of([](KeyWriter&) {}).length == empty);
  CHECK(key_of([](KeyWriter& w) { w.integer(1).real(2).text("ring").key(Key{}); }).length == empty + 9 + 9 + 13 + 45);
}

TEST_CASE("a key is XXH3-128 of the documented bytes, wherever the blocks end") {
  // Written out byte by byte as docs/formats.md may tell another program, with texts around the block size.
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4000}, std::size_t{4096}, std::size_t{9001}}) {
    std::string expected;
    const auto number = [&](char tag, std::uint64_t bits) {
      expected += tag;
      for (int i = 0; i < 8; ++i) expected += static_cast<char>(bits >> (8 * i) & 0xff);
    };
    const auto text = [&](std::string_view value) {
      number(3, value.size());
      expected += value;
    };
    text(manyworlds::core::sharing::build_fingerprint());
    text("test");
    const std::string middle(size, 'x');
    const Key key = key_of([&](KeyWriter& w) {
      for (int i = 0; i < 500; ++i) w.integer(-i);
      w.text(middle).integer(42);
    });
    for (int i = 0; i < 500; ++i) number(1, static_cast<std::uint64_t>(std::int64_t{-i}));
    text(middle);
    number(1, 42);
    const XXH128_hash_t hash = XXH3_128bits_withSeed(expected.data(), expected.size(), 0x6d616e79776f726cULL);
    CHECK(key.digest == std::array<std::uint64_t, 2>{hash.high64, hash.low64});
    CHECK(key.length == expected.size());
  }
}

TEST_CASE("the hexadecimal form is the first digest, most significant digit first") {
  const Key key{{0x0123456789abcdef, 0xf}, {7, 7}, 7};
  CHECK(key.hex() == "0123456789abcdef000000000000000f");
}

TEST_CASE("the build's fingerprint is a SHA-256 in hexadecimal") {
  const std::string_view fingerprint = manyworlds::core::sharing::build_fingerprint();
  CHECK(fingerprint.size() == 64);
  CHECK(fingerprint.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

TEST_CASE("a million integers are written in well under a second") {
  const auto begin = std::chrono::steady_clock::now();
  KeyWriter writer("speed");
  for (std::int64_t i = 0; i < 1'000'000; ++i) writer.integer(i);
  const Key key = writer.finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(key.length > 9'000'000);
#if defined(__SANITIZE_ADDRESS__)
  CHECK(took.count() < 5);
#else
  CHECK(took.count() < 0.5);
#endif
}
