// Errors as what is printed of them.
#include "core/base/error.hpp"

#include <catch2/catch.hpp>

using namespace manyworlds::core;

TEST_CASE("a refusal is one line whatever it quotes of the input") {
  const InputError error("node 'a\nb\x1b[31m\xff' is not known", "trace\n.et", 3);
  CHECK(std::string(error.what()) == "trace\\u000a.et:3: node 'a\\u000ab\\u001b[31m\\xff' is not known");
  CHECK(std::string(InputError("one\ttwo").what()) == "one\\u0009two");
  // Said again with its place, nothing is escaped twice.
  CHECK(std::string(InputError("'\n'").at("file.yaml", 7).what()) == "file.yaml:7: '\\u000a'");
  CHECK(std::string(InputError(InputError("'\n'").what()).what()) == "'\\u000a'");
}
