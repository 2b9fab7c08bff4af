// Mutated sweeps are read or refused; nothing else may happen. The mutations are the same in every run.
#include <catch2/catch.hpp>

#include <random>
#include <string_view>

#include "experiments/import/yaml.hpp"
#include "sweeps.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

namespace {

std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % bound);
}

/// What means something to YAML, and to numbers.
constexpr std::string_view kTelling = "[]{}:,&*!|>'\"%@`#-\n\t 019.\\";

std::string mutated(std::string text, std::mt19937_64& random) {
  const std::size_t changes = 1 + below(random, 3);
  for (std::size_t i = 0; i < changes && text.size() > 8; ++i) {
    const std::size_t at = below(random, text.size()), length = 1 + below(random, 40);
    switch (below(random, 6)) {
      case 0:
        text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1u << below(random, 8)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(below(random, text.size()), text.substr(at, length));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        text.insert(at, 1, kTelling[below(random, kTelling.size())]);
        break;
      default:
        text[at] = static_cast<char>(' ' + below(random, 95));
        break;
    }
  }
  return text;
}

std::size_t fuzz(const std::string& name, int times, std::uint64_t seed) {
  const Catalog catalog;
  const std::string text = import::read_text(std::string(MANYWORLDS_SOURCE_DIR) + "/experiments/sweeps/" + name);
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
