#include "farm/ramp/envelope.hpp"

#include <algorithm>

namespace manyworlds::farm::ramp {
namespace {

double slope(const Candidate& one) {
  return one.step_s / one.tokens;
}

}  // namespace

double crossing(const Candidate& a, const Candidate& b) {
  return (b.step_s - a.step_s) / (slope(a) - slope(b));
}

std::vector<EnvelopePiece> lower_envelope(std::span<const Candidate> candidates, std::vector<std::size_t> members,
                                          double low, double high) {
  std::stable_sort(members.begin(), members.end(), [&](std::size_t a, std::size_t b) {
    const double first = slope(candidates[a]), second = slope(candidates[b]);
    return first != second ? first > second : candidates[a].step_s < candidates[b].step_s;
  });
  std::vector<EnvelopePiece> pieces;
  for (const std::size_t next : members) {
    const auto begins = [&] { return crossing(candidates[pieces.back().candidate], candidates[next]); };
    if (!pieces.empty() && slope(candidates[pieces.back().candidate]) == slope(candidates[next])) continue;
    while (!pieces.empty() && begins() <= pieces.back().from) pieces.pop_back();
    const double from = pieces.empty() ? low : begins();
    if (!pieces.empty() && from >= high) continue;
    if (!pieces.empty()) pieces.back().to = from;
    pieces.push_back({next, from, high});
  }
  return pieces;
}

}  // namespace manyworlds::farm::ramp
