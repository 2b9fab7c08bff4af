#include "farm/results/tuner_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>

#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::farm {

std::string tuner_text(const std::vector<core::step::TunerChoice>& choices) {
  constexpr int kLibrary = std::numeric_limits<int>::max();  // comes last
  std::map<int, std::map<core::collective::Kind, int>> counts;
  for (const core::step::TunerChoice& one : choices) ++counts[one.line == 0 ? kLibrary : one.line][one.kind];
  std::vector<std::string> parts;
  for (const auto& [line, kinds] : counts) {
    std::vector<std::string> of_line;
    for (const auto& [kind, count] : kinds) of_line.push_back(fmt::format("{} {}", count, name_of(kind)));
    parts.push_back(fmt::format("{}: {}", line == kLibrary ? "the library" : fmt::format("line {}", line),
                                fmt::join(of_line, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace manyworlds::farm
