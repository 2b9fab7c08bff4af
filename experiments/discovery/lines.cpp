#include "experiments/discovery/lines.hpp"

#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {

std::vector<std::string_view> words_of(std::string_view line) {
  return import::words_of(line, " \t");
}

std::optional<std::string_view> quoted_in(std::string_view line) {
  const std::size_t begin = line.find('"');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find('"', begin + 1);
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(begin + 1, end - begin - 1);
}

}  // namespace manyworlds::experiments::clusters
