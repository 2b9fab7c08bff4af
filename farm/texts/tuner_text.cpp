#include "farm/texts/tuner_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>

#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::farm {

std::string tuner_text(const std::vector<core::step::TunerChoice>& choices) {
  constexpr int kFile = 0, kLibrary = std::numeric_limits<int>::max();  // files come first, the library last
  std::map<std::pair<int, std::string>, std::map<core::collective::Kind, int>> counts;  // by line and file
  for (const core::step::TunerChoice& one : choices)
    ++counts[{!one.file.empty() ? kFile : one.line > 0 ? one.line : kLibrary, one.file}][one.kind];
  std::vector<std::string> parts;
  for (const auto& [decider, kinds] : counts) {
    const auto& [line, file] = decider;
    std::vector<std::string> of_decider;
    for (const auto& [kind, count] : kinds) of_decider.push_back(fmt::format("{} {}", count, name_of(kind)));
    const std::string name = line == kLibrary ? "the library" : line == kFile ? file : fmt::format("line {}", line);
    parts.push_back(fmt::format("{}: {}", name, fmt::join(of_decider, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace manyworlds::farm
