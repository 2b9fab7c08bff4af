#include "experiments/clusters/node_list.hpp"

#include <set>

#include "core/base/error.hpp"
#include "core/base/number_in.hpp"
#include "experiments/clusters/fabric.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::clusters {
namespace {

using core::InputError;

constexpr std::size_t kMaxBytes = 1u << 20, kMaxName = 255, kMaxDigits = 9;

[[noreturn]] void fail(std::string_view part, const char* what) {
  throw InputError(
      fmt::format("'{}' of the node list {}; it must be as Slurm writes it, such as a[01-08,12],b3", part, what));
}

/// Splits at commas outside of brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  bool inside = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[' && inside) fail(list.substr(begin, i - begin + 1), "has a bracket in a bracket");
    if (c == ']' && !inside) fail(list.substr(begin, i - begin + 1), "closes no bracket");
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c != ',' || (inside && i < list.size())) continue;
    if (inside) fail(list.substr(begin), "does not close its bracket");
    parts.push_back(import::trimmed(list.substr(begin, i - begin), " \t\r\n"));
    begin = i + 1;
  }
  return parts;
}

std::int64_t number_of(std::string_view digits, std::string_view range) {
  const auto value = core::number_in<std::int64_t>(digits);
  if (digits.size() > kMaxDigits || !value || *value < 0) fail(range, "is no number and no range of numbers");
  return *value;
}

/// Adds the numbers of "01-08" or "12", padded as written.
void add_range(std::vector<std::string>& to, std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash),
                         high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  const std::int64_t first = number_of(low, range), last = number_of(high, range);
  if (last < first) fail(range, "counts down");
  if (static_cast<std::size_t>(last - first) >= kMaxHosts - to.size()) fail(range, "is longer than any cluster");
  for (std::int64_t i = first; i <= last; ++i) to.push_back(fmt::format("{:0{}}", i, low.size()));
}

/// Returns all names of one part: what stands before its first bracket, with each number in it and each ending.
std::vector<std::string> names_of(std::string_view part) {
  std::vector<std::string> names{""};
  while (!part.empty()) {
    const std::size_t open = part.find('[');
    for (std::string& name : names) name += part.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = part.find(']', open);
    std::string_view inside = part.substr(open + 1, close - open - 1);
    std::vector<std::string> numbers;
    while (true) {
      const std::size_t comma = inside.find(',');
      add_range(numbers, inside.substr(0, comma));
      if (comma == std::string_view::npos) break;
      inside.remove_prefix(comma + 1);
    }
    if (numbers.size() > kMaxHosts / names.size()) fail(part, "has more names than any cluster");
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
    part.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  if (list.size() > kMaxBytes) throw InputError(fmt::format("the node list has more than {} bytes", kMaxBytes));
  std::vector<std::string> names;
  if (import::trimmed(list, " \t\r\n").empty()) return names;
  std::set<std::string> known;
  for (const std::string_view part : parts_of(list)) {
    if (part.empty()) fail(list.substr(0, 40), "has an empty name");
    for (std::string& name : names_of(part)) {
      if (name.size() > kMaxName || name.find_first_of(" \t") != std::string::npos) fail(part, "is no name of a node");
      if (!known.insert(name).second) fail(name, "is listed twice");
      if (names.size() == kMaxHosts) fail(part, "has more names than any cluster");
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace manyworlds::experiments::clusters
