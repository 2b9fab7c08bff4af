#include "experiments/rollouts/decoding.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace manyworlds::experiments::phases {

std::int64_t Decoding::steps() const {
  std::int64_t all = 0;
  for (const Stretch& one : stretches) all += one.steps;
  return all;
}

Decoding decoding_of(std::span<const std::int64_t> tokens, std::int64_t prompt_tokens, std::int64_t concurrent) {
  Decoding decoding;
  std::int64_t step = 0, cached = 0;
  std::size_t next = 0;
  std::priority_queue<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>,
                      std::greater<>>
      in_flight;  // (step after which it ends, tokens of its response)
  while (next < tokens.size() || !in_flight.empty()) {
    const std::size_t room = static_cast<std::size_t>(concurrent) - in_flight.size();
    const std::size_t more = std::min(room, tokens.size() - next);
    for (std::size_t i = 0; i < more; ++i, ++next) {
      if (tokens[next] == 1) continue;  // its prefill was all
      in_flight.emplace(step + tokens[next] - 1, tokens[next]);
      cached += prompt_tokens;
    }
    if (more > 0) decoding.prefills.push_back(static_cast<std::int64_t>(more));
    if (in_flight.empty()) continue;
    if (more > 0 && next < tokens.size() && static_cast<std::int64_t>(in_flight.size()) < concurrent) continue;
    const auto samples = static_cast<std::int64_t>(in_flight.size());
    const std::int64_t end = in_flight.top().first;
    decoding.stretches.push_back({samples, end - step, cached});
    cached += samples * (end - step);
    decoding.most_cached = std::max(decoding.most_cached, cached);
    step = end;
    for (; !in_flight.empty() && in_flight.top().first == step; in_flight.pop())
      cached -= prompt_tokens + in_flight.top().second - 1;
  }
  return decoding;
}

}  // namespace manyworlds::experiments::phases
