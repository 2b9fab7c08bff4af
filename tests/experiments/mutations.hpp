// Deterministic damage to the text of an input: flipped bits, holes, repetitions, ends cut off, telling characters.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace manyworlds::experiments::testing {

inline std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % bound);
}

/// What means something to YAML, and to numbers.
inline constexpr std::string_view kTelling = "[]{}:,&*!|>'\"%@`#-\n\t 019.\\";

inline std::string mutated(std::string text, std::mt19937_64& random) {
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

}  // namespace manyworlds::experiments::testing
