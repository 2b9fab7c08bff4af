// Optimal string alignment distance, over three rows of the usual table.
#include "experiments/text/nearest.hpp"

#include <algorithm>

namespace manyworlds::experiments {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, previous(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = previous;
    previous = row;
  }
  return previous[b.size()];
}

std::string suggestion(const std::string& given, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;  // a longer word is no slip of the finger
  constexpr std::size_t kLeast = 3, kFew = 8;
  const std::string* best = nullptr;
  std::size_t distance = std::max<std::size_t>(2, given.size() * 2 / 5) + 1;
  for (const std::string& name : known) {
    if (given.size() > kLongest) break;
    const std::size_t edits = edit_distance(given, name);
    if (edits < distance && edits < name.size()) distance = edits, best = &name;
  }
  if (best) return "; did you mean '" + *best + "'?";
  // What begins alike is what somebody meant who knows half of a long name.
  std::vector<std::string> longer;
  for (const std::string& name : known)
    if (given.size() >= kLeast && name.starts_with(given)) longer.push_back(name);
  if (!longer.empty() && longer.size() <= kFew) {
    std::string some;
    for (const std::string& name : longer) some += (some.empty() ? "'" : ", '") + name + "'";
    return "; did you mean " + some + "?";
  }
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  return known.empty() ? "" : "; known are " + all;
}

}  // namespace manyworlds::experiments
