#include "experiments/shell/pattern.hpp"

#include <cstddef>
#include <string>

namespace manyworlds::experiments::shell {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// Matches one character against the set that begins at pattern[at], and moves `at` behind it.
bool in_set(std::string_view pattern, std::size_t& at, char c) {
  const std::size_t end = pattern.find(']', at + 2);
  if (end == kNone) return pattern[at++] == c;
  std::string_view set = pattern.substr(at + 1, end - at - 1);
  at = end + 1;
  const bool inverted = set.starts_with('!') || set.starts_with('^');
  if (inverted) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found |= set[i] <= c && c <= set[i + 2];
      i += 2;
    } else {
      found |= set[i] == c;
    }
  }
  return found != inverted;
}

/// Matches one character of a pattern, and moves `at` behind it.
bool matches_one(std::string_view pattern, std::size_t& at, char c) {
  if (pattern[at] == '?') return ++at, true;
  if (pattern[at] == '[') return in_set(pattern, at, c);
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return pattern[at++] == c;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = kNone, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
      continue;
    }
    std::size_t next = p;
    if (p < pattern.size() && matches_one(pattern, next, text[t])) {
      p = next;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace manyworlds::experiments::shell
