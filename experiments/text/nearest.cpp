// Optimal string alignment distance, computed on three rows of the dynamic-programming table.
#include "experiments/text/nearest.hpp"

#include <algorithm>

namespace manyworlds::experiments {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> two_rows_above, row_above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row_above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row_above[j] + 1, row[j - 1] + 1, row_above[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_rows_above[j - 2] + 1);
    }
    two_rows_above = row_above;
    row_above = row;
  }
  return row_above[b.size()];
}

namespace {

/// Returns how many letters both begin with.
std::size_t same_start(const std::string& a, const std::string& b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

/// Returns the most edits that a typing error is taken to have: one for three letters, two for five where the first
/// half of the word is as in the name, and one where not even the first letter is.
std::size_t most_edits(const std::string& given, const std::string& name) {
  const std::size_t same = same_start(given, name);
  if (same == 0) return 1;
  return std::max<std::size_t>(1, 2 * same >= given.size() ? given.size() * 2 / 5 : given.size() / 3);
}

}  // namespace

std::string suggestion(const std::string& given, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxWordLength = 64;  // longer words are no typing errors
  constexpr std::size_t kMinPrefixLength = 3, kMaxSuggestions = 8;
  const std::string* best = nullptr;
  std::size_t distance = kMaxWordLength;
  for (const std::string& name : known) {
    if (given.size() > kMaxWordLength) break;
    const std::size_t edits = edit_distance(given, name);
    if (edits < distance && edits < name.size() && edits <= most_edits(given, name)) distance = edits, best = &name;
  }
  if (best) return "; did you mean '" + *best + "'?";
  // A name that begins with the given word is likely meant: users may know only the first half of a long name.
  std::vector<std::string> completions;
  for (const std::string& name : known)
    if (given.size() >= kMinPrefixLength && name.starts_with(given)) completions.push_back(name);
  if (!completions.empty() && completions.size() <= kMaxSuggestions) {
    std::string quoted_names;
    for (const std::string& name : completions) quoted_names += (quoted_names.empty() ? "'" : ", '") + name + "'";
    return "; did you mean " + quoted_names + "?";
  }
  std::string all_names;
  for (const std::string& name : known) all_names += (all_names.empty() ? "" : ", ") + name;
  return known.empty() ? "" : "; known are " + all_names;
}

}  // namespace manyworlds::experiments
