// What the program says, on its way to a terminal.
#include "farm/system/console.hpp"

#include <sstream>

#include <catch2/catch.hpp>

using namespace manyworlds::farm;

namespace {

/// A disk that is full after some bytes.
class FullBuffer final : public std::stringbuf {
 protected:
  std::streamsize xsputn(const char*, std::streamsize) override { return 0; }
  int_type overflow(int_type) override { return traits_type::eof(); }
};

}  // namespace

TEST_CASE("what a stream is given is visible text where it arrives, and the stream is its own again afterwards") {
  std::ostringstream stream;
  {
    const TerminalFilter filter(stream);
    stream << "a \x1b[31mname\xe2\x80\xae\n" << 1.5 << '\x07' << std::endl;
  }
  stream << "\x1b";
  CHECK(stream.str() == "a \\u001b[31mname\\u202e\n1.5\\u0007\n\x1b");
}

TEST_CASE("a character that comes byte by byte arrives whole, and half of one when the stream is flushed") {
  std::ostringstream stream;
  const TerminalFilter filter(stream);
  for (const char byte : std::string("größe 𝄞 \xc2\x9b")) stream << byte;
  CHECK(stream.str() == "größe 𝄞 \\u009b");
  stream << "\xe2\x80";
  CHECK(stream.str() == "größe 𝄞 \\u009b");
  stream << std::flush;
  CHECK(stream.str() == "größe 𝄞 \\u009b\\xe2\\x80");
  stream << "\xae" << std::flush;
  CHECK(stream.str() == "größe 𝄞 \\u009b\\xe2\\x80\\xae");
}

TEST_CASE("what cannot be written is an error of the stream") {
  FullBuffer full;
  std::ostream stream(&full);
  const TerminalFilter filter(stream);
  stream << "text";
  CHECK(!stream);
}

TEST_CASE("line ends of a message are its own, not those of the names in it") {
  CHECK(single_line(std::string("a\nb")) == "a\\u000ab");
  CHECK(single_line("a\nb") == "a\\u000ab");
  CHECK(single_line(3) == 3);
}
