// Mutated sweeps are read or refused; nothing else may happen. The mutations are the same in every run.
#include <catch2/catch.hpp>

#include <random>

#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/experiments/sweeps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::testing;

namespace {

std::size_t fuzz(const std::string& name, int times, std::uint64_t seed) {
  const Catalog catalog;
  const std::string text = import::read_text(source_folder() + "/experiments/sweeps/" + name);
  std::mt19937_64 random(seed);
  std::size_t refused = 0;
  for (int i = 0; i < times; ++i) {
    const std::string bent = mutated(text, random);
    CAPTURE(bent);
    try {
      const Sweep sweep = parse_sweep(bent, name, {}, catalog);
      REQUIRE_FALSE(sweep.experiments.empty());
    } catch (const core::InputError& error) {
      ++refused;
      REQUIRE(std::string(error.what()).rfind(name, 0) == 0);
    }
  }
  return refused;
}

}  // namespace

TEST_CASE("mutated sweeps are read or refused with the file's name") {
  // Most mutations hit a key, a bracket or a value; some hit a comment or a blank and change nothing.
  const std::size_t tiny = fuzz("tiny.yaml", 1'800, 1), first = fuzz("first.yaml", 200, 2);
  CHECK(tiny > 600);
  CHECK(tiny < 1'800);
  CHECK(first > 60);
}
