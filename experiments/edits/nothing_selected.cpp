#include "experiments/edits/nothing_selected.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "experiments/edits/select.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::edits {
namespace {

using programs::RankProgram;
using programs::StreamOp;
using programs::StreamPrograms;

/// A key of selections, in the order in which they are looked at.
struct Pattern {
  const char* key;  // null: the kind
  std::string Selection::*text;
  /// Returns what the pattern is compared with.
  std::string (*of)(const StreamPrograms& all, const RankProgram& program, const StreamOp& op);
};

constexpr std::array<Pattern, 6> kPatterns{
    {{nullptr, &Selection::what,
      [](const auto& all, const auto&, const auto& op) { return std::string(kind_text(all, op)); }},
     {"in", &Selection::dimension,
      [](const auto& all, const auto&, const auto& op) { return std::string(dimension_of(all, op)); }},
     {"part", &Selection::part, [](const auto&, const auto&, const auto& op) { return std::string(part_of(op)); }},
     {"gemm", &Selection::gemm, [](const auto&, const auto&, const auto& op) { return product_text(op); }},
     {"stream", &Selection::stream,
      [](const auto&, const auto& program, const auto& op) { return program.streams[op.stream].name; }},
     {"name", &Selection::name, [](const auto& all, const auto&, const auto& op) { return all.names[op.name]; }}}};

/// Returns the nearest names there are to a pattern, which is none of them.
std::string nearest(const std::string& pattern, const std::set<std::string>& names) {
  constexpr std::size_t kMaxKnown = 8, kMaxNearest = 3;
  std::string word = pattern;
  std::erase_if(word, [](char letter) { return letter == '*' || letter == '?'; });
  if (names.size() <= kMaxKnown) return suggestion(word, {names.begin(), names.end()});
  std::vector<std::pair<std::pair<bool, std::size_t>, std::string>> by_distance;
  for (const std::string& name : names)
    by_distance.push_back({{name.find(word) == std::string::npos, edit_distance(word, name)}, name});
  std::sort(by_distance.begin(), by_distance.end());
  std::vector<std::string> first;
  for (std::size_t i = 0; i < kMaxNearest; ++i) first.push_back(by_distance[i].second);
  return fmt::format("; the nearest of {} are {}", names.size(), fmt::join(first, ", "));
}

}  // namespace

std::string nothing_selected(const StreamPrograms& all, const std::vector<std::size_t>& numbers,
                             const Selection& selection) {
  Selection looser;
  looser.kind = selection.kind;
  for (const Pattern& one : kPatterns) {
    std::set<std::string> there;
    bool is_any = false;
    const std::string pattern = selection.*one.text;
    for (const std::size_t number : numbers) {
      const RankProgram& program = all.programs[number];
      for (const std::uint32_t op : selected(all, number, looser))
        if (std::string text = one.of(all, program, program.ops[op]); !text.empty()) there.insert(std::move(text));
      looser.*one.text = pattern;
      is_any = is_any || !selected(all, number, looser).empty();
      looser.*one.text = Selection().*one.text;
    }
    const char* key = one.key == nullptr ? name_of(selection.kind) : one.key;
    if (there.empty() && !is_any) return fmt::format("there is no {}", key);
    if (!is_any) return fmt::format("no '{}' is '{}'{}", key, pattern, nearest(pattern, there));
    looser.*one.text = pattern;
  }
  return "of what its patterns select, no occurrence has such a number";
}

}  // namespace manyworlds::experiments::edits
