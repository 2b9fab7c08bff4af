#include "core/collective/dag.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.hpp"

namespace manyworlds::core::collective {

std::string Shape::text() const {
  static constexpr std::array kKinds{"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"};
  const bool fixed = kind == Kind::all_to_all || kind == Kind::send;
  const char* how = fixed                          ? (kind == Kind::send ? "direct" : "pairwise")
                    : algorithm == Algorithm::ring ? "ring"
                                                   : "two_level";
  return fmt::format("{} {} n={} {} B", kKinds[static_cast<std::size_t>(kind)], how, members, bytes);
}

DagBuilder::DagBuilder(std::uint32_t members) : pair_numbers_(members) {
  dag_.members = members;
  dag_.uses.assign(members, 0);
}

std::uint32_t DagBuilder::add(std::uint32_t source, std::uint32_t destination, std::int64_t bytes,
                              std::vector<std::uint32_t> after) {
  std::vector<std::uint32_t>& known = pair_numbers_[source];
  std::uint32_t pair = UINT32_MAX;
  for (std::size_t i = 0; i < known.size() && pair == UINT32_MAX; i += 2)
    if (known[i] == destination) pair = known[i + 1];
  if (pair == UINT32_MAX) {
    pair = static_cast<std::uint32_t>(dag_.pairs.size());
    dag_.pairs.emplace_back(source, destination);
    known.insert(known.end(), {destination, pair});
  }
  const auto number = static_cast<std::uint32_t>(dag_.transfers.size());
  dag_.transfers.push_back({pair, bytes});
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  std::size_t waits = after.size();
  // A member that takes part in a transfer before this one has entered; the others must be waited for.
  for (const std::uint32_t member : {source, destination}) {
    const bool proved = std::any_of(after.begin(), after.end(), [&](std::uint32_t before) {
      const auto& [from, to] = dag_.pairs[dag_.transfers[before].pair];
      return from == member || to == member;
    });
    if (!proved) entries_.emplace_back(member, number), ++waits;
    ++dag_.uses[member];
  }
  dag_.waits.push_back(static_cast<std::uint16_t>(waits));
  for (const std::uint32_t before : after) edges_.emplace_back(before, number);
  return number;
}

namespace {

// Edges (from, to) as rows: of `from` i, [begin[i], begin[i + 1]) of `to`, in the order they were added.
void by_row(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges, std::size_t rows,
            std::vector<std::uint32_t>& begin, std::vector<std::uint32_t>& to) {
  begin.assign(rows + 1, 0);
  for (const auto& edge : edges) ++begin[edge.first + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  to.resize(edges.size());
  std::vector<std::uint32_t> at(begin.begin(), begin.end() - 1);
  for (const auto& edge : edges) to[at[edge.first]++] = edge.second;
}

}  // namespace

Dag DagBuilder::finish() {
  by_row(edges_, dag_.transfers.size(), dag_.successors_begin, dag_.successors);
  by_row(entries_, dag_.members, dag_.entry_begin, dag_.entry);
  return std::move(dag_);
}

Dag build(const Shape& shape) {
  DagBuilder dag(shape.members);
  if (shape.members < 2) return dag.finish();
  Frontier frontier(shape.members);
  // Every other node is passed through backwards, so that a ring goes from node to node between members of equal local
  // index: along a rail.
  std::vector<std::uint32_t> ring(shape.members);
  for (std::uint32_t i = 0; i < shape.members; ++i) {
    const std::uint32_t node = i / shape.per_node, local = i % shape.per_node;
    ring[i] = node * shape.per_node + (node % 2 == 0 ? local : shape.per_node - 1 - local);
  }
  const std::uint32_t pass = shape.members - 1;
  if (shape.kind == Kind::send)
    dag.add(0, 1, shape.bytes);
  else if (shape.kind == Kind::all_to_all)
    add_pairwise(dag, shape);
  else if (shape.algorithm == Algorithm::two_level && shape.per_node > 1 && shape.per_node < shape.members)
    add_two_level(dag, shape, frontier);
  else
    add_ring(dag, ring, shape.bytes, shape.kind == Kind::all_reduce ? 2 * pass : pass, frontier);
  return dag.finish();
}

}  // namespace manyworlds::core::collective
