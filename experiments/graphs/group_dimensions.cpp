#include "experiments/graphs/group_dimensions.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

namespace manyworlds::experiments::graphs {

std::vector<std::uint32_t> dimensions_of(const std::vector<std::vector<std::uint32_t>>& groups) {
  using Shape = std::vector<std::uint32_t>;
  std::map<Shape, std::vector<std::uint32_t>> of_shape;  // dimensions
  std::vector<std::vector<bool>> taken;                  // by dimension and rank
  std::vector<std::uint32_t> dimensions;
  for (const std::vector<std::uint32_t>& group : groups) {
    Shape shape;
    for (const std::uint32_t rank : group) shape.push_back(rank - group.front());
    std::vector<std::uint32_t>& candidates = of_shape[shape];
    const auto is_free = [&](std::uint32_t dimension) {
      for (const std::uint32_t rank : group)
        if (rank < taken[dimension].size() && taken[dimension][rank]) return false;
      return true;
    };
    std::size_t i = 0;
    while (i < candidates.size() && !is_free(candidates[i])) ++i;
    if (i == candidates.size()) {
      candidates.push_back(static_cast<std::uint32_t>(taken.size()));
      taken.emplace_back();
    }
    std::vector<bool>& of_dimension = taken[candidates[i]];
    for (const std::uint32_t rank : group) {
      if (of_dimension.size() <= rank) of_dimension.resize(rank + 1);
      of_dimension[rank] = true;
    }
    dimensions.push_back(candidates[i]);
  }
  return dimensions;
}

Lanes lanes_of(const std::vector<PairEnd>& sends, const std::vector<PairEnd>& receives) {
  Lanes lanes;
  if (sends.size() != receives.size()) return lanes;
  std::map<std::uint64_t, std::vector<std::uint32_t>> of_tag;  // receives, the last first
  for (std::size_t i = receives.size(); i-- > 0;) of_tag[receives[i].tag].push_back(static_cast<std::uint32_t>(i));
  std::vector<std::int64_t> last;  // receive, by lane
  lanes.of_receives.resize(receives.size());
  for (const PairEnd& send : sends) {
    std::vector<std::uint32_t>& waiting = of_tag[send.tag];
    if (waiting.empty() || receives[waiting.back()].bytes != send.bytes) return {};
    const std::uint32_t receive = waiting.back();
    waiting.pop_back();
    std::uint32_t lane = 0;
    while (lane < last.size() && last[lane] > receive) ++lane;
    if (lane == last.size()) last.push_back(0);
    last[lane] = receive;
    lanes.of_sends.push_back(lane);
    lanes.of_receives[receive] = lane;
  }
  lanes.match = true;
  return lanes;
}

std::string mismatch_of(const std::vector<PairEnd>& sends, const std::vector<PairEnd>& receives) {
  std::map<std::uint64_t, std::array<std::vector<std::int64_t>, 2>> bytes_of_tag;  // sent, received
  for (const PairEnd& send : sends) bytes_of_tag[send.tag][0].push_back(send.bytes);
  for (const PairEnd& receive : receives) bytes_of_tag[receive.tag][1].push_back(receive.bytes);
  for (const auto& [tag, bytes] : bytes_of_tag) {
    const auto& [sent, received] = bytes;
    if (sent.size() != received.size())
      return fmt::format("with tag {} there are {} sends and {} receives", tag, sent.size(), received.size());
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (sent[i] != received[i])
        return fmt::format("number {} with tag {} is sent with {} bytes and received with {}", i + 1, tag, sent[i],
                           received[i]);
  }
  return "";
}

}  // namespace manyworlds::experiments::graphs
