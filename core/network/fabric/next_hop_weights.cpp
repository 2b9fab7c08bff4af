#include "core/network/fabric/next_hop_weights.hpp"

#include <algorithm>
#include <numeric>

namespace manyworlds::core::network {

std::uint32_t NextHopWeights::pick(const std::vector<std::uint32_t>& candidates, std::uint32_t destination,
                                   std::uint64_t hash) {
  Attachment attachment;
  for (const std::uint32_t link : distances_.in(destination))
    attachment.emplace_back(graph_.links[link].from, weight(graph_.links[link]));
  Weights& known = known_[attachment];
  std::vector<std::int64_t> weights;
  std::int64_t divisor = 0;
  for (const std::uint32_t link : candidates) {
    weights.push_back(weight_of(link, destination, known));
    divisor = std::gcd(divisor, weights.back());
  }
  std::uint64_t entries = 0;
  for (std::int64_t& weight : weights) entries += static_cast<std::uint64_t>(weight /= divisor);
  std::uint64_t at = hash % entries;
  std::uint32_t pick = 0;
  while (at >= static_cast<std::uint64_t>(weights[pick])) at -= static_cast<std::uint64_t>(weights[pick++]);
  return pick;
}

/// A link into the destination has its own rate: that counts only where parallel ones are the last.
std::int64_t NextHopWeights::weight_of(std::uint32_t link, std::uint32_t destination, Weights& known) const {
  const std::int64_t rate = graph_.links[link].bits_per_second;
  const std::uint32_t vertex = graph_.links[link].to;
  if (vertex == destination) return rate;
  const auto passed_on = known.find(vertex);
  if (passed_on != known.end()) return std::min(rate, passed_on->second);
  std::vector<std::uint32_t> next;
  distances_.find_next_hops(
      vertex, [this](std::uint32_t at) { return distances_.from(at); }, next);
  std::int64_t sum = 0;
  for (const std::uint32_t onward : next) {
    if (graph_.links[onward].to == destination) sum = INT64_MAX;
    if (sum == INT64_MAX) break;
    sum += weight_of(onward, destination, known);
  }
  known.emplace(vertex, sum);
  return std::min(rate, sum);
}

}  // namespace manyworlds::core::network
