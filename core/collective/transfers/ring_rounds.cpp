#include "core/collective/transfers/ring_rounds.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/collective/transfers/mesh_orders.hpp"

namespace manyworlds::core::collective {

namespace {

/// Every other node is passed backwards here, too.
std::vector<std::uint32_t> order_over_mesh(const Shape& shape, std::uint32_t channel) {
  const std::uint32_t p = shape.per_node;
  if (p == shape.members) return mesh_ring(p, channel % mesh_rings(p));
  std::vector<std::uint32_t> path = mesh_path(p, channel % mesh_paths(p)), order;
  for (std::uint32_t first = 0; first < shape.members; first += p) {
    for (const std::uint32_t local : path) order.push_back(first + local);
    std::reverse(path.begin(), path.end());
  }
  return order;
}

}  // namespace

std::vector<std::uint32_t> ring_order(const Shape& shape, std::uint32_t channel) {
  if (spreads_over_mesh(shape)) return order_over_mesh(shape, channel);
  const std::uint32_t p = shape.per_node;
  const std::uint32_t offset = shape.channels <= p ? channel * (p / shape.channels) : channel % p;
  std::vector<std::uint32_t> order(shape.members);
  for (std::uint32_t i = 0; i < shape.members; ++i) {
    const std::uint32_t node = i / p, local = i % p;
    order[i] = node * p + ((node % 2 == 0 ? local : p - 1 - local) + offset) % p;
  }
  return order;
}

std::vector<Ring> node_rings(const Shape& shape) {
  const std::uint32_t p = shape.per_node, nodes = shape.members / p;
  std::vector<Ring> rings(nodes);
  for (std::uint32_t member = 0; member < shape.members; ++member) {
    rings[member / p].members.push_back(member);
    rings[member / p].blocks.push_back({member % p, nodes, p});
  }
  return rings;
}

std::vector<Ring> rail_rings(const Shape& shape) {
  std::vector<Ring> rings(shape.per_node);
  for (std::uint32_t member = 0; member < shape.members; ++member) {
    rings[member % shape.per_node].members.push_back(member);
    rings[member % shape.per_node].blocks.push_back({member});
  }
  return rings;
}

std::uint32_t slice_count(const Shape& shape, std::int64_t bytes) {
  if (shape.chunk_bytes == 0) return 1;
  const std::int64_t share = (bytes + shape.channels - 1) / shape.channels;
  const std::int64_t count = std::max<std::int64_t>(1, (share + shape.chunk_bytes - 1) / shape.chunk_bytes);
  MANYWORLDS_CHECK(count < 1 << 24, "{} chunks", count);
  return static_cast<std::uint32_t>(count);
}

void add_ring_rounds(DagBuilder& dag, std::span<const Ring> rings, std::span<const RingPlace> places, RingPhases phases,
                     std::uint32_t first_share, std::uint32_t shares, std::vector<Frontier>& frontiers) {
  const auto n = static_cast<std::uint32_t>(rings.front().members.size());
  const auto slice_count = static_cast<std::uint32_t>(frontiers.size());
  if (n < 2) return;
  // The transfers of the last round and of this one, by slice, ring and position.
  std::vector<std::uint32_t> previous(places.size() * slice_count), current(previous.size());
  const std::uint32_t first = phases.reduce ? 0 : n - 1, end = phases.gather ? 2 * n - 2 : n - 1;
  std::vector<std::uint32_t> after;
  for (std::uint32_t round = first; round < end; ++round) {
    for (std::uint32_t slice = 0; slice < slice_count; ++slice) {
      for (const auto& [number, i] : places) {
        const Ring& ring = rings[number];
        const std::size_t base = slice * places.size() + std::size_t{number} * n;
        const std::uint32_t source = ring.members[i], destination = ring.members[(i + 1) % n];
        // Position i begins with its predecessor's block and forwards every block, so that its own block arrives last.
        BlockSet block_set = ring.blocks[(i + 2 * n - 1 - round) % n];
        block_set.share = first_share + slice;
        block_set.shares = shares;
        after.clear();
        if (round > first) {
          after.push_back(previous[base + (i + n - 1) % n]);  // it has received what it forwards
          // With two transfers in flight on a connection, the second must not precede the destination's frontier
          // either.
          if (round == first + 1)
            after.insert(after.end(), frontiers[slice][destination].begin(), frontiers[slice][destination].end());
        } else {
          const Frontier& frontier = frontiers[slice];
          after = frontier[source];
          after.insert(after.end(), frontier[destination].begin(), frontier[destination].end());
        }
        current[base + i] =
            dag.add(source, destination, block_set, round < n - 1 ? Effect::reduce : Effect::copy, after);
      }
    }
    previous.swap(current);
  }
  for (std::uint32_t slice = 0; slice < slice_count; ++slice)
    for (const auto& [number, i] : places) {
      const std::size_t base = slice * places.size() + std::size_t{number} * n;
      frontiers[slice][rings[number].members[i]] = {previous[base + i], previous[base + (i + n - 1) % n]};
    }
}

void add_ring_rounds(DagBuilder& dag, const Ring& ring, RingPhases phases, std::uint32_t first_share,
                     std::uint32_t shares, std::vector<Frontier>& frontiers) {
  std::vector<RingPlace> places;
  for (std::uint32_t i = 0; i < ring.members.size(); ++i) places.push_back({0, i});
  add_ring_rounds(dag, {&ring, 1}, places, phases, first_share, shares, frontiers);
}

void add_direct_rounds(DagBuilder& dag, const Ring& ring, RingPhases phases, std::uint32_t first_share,
                       std::uint32_t shares, std::vector<Frontier>& frontiers) {
  const auto n = static_cast<std::uint32_t>(ring.members.size());
  if (n < 2) return;
  for (const bool gather : {false, true}) {
    if (!(gather ? phases.gather : phases.reduce)) continue;
    for (std::uint32_t slice = 0; slice < frontiers.size(); ++slice) {
      Frontier ends(frontiers[slice].size());
      for (std::uint32_t distance = 1; distance < n; ++distance)
        for (std::uint32_t i = 0; i < n; ++i) {
          const std::uint32_t j = (i + distance) % n, source = ring.members[i], destination = ring.members[j];
          BlockSet block_set = ring.blocks[gather ? i : j];
          block_set.share = first_share + slice;
          block_set.shares = shares;
          std::vector<std::uint32_t> after = frontiers[slice][source];
          after.insert(after.end(), frontiers[slice][destination].begin(), frontiers[slice][destination].end());
          ends[destination].push_back(
              dag.add(source, destination, block_set, gather ? Effect::copy : Effect::reduce, after));
        }
      for (const std::uint32_t member : ring.members) frontiers[slice][member] = ends[member];
    }
  }
}

}  // namespace manyworlds::core::collective
