#include "core/collective/library/library.hpp"

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/dag/protocol.hpp"

namespace manyworlds::core::collective {
namespace {

/// Steps one after another and the bytes they put on the slowest connection, inside nodes and between them.
struct Work {
  std::int64_t inside_steps = 0, between_steps = 0;
  std::int64_t inside_bytes = 0, between_bytes = 0;
};

struct Sizes {
  std::int64_t n, p, nodes, bytes, channels;
};

std::int64_t log2_up(std::int64_t n) {
  std::int64_t log = 0;
  while (std::int64_t{1} << log < n) ++log;
  return log;
}

/// Bytes that cross the slowest connection of a ring through everybody: it is between nodes if there are several.
/// Channels cross between nodes at NICs of their own, as far as a node has members.
Work ring(const Sizes& s, std::int64_t passes) {
  std::int64_t bytes = passes * (s.bytes - s.bytes / s.n);
  if (s.nodes > 1) bytes /= std::min(s.channels, s.p);
  const std::int64_t steps = passes * (s.n - 1);
  const std::int64_t between = s.nodes > 1 ? (steps + s.p - 1) / s.p : 0;  // every p-th step, at most
  Work work{steps - between, between, 0, 0};
  (s.nodes > 1 ? work.between_bytes : work.inside_bytes) = bytes;
  return work;
}

Work two_level(const Sizes& s, std::int64_t passes) {
  const std::int64_t shard = s.bytes / s.p;
  return {passes * (s.p - 1), passes * (s.nodes - 1), passes * (s.bytes - shard), passes * (shard - shard / s.nodes)};
}

/// What a chain takes inside a node goes on while the ring between nodes brings the next.
Work node_leaders(const Sizes& s, std::int64_t passes) {
  const std::int64_t of_node = s.bytes / s.nodes;
  Work work{0, passes * (s.nodes - 1), 0, passes * (s.bytes - of_node)};
  if (s.p > 1) work.inside_steps = passes * s.p, work.inside_bytes = passes * s.p * of_node;
  return work;
}

Work halving_doubling(const Sizes& s, std::int64_t passes, bool neighbours_first) {
  const bool even = (s.n & (s.n - 1)) == 0;
  const std::int64_t shard = s.bytes / s.p, part = s.bytes / s.nodes;
  Work work{passes * log2_up(s.p), passes * log2_up(s.nodes), 0, 0};
  if (neighbours_first)
    work.inside_bytes = passes * (s.bytes - shard), work.between_bytes = passes * (shard - shard / s.nodes);
  else
    work.inside_bytes = passes * (part - part / s.p), work.between_bytes = passes * (s.bytes - part);
  if (!even) {  // those beyond a power of two hand over and are given everything
    (s.p > 1 ? work.inside_steps : work.between_steps) += 2;
    (s.p > 1 ? work.inside_bytes : work.between_bytes) += 2 * s.bytes;
  }
  return work;
}

Work recursive_doubling(const Sizes& s) {
  Work work{log2_up(s.p), log2_up(s.nodes), 0, 0};
  if ((s.n & (s.n - 1)) != 0) (s.p > 1 ? work.inside_steps : work.between_steps) += 2;
  work.inside_bytes = work.inside_steps * s.bytes;
  work.between_bytes = work.between_steps * s.bytes;
  return work;
}

/// A vector that passes `stages` connections one after another takes that many times as long, unless it is in chunks.
std::int64_t staged(std::int64_t bytes, std::int64_t stages, std::int64_t chunk_bytes) {
  return bytes + (stages - 1) * (chunk_bytes > 0 ? std::min(bytes, chunk_bytes) : bytes);
}

Work double_tree(const Sizes& s, std::int64_t chunk_bytes) {
  const std::int64_t inside = 2 * (s.p - 1), between = 2 * log2_up(s.nodes);
  // Half of the vector goes up each tree and down to two children: all of it on a connection and direction.
  if (s.nodes == 1) return {inside, between, staged(s.bytes, inside + between, 2 * chunk_bytes), 0};
  // A head in the midst of its tree is sent to by two children and its parent, and sends as much.
  // Two nodes alone would do with less, but libraries do not reckon with that (NCCL's src/graph/tuning.cc).
  const std::int64_t share = s.bytes / std::min(2 * s.channels, s.p);
  const std::int64_t chunk = chunk_bytes > 0 ? std::min(share, chunk_bytes) : share;
  return {inside, between, inside * chunk, 3 * share + (between - 1) * chunk};
}

Work direct(const Sizes& s, std::int64_t passes) {
  const std::int64_t block = s.bytes / s.n;
  return {s.p > 1 ? passes : 0, s.nodes > 1 ? passes : 0, passes * block * (s.p - 1), passes * block * (s.n - s.p)};
}

/// Everything goes up to the switch of the node once, and shards once more; down likewise.
Work in_switch(const Sizes& s, std::int64_t passes, bool rail_switches) {
  const std::int64_t shard = s.bytes / s.p;
  Work work = s.p > 1 ? Work{passes, 0, passes == 2 ? s.bytes + shard : s.bytes, 0} : Work{};
  if (s.nodes == 1) return work;
  work.between_steps = rail_switches ? 1 : passes * (s.nodes - 1);
  work.between_bytes = rail_switches ? shard : passes * (shard - shard / s.nodes);
  return work;
}

/// What an even operation would carry that has as many bytes for each member as the busiest has here.
std::int64_t bytes_of_busiest(const Shape& shape) {
  if (shape.split.even() || shape.kind != Kind::all_to_all) return shape.bytes;
  return shape.members * *std::max_element(shape.split.bytes.begin(), shape.split.bytes.end());
}

Work work_of(const Shape& shape) {
  const Sizes s{shape.members, shape.per_node, shape.members / shape.per_node, bytes_of_busiest(shape), shape.channels};
  const std::int64_t passes = shape.kind == Kind::all_reduce ? 2 : 1;
  if (shape.kind == Kind::send) return s.p > 1 ? Work{1, 0, s.bytes, 0} : Work{0, 1, 0, s.bytes};
  switch (shape.algorithm) {
    case Algorithm::ring:
      return ring(s, passes);
    case Algorithm::two_level:
      return two_level(s, passes);
    case Algorithm::node_leaders:
      return node_leaders(s, passes);
    case Algorithm::halving_doubling:
      return halving_doubling(s, passes, shape.kind == Kind::all_reduce);
    case Algorithm::recursive_doubling:
      return recursive_doubling(s);
    case Algorithm::double_tree:
      return double_tree(s, shape.chunk_bytes);
    case Algorithm::direct:
      return direct(s, passes);
    case Algorithm::in_switch:
      return in_switch(s, passes, shape.rail_switches);
    case Algorithm::pairwise:
      return {s.p - 1, s.n - s.p, s.bytes / s.n * (s.p - 1), s.bytes / s.n * (s.n - s.p)};
    case Algorithm::node_aware:
      return {s.p - 1, s.nodes - 1, s.bytes - s.bytes / s.p, s.bytes - s.bytes / s.nodes};
    case Algorithm::hybrid_ep: {  // what the last node sent is handed on when all else is done
      const std::int64_t to_node = shape.node_bytes > 0 ? shape.node_bytes : s.bytes / s.nodes;
      return {s.p - 1, s.nodes - 1, s.bytes / s.n * (s.p - 1), to_node * (s.nodes - 1)};
    }
    case Algorithm::chain: {
      const std::int64_t bytes = staged(s.bytes, s.n - 1, shape.chunk_bytes);
      return {s.n - s.nodes, s.nodes - 1, s.nodes > 1 ? 0 : bytes, s.nodes > 1 ? bytes : 0};
    }
    case Algorithm::binomial_tree:
      return {log2_up(s.p), log2_up(s.nodes), log2_up(s.p) * s.bytes, log2_up(s.nodes) * s.bytes};
    case Algorithm::automatic:
    case Algorithm::as_all_reduce:
      break;
  }
  MANYWORLDS_CHECK(false, "no work of algorithm {}", static_cast<int>(shape.algorithm));
  return {};
}

Time on_path(const Path& path, Time step_ps, std::int64_t steps, std::int64_t wire_bytes) {
  const Time sent = wire_bytes > 0 ? serialization_ps(wire_bytes, path.bits_per_second) : 0;
  return steps * (path.latency_ps + step_ps) + sent;
}

bool has_switches(const Communicator& communicator) {
  return communicator.per_node > 1 ? communicator.node_switches : communicator.rail_switches;
}

/// What a library picks by itself: forms of two levels need two; everybody sending to everybody at once is for scale-up
/// fabrics, and so is reduction in switches, which elsewhere takes a fabric that is told to (NCCL's CollNet). A
/// calibrated library has what NCCL has, as far as there are measurements of it.
bool considered(Algorithm algorithm, Kind kind, const Library& library, const Communicator& communicator) {
  const bool one_node = communicator.per_node == communicator.members;
  if (algorithm == Algorithm::hybrid_ep) return false;  // not what a library for tensors does: it knows tokens
  if (library.protocol == Protocol::calibrated) {
    if (algorithm == Algorithm::double_tree) return !one_node;
    if (algorithm == Algorithm::in_switch)
      return kind == Kind::all_reduce && one_node && communicator.node_switches &&
             library.calibration.reduces_in_switches();
    return info_of(algorithm).as_nccl;
  }
  if (algorithm == Algorithm::two_level || algorithm == Algorithm::node_leaders || algorithm == Algorithm::node_aware)
    return communicator.per_node > 1 && !one_node;
  if (algorithm == Algorithm::in_switch) return communicator.per_node > 1 && communicator.node_switches;
  return one_node || !info_of(algorithm).inside_only;
}

/// What an algorithm does not depend on goes back to its default.
Shape reduced(Shape shape) {
  const std::vector<std::int64_t>& split = shape.split.bytes;
  const bool to_or_from_all = shape.kind == Kind::all_to_all;
  if (to_or_from_all && std::adjacent_find(split.begin(), split.end(), std::not_equal_to<>()) == split.end())
    shape.split = {};
  if (!to_or_from_all && shape.root() == 0) shape.split = {};
  if (shape.kind == Kind::send) {
    if (shape.protocol == Protocol::none) shape.per_node = 1;
    shape.channels = 1;
    shape.chunk_bytes = 0;
    return shape;
  }
  const AlgorithmInfo& info = info_of(shape.algorithm);
  const bool one_level = shape.per_node == 1 || shape.per_node == shape.members;
  if (one_level && (shape.algorithm == Algorithm::two_level || shape.algorithm == Algorithm::node_leaders))
    shape.algorithm = Algorithm::ring;
  if (one_level && shape.algorithm == Algorithm::node_aware) shape.algorithm = Algorithm::pairwise;
  if (!info.pipelined) shape.chunk_bytes = 0;
  if (!info.multi_channel) shape.channels = 1;
  const bool by_number = shape.algorithm == Algorithm::halving_doubling ||
                         shape.algorithm == Algorithm::recursive_doubling || shape.algorithm == Algorithm::direct ||
                         shape.algorithm == Algorithm::pairwise || shape.algorithm == Algorithm::binomial_tree;
  const bool one_ring = shape.algorithm == Algorithm::ring && shape.channels == 1 && shape.per_node == shape.members;
  if (shape.protocol == Protocol::none && (by_number || one_ring)) shape.per_node = 1;
  return shape;
}

std::vector<Algorithm> able(Kind kind) {
  std::vector<Algorithm> all;
  for (const AlgorithmInfo& info : algorithms())
    if (can_do(info.algorithm, kind)) all.push_back(info.algorithm);
  return all;
}

}  // namespace

bool Library::looks_at_network() const {
  const auto looks = [](Algorithm told) { return told == Algorithm::automatic || told == Algorithm::in_switch; };
  return protocol == Protocol::automatic || protocol == Protocol::calibrated || looks(all_reduce) ||
         looks(all_gather) || looks(reduce_scatter) || looks(all_to_all) || looks(broadcast) || looks(reduce);
}

std::vector<Algorithm> Library::candidates(Kind kind) const {
  Algorithm told = Algorithm::ring;
  if (kind == Kind::all_reduce) told = all_reduce;
  if (kind == Kind::all_gather) told = all_gather;
  if (kind == Kind::reduce_scatter) told = reduce_scatter;
  if (kind == Kind::all_to_all) told = all_to_all;
  if (kind == Kind::broadcast) told = broadcast;
  if (kind == Kind::reduce) told = reduce;
  if (told == Algorithm::as_all_reduce)
    told = all_reduce == Algorithm::automatic || can_do(all_reduce, kind) ? all_reduce : Algorithm::ring;
  return told == Algorithm::automatic ? able(kind) : std::vector{told};
}

Time predicted_ps(const Shape& shape, const Communicator& communicator) {
  const ProtocolCosts costs = costs_of(shape);
  const Work work = work_of(shape);
  if (shape.algorithm == Algorithm::ring && shape.chunk_bytes > 0 && work.between_steps > 0) {
    // Connections that always have another transfer on its way hide some of the latencies behind the bytes, or some of
    // the bytes behind latencies: half of what is less, by simulated rings of 16 and 64 members.
    const Time latencies = on_path(communicator.inside, costs.inside_ps, work.inside_steps, 0) +
                           on_path(communicator.between, costs.between_ps, work.between_steps, 0);
    const Time sent = on_path(communicator.between, 0, 0, costs.wire_bytes(work.between_bytes));
    return costs.launch_ps + std::max(latencies, sent) + std::min(latencies, sent) / 2;
  }
  return costs.launch_ps +
         on_path(communicator.inside, costs.inside_ps, work.inside_steps, costs.wire_bytes(work.inside_bytes)) +
         on_path(communicator.between, costs.between_ps, work.between_steps, costs.wire_bytes(work.between_bytes));
}

namespace {

constexpr std::int64_t kLeastChunk = 64 << 10;  // of a tree, in bytes
constexpr std::int64_t kMostChunks = 64;
constexpr std::uint32_t kMostInRings = 64;
constexpr std::int64_t kLeastChunkInSwitch = 16 << 10;
constexpr std::int64_t kChunksInSwitch = 8;  // of a shard

std::vector<Protocol> protocols_of(const Library& library) {
  if (library.protocol == Protocol::automatic) return {Protocol::ll, Protocol::ll128, Protocol::simple};
  if (library.protocol == Protocol::calibrated) return {Protocol::calibrated_ll, Protocol::calibrated_simple};
  return {library.protocol};
}

/// As many channels as leave by every NIC of a node: one a member, or one for two of them where trees are, of which a
/// channel has two.
void use_every_nic(Shape& shape) {
  if (shape.algorithm == Algorithm::double_tree) {
    shape.channels = std::max({shape.channels, shape.per_node / 2, 1u});
    return;
  }
  if (shape.per_node == shape.members) return;
  // Rings through everybody on as many channels as there are NICs have members^2 x NICs transfers. Where those are very
  // many, the ring inside and between nodes stands for them: it sends as much over every NIC, with NICs^2 fewer.
  if (shape.algorithm == Algorithm::ring && shape.per_node > 1 && shape.members > kMostInRings)
    shape.algorithm = Algorithm::two_level;
  if (shape.algorithm == Algorithm::ring || shape.algorithm == Algorithm::chain)
    shape.channels = std::max(shape.channels, shape.per_node);
}

/// What a calibrated library does beside that: rings with two blocks under way on a connection, trees in chunks.
void calibrate(Shape& shape, const Calibration& calibration) {
  // Whole blocks, but two of them under way: NICs do not wait for one to arrive.
  const bool between = shape.per_node < shape.members;
  if (between && shape.algorithm == Algorithm::ring && shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max<std::int64_t>(1, shape.bytes);
  if (shape.algorithm == Algorithm::double_tree) {
    if (shape.chunk_bytes == 0)
      shape.chunk_bytes = std::max(kLeastChunk, shape.bytes / (2 * shape.channels * kMostChunks));
  }
  if (shape.algorithm == Algorithm::in_switch && shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max(kLeastChunkInSwitch, shape.bytes / (shape.members * kChunksInSwitch));
  shape.calibrated = calibrated_costs(calibration, shape);
}

}  // namespace

Shape choose(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes,
             const Split& split) {
  Shape shape;
  shape.kind = kind;
  shape.members = communicator.members;
  shape.per_node = communicator.per_node;
  shape.bytes = bytes;
  shape.channels = static_cast<std::uint32_t>(std::max<std::int64_t>(library.channels, 1));
  shape.chunk_bytes = library.chunk_bytes;
  shape.split = split;
  const Shape plain = shape;
  const std::vector<Protocol> protocols = protocols_of(library);
  const std::vector<Algorithm> algorithms =
      kind == Kind::send ? std::vector{Algorithm::ring} : library.candidates(kind);
  Time best_ps = kNever;
  Shape best = shape;
  for (const Algorithm algorithm : algorithms)
    for (const Protocol protocol : protocols) {
      shape = plain;
      shape.algorithm = algorithm == Algorithm::in_switch && !has_switches(communicator) ? Algorithm::ring : algorithm;
      shape.protocol = protocol;
      const bool told = algorithms.size() == 1;
      shape.rail_switches = shape.algorithm == Algorithm::in_switch && told && communicator.rail_switches;
      if (!told && !considered(algorithm, kind, library, communicator)) continue;
      if (library.protocol == Protocol::calibrated) {
        const bool one_protocol = shape.algorithm == Algorithm::in_switch || shape.algorithm == Algorithm::hybrid_ep;
        if (one_protocol && protocol == Protocol::calibrated_ll) continue;
      }
      if (library.channels == 0 || (library.protocol == Protocol::calibrated && shape.algorithm != Algorithm::chain))
        use_every_nic(shape);
      if (library.protocol == Protocol::calibrated) calibrate(shape, library.calibration);
      const bool alone = told && protocols.size() == 1;
      const Time lasts = alone || communicator.members < 2 ? 0 : predicted_ps(shape, communicator);
      if (lasts < best_ps) best_ps = lasts, best = shape;
    }
  return reduced(best);
}

}  // namespace manyworlds::core::collective
