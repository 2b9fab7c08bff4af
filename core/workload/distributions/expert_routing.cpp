// Token counts of experts. Only + - x / on doubles, and whole numbers, so that loads are the same on every machine.
#include "core/workload/distributions/expert_routing.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/base/units.hpp"
#include "core/workload/distributions/elementary.hpp"

namespace manyworlds::core::workload {
std::shared_ptr<const Routing> make_routing(const std::vector<std::vector<std::int64_t>>& by_layer) {
  auto routing = std::make_shared<Routing>();
  std::map<std::vector<std::int64_t>, std::uint32_t> known;
  sharing::KeyWriter writer("routing");
  for (const auto& weights : by_layer) {
    const auto [entry, is_new] = known.try_emplace(weights, static_cast<std::uint32_t>(routing->loads.size()));
    if (is_new) routing->loads.push_back(weights);
    routing->load_by_layer.push_back(entry->second);
    writer.integer(static_cast<std::int64_t>(weights.size()));
    for (const std::int64_t weight : weights) writer.integer(weight);
  }
  routing->key = writer.finish();
  return routing;
}

std::vector<std::int64_t> zipf_weights(std::int64_t experts, double exponent) {
  constexpr double kUnit = std::int64_t{1} << 40;
  std::vector<std::int64_t> weights;
  for (std::int64_t r = 1; r <= experts; ++r) {
    const double share = exponential_of_minus(exponent * logarithm(static_cast<double>(r)));
    weights.push_back(std::max<std::int64_t>(1, round_half_up(share * kUnit)));
  }
  return weights;
}

std::shared_ptr<const Routing> zipf_routing(std::int64_t layers, std::int64_t experts, double exponent,
                                            std::int64_t seed) {
  const std::vector<std::int64_t> weights = zipf_weights(experts, exponent);
  std::vector<std::vector<std::int64_t>> by_layer;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<std::int64_t> drawn = weights;
    for (std::size_t i = drawn.size(); i-- > 1;) {
      const std::uint64_t with =
          decision_hash(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(layer), i) % (i + 1);
      std::swap(drawn[i], drawn[with]);
    }
    by_layer.push_back(std::move(drawn));
  }
  return make_routing(by_layer);
}

std::vector<std::int64_t> tokens_by_weight(std::span<const std::int64_t> weights, std::int64_t rows,
                                           std::int64_t max_per_expert) {
  std::vector<std::int64_t> tokens(weights.size(), 0);
  std::vector<bool> full(weights.size(), false);
  std::int64_t remaining_rows = rows;  // rows for the experts that are not full
  Int128 sum = 0;                      // sum of the weights of these experts
  for (const std::int64_t weight : weights) sum += weight;
  for (bool changed = true; changed;) {
    changed = false;
    const std::int64_t open_rows = remaining_rows;
    const Int128 value = sum;
    for (std::size_t e = 0; e < weights.size(); ++e) {
      if (full[e] || Int128{weights[e]} * open_rows <= value * max_per_expert) continue;
      full[e] = changed = true;
      tokens[e] = max_per_expert;
      remaining_rows -= max_per_expert;
      sum -= weights[e];
    }
  }
  MANYWORLDS_CHECK(remaining_rows >= 0 && (sum > 0 || remaining_rows == 0),
                   "{} tokens over {} experts of at most {} each", rows, weights.size(), max_per_expert);
  std::vector<std::pair<Int128, std::size_t>> remainders;
  std::int64_t given = 0;
  for (std::size_t e = 0; e < weights.size() && remaining_rows > 0; ++e) {
    if (full[e]) continue;
    const Int128 share = Int128{weights[e]} * remaining_rows;
    tokens[e] = static_cast<std::int64_t>(share / sum);
    given += tokens[e];
    remainders.emplace_back(-(share % sum), e);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; given < remaining_rows; ++i, ++given) ++tokens[remainders.at(i).second];
  return tokens;
}

}  // namespace manyworlds::core::workload
