#include "core/collective/library/library.hpp"

#include <algorithm>
#include <functional>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"
#include "core/collective/dag/protocol.hpp"

namespace manyworlds::core::collective {
namespace {

/// Terms of the alpha-beta model: sequential steps, and bytes on the most loaded connection, inside nodes and between
/// nodes.
struct CostTerms {
  std::int64_t intra_node_steps = 0, inter_node_steps = 0;
  std::int64_t intra_node_bytes = 0, inter_node_bytes = 0;
};

// Members, members per node, nodes, bytes and channels of a collective.
struct CollectiveSizes {
  std::int64_t n, p, nodes, bytes, channels;
};

/// Returns the base-2 logarithm of `n`, rounded up.
std::int64_t log2_up(std::int64_t n) {
  std::int64_t log = 0;
  while (std::int64_t{1} << log < n) ++log;
  return log;
}

/// A ring through all members. `passes` is 2 for an all-reduce, which reduces and gathers, otherwise 1. With several
/// nodes, the slowest connections are those between nodes; channels use separate NICs there, as many as a node has
/// members.
CostTerms ring(const CollectiveSizes& s, std::int64_t passes) {
  std::int64_t bytes = passes * (s.bytes - s.bytes / s.n);
  if (s.nodes > 1) bytes /= std::min(s.channels, s.p);
  const std::int64_t steps = passes * (s.n - 1);
  const std::int64_t inter_node =
      s.nodes > 1 ? (steps + s.p - 1) / s.p : 0;  // every p-th step crosses nodes, rounded up
  CostTerms terms{steps - inter_node, inter_node, 0, 0};
  (s.nodes > 1 ? terms.inter_node_bytes : terms.intra_node_bytes) = bytes;
  return terms;
}

CostTerms two_level(const CollectiveSizes& s, std::int64_t passes) {
  const std::int64_t shard = s.bytes / s.p;
  return {passes * (s.p - 1), passes * (s.nodes - 1), passes * (s.bytes - shard), passes * (shard - shard / s.nodes)};
}

/// The chains inside nodes forward blocks while the ring between nodes delivers the next ones.
CostTerms node_leaders(const CollectiveSizes& s, std::int64_t passes) {
  const std::int64_t node_bytes = s.bytes / s.nodes;
  CostTerms terms{0, passes * (s.nodes - 1), 0, passes * (s.bytes - node_bytes)};
  if (s.p > 1) terms.intra_node_steps = passes * s.p, terms.intra_node_bytes = passes * s.p * node_bytes;
  return terms;
}

CostTerms halving_doubling(const CollectiveSizes& s, std::int64_t passes, bool neighbours_first) {
  const bool even = (s.n & (s.n - 1)) == 0;
  const std::int64_t shard = s.bytes / s.p, part = s.bytes / s.nodes;
  CostTerms terms{passes * log2_up(s.p), passes * log2_up(s.nodes), 0, 0};
  if (neighbours_first)
    terms.intra_node_bytes = passes * (s.bytes - shard), terms.inter_node_bytes = passes * (shard - shard / s.nodes);
  else
    terms.intra_node_bytes = passes * (part - part / s.p), terms.inter_node_bytes = passes * (s.bytes - part);
  if (!even) {  // members beyond a power of two send and receive everything
    (s.p > 1 ? terms.intra_node_steps : terms.inter_node_steps) += 2;
    (s.p > 1 ? terms.intra_node_bytes : terms.inter_node_bytes) += 2 * s.bytes;
  }
  return terms;
}

CostTerms recursive_doubling(const CollectiveSizes& s) {
  CostTerms terms{log2_up(s.p), log2_up(s.nodes), 0, 0};
  if ((s.n & (s.n - 1)) != 0) (s.p > 1 ? terms.intra_node_steps : terms.inter_node_steps) += 2;
  terms.intra_node_bytes = terms.intra_node_steps * s.bytes;
  terms.inter_node_bytes = terms.inter_node_steps * s.bytes;
  return terms;
}

/// Returns the equivalent bytes of a vector that passes `stages` connections in sequence: without chunks, `stages`
/// times as many; with chunks, one chunk more per additional stage.
std::int64_t pipelined_bytes(std::int64_t bytes, std::int64_t stages, std::int64_t chunk_bytes) {
  return bytes + (stages - 1) * (chunk_bytes > 0 ? std::min(bytes, chunk_bytes) : bytes);
}

CostTerms double_tree(const CollectiveSizes& s, std::int64_t chunk_bytes) {
  const std::int64_t intra_node = 2 * (s.p - 1), inter_node = 2 * log2_up(s.nodes);
  // Half of the vector goes up each tree and down to two children: per direction, a connection carries all of it.
  if (s.nodes == 1)
    return {intra_node, inter_node, pipelined_bytes(s.bytes, intra_node + inter_node, 2 * chunk_bytes), 0};
  // The head of an inner node receives from two children and its parent, and sends as much. With two nodes it would be
  // less, but libraries ignore that (NCCL's src/graph/tuning.cc).
  const std::int64_t share = s.bytes / std::min(2 * s.channels, s.p);
  const std::int64_t chunk = chunk_bytes > 0 ? std::min(share, chunk_bytes) : share;
  return {intra_node, inter_node, intra_node * chunk, 3 * share + (inter_node - 1) * chunk};
}

CostTerms direct(const CollectiveSizes& s, std::int64_t passes) {
  const std::int64_t block = s.bytes / s.n;
  return {s.p > 1 ? passes : 0, s.nodes > 1 ? passes : 0, passes * block * (s.p - 1), passes * block * (s.n - s.p)};
}

/// The whole vector goes up to the switch of the node once, and its shards a second time; the same is sent down.
CostTerms in_switch(const CollectiveSizes& s, std::int64_t passes, bool rail_switches) {
  const std::int64_t shard = s.bytes / s.p;
  CostTerms terms = s.p > 1 ? CostTerms{passes, 0, passes == 2 ? s.bytes + shard : s.bytes, 0} : CostTerms{};
  if (s.nodes == 1) return terms;
  terms.inter_node_steps = rail_switches ? 1 : passes * (s.nodes - 1);
  terms.inter_node_bytes = rail_switches ? shard : passes * (shard - shard / s.nodes);
  return terms;
}

/// Returns the bytes of an even operation in which every member has as many bytes as the busiest one has here.
std::int64_t bytes_of_busiest(const Shape& shape) {
  if (shape.split.even() || shape.kind != Kind::all_to_all) return shape.bytes;
  return shape.members * *std::max_element(shape.split.bytes.begin(), shape.split.bytes.end());
}

CostTerms cost_terms_of(const Shape& shape) {
  const CollectiveSizes s{shape.members, shape.per_node, shape.members / shape.per_node, bytes_of_busiest(shape),
                          shape.channels};
  const std::int64_t passes = shape.kind == Kind::all_reduce ? 2 : 1;
  if (shape.kind == Kind::send) return s.p > 1 ? CostTerms{1, 0, s.bytes, 0} : CostTerms{0, 1, 0, s.bytes};
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
    case Algorithm::hybrid_ep: {  // the data of the last node is forwarded after all other data
      const std::int64_t to_node = shape.node_bytes > 0 ? shape.node_bytes : s.bytes / s.nodes;
      return {s.p - 1, s.nodes - 1, s.bytes / s.n * (s.p - 1), to_node * (s.nodes - 1)};
    }
    case Algorithm::chain: {
      const std::int64_t bytes = pipelined_bytes(s.bytes, s.n - 1, shape.chunk_bytes);
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

Time path_time(const Path& path, Time step_ps, std::int64_t steps, std::int64_t wire_bytes) {
  const Time sent = wire_bytes > 0 ? serialization_ps(wire_bytes, path.bits_per_second) : 0;
  return steps * (path.latency_ps + step_ps) + sent;
}

bool has_switches(const Communicator& communicator) {
  return communicator.per_node > 1 ? communicator.node_switches : communicator.rail_switches;
}

/// Returns whether `automatic` considers an algorithm. Two-level algorithms need two levels. Direct exchanges are
/// considered on scale-up fabrics only; so is reduction in switches, which elsewhere must be configured (as NCCL's
/// CollNet). A calibrated library considers NCCL's algorithms, if they are calibrated.
bool is_candidate(Algorithm algorithm, Kind kind, const Library& library, const Communicator& communicator) {
  const bool one_node = communicator.per_node == communicator.members;
  if (algorithm == Algorithm::hybrid_ep) return false;  // not for tensors: it needs the routing of tokens
  if (library.protocol == Protocol::calibrated) {
    if (algorithm == Algorithm::double_tree) return !one_node;
    if (algorithm == Algorithm::in_switch)
      return kind == Kind::all_reduce && one_node && communicator.node_switches &&
             library.calibration.reduces_in_switches();
    return info_of(algorithm).in_nccl;
  }
  if (algorithm == Algorithm::two_level || algorithm == Algorithm::node_leaders || algorithm == Algorithm::node_aware)
    return communicator.per_node > 1 && !one_node;
  if (algorithm == Algorithm::in_switch) return communicator.per_node > 1 && communicator.node_switches;
  return one_node || !info_of(algorithm).intra_node_only;
}

/// Returns the shape with every parameter that does not affect its DAG set to its default.
Shape canonical(Shape shape) {
  const std::vector<std::int64_t>& split = shape.split.bytes;
  const bool is_all_to_all = shape.kind == Kind::all_to_all;
  if (is_all_to_all && std::adjacent_find(split.begin(), split.end(), std::not_equal_to<>()) == split.end())
    shape.split = {};
  if (!is_all_to_all && shape.root() == 0) shape.split = {};
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
  const bool ignores_nodes = shape.algorithm == Algorithm::halving_doubling ||
                             shape.algorithm == Algorithm::recursive_doubling || shape.algorithm == Algorithm::direct ||
                             shape.algorithm == Algorithm::pairwise || shape.algorithm == Algorithm::binomial_tree;
  const bool one_ring = shape.algorithm == Algorithm::ring && shape.channels == 1 && shape.per_node == shape.members;
  if (shape.protocol == Protocol::none && (ignores_nodes || one_ring)) shape.per_node = 1;
  return shape;
}

std::vector<Algorithm> supporting_algorithms(Kind kind) {
  std::vector<Algorithm> all;
  for (const AlgorithmInfo& info : algorithms())
    if (supports(info.algorithm, kind)) all.push_back(info.algorithm);
  return all;
}

}  // namespace

bool Library::depends_on_network() const {
  const auto needs_network = [](Algorithm configured) {
    return configured == Algorithm::automatic || configured == Algorithm::in_switch;
  };
  return protocol == Protocol::automatic || protocol == Protocol::calibrated || needs_network(all_reduce) ||
         needs_network(all_gather) || needs_network(reduce_scatter) || needs_network(all_to_all) ||
         needs_network(broadcast) || needs_network(reduce);
}

std::vector<Algorithm> Library::candidates(Kind kind) const {
  Algorithm configured = Algorithm::ring;
  if (kind == Kind::all_reduce) configured = all_reduce;
  if (kind == Kind::all_gather) configured = all_gather;
  if (kind == Kind::reduce_scatter) configured = reduce_scatter;
  if (kind == Kind::all_to_all) configured = all_to_all;
  if (kind == Kind::broadcast) configured = broadcast;
  if (kind == Kind::reduce) configured = reduce;
  if (configured == Algorithm::as_all_reduce)
    configured = all_reduce == Algorithm::automatic || supports(all_reduce, kind) ? all_reduce : Algorithm::ring;
  return configured == Algorithm::automatic ? supporting_algorithms(kind) : std::vector{configured};
}

Time predicted_ps(const Shape& shape, const Communicator& communicator) {
  const ProtocolCosts costs = costs_of(shape);
  const CostTerms terms = cost_terms_of(shape);
  if (shape.algorithm == Algorithm::ring && shape.chunk_bytes > 0 && terms.inter_node_steps > 0) {
    // With two transfers in flight on each connection, latencies and transmission overlap partly: half of the smaller
    // term is hidden, by comparison with simulated rings of 16 and 64 members.
    const Time latencies = path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps, 0) +
                           path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps, 0);
    const Time sent = path_time(communicator.inter_node, 0, 0, costs.wire_bytes(terms.inter_node_bytes));
    return costs.launch_ps + std::max(latencies, sent) + std::min(latencies, sent) / 2;
  }
  return costs.launch_ps +
         path_time(communicator.intra_node, costs.intra_node_ps, terms.intra_node_steps,
                   costs.wire_bytes(terms.intra_node_bytes)) +
         path_time(communicator.inter_node, costs.inter_node_ps, terms.inter_node_steps,
                   costs.wire_bytes(terms.inter_node_bytes));
}

namespace {

constexpr std::int64_t kMinTreeChunk = 64 << 10;  // trees, in bytes
constexpr std::int64_t kMaxTreeChunks = 64;
constexpr std::uint32_t kMaxMembersInRings = 64;
constexpr std::int64_t kMinInSwitchChunk = 16 << 10;
constexpr std::int64_t kInSwitchChunks = 8;  // per shard

std::vector<Protocol> protocols_of(const Library& library) {
  if (library.protocol == Protocol::automatic) return {Protocol::ll, Protocol::ll128, Protocol::simple};
  if (library.protocol == Protocol::calibrated) return {Protocol::calibrated_ll, Protocol::calibrated_simple};
  return {library.protocol};
}

/// Uses as many channels as needed to use every NIC of a node: one per member, or one per two members with trees,
/// because a channel has two trees.
void use_every_nic(Shape& shape) {
  if (shape.algorithm == Algorithm::double_tree) {
    shape.channels = std::max({shape.channels, shape.per_node / 2, 1u});
    return;
  }
  if (shape.per_node == shape.members) return;
  // Rings through all members with one channel per NIC have members^2 x NICs transfers. If that is too many, the
  // two-level algorithm replaces them: it sends as many bytes over every NIC, with NICs^2 times fewer transfers.
  if (shape.algorithm == Algorithm::ring && shape.per_node > 1 && shape.members > kMaxMembersInRings)
    shape.algorithm = Algorithm::two_level;
  if (shape.algorithm == Algorithm::ring || shape.algorithm == Algorithm::chain)
    shape.channels = std::max(shape.channels, shape.per_node);
}

/// Applies the settings of a calibrated library: rings with two blocks in flight per connection, trees and in-switch
/// reductions in chunks, and the calibrated costs.
void apply_calibration(Shape& shape, const Calibration& calibration) {
  // Chunks are whole blocks, but two of them are in flight: NICs do not wait for a block to arrive.
  const bool inter_node = shape.per_node < shape.members;
  if (inter_node && shape.algorithm == Algorithm::ring && shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max<std::int64_t>(1, shape.bytes);
  if (shape.algorithm == Algorithm::double_tree) {
    if (shape.chunk_bytes == 0)
      shape.chunk_bytes = std::max(kMinTreeChunk, shape.bytes / (2 * shape.channels * kMaxTreeChunks));
  }
  if (shape.algorithm == Algorithm::in_switch && shape.chunk_bytes == 0)
    shape.chunk_bytes = std::max(kMinInSwitchChunk, shape.bytes / (shape.members * kInSwitchChunks));
  shape.calibrated = calibrated_costs(calibration, shape);
}

}  // namespace

Shape choose_shape(const Library& library, const Communicator& communicator, Kind kind, std::int64_t bytes,
                   const Split& split) {
  Shape shape;
  shape.kind = kind;
  shape.members = communicator.members;
  shape.per_node = communicator.per_node;
  shape.bytes = bytes;
  shape.channels = static_cast<std::uint32_t>(std::max<std::int64_t>(library.channels, 1));
  shape.chunk_bytes = library.chunk_bytes;
  shape.split = split;
  const Shape base = shape;
  const std::vector<Protocol> protocols = protocols_of(library);
  const std::vector<Algorithm> algorithms =
      kind == Kind::send ? std::vector{Algorithm::ring} : library.candidates(kind);
  Time best_ps = kNever;
  Shape best = shape;
  for (const Algorithm algorithm : algorithms)
    for (const Protocol protocol : protocols) {
      shape = base;
      shape.algorithm = algorithm == Algorithm::in_switch && !has_switches(communicator) ? Algorithm::ring : algorithm;
      shape.protocol = protocol;
      const bool configured = algorithms.size() == 1;
      shape.rail_switches = shape.algorithm == Algorithm::in_switch && configured && communicator.rail_switches;
      if (!configured && !is_candidate(algorithm, kind, library, communicator)) continue;
      if (library.protocol == Protocol::calibrated) {
        const bool one_protocol = shape.algorithm == Algorithm::in_switch || shape.algorithm == Algorithm::hybrid_ep;
        if (one_protocol && protocol == Protocol::calibrated_ll) continue;
      }
      if (library.channels == 0 || (library.protocol == Protocol::calibrated && shape.algorithm != Algorithm::chain))
        use_every_nic(shape);
      if (library.protocol == Protocol::calibrated) apply_calibration(shape, library.calibration);
      const bool only_choice = configured && protocols.size() == 1;
      const Time predicted = only_choice || communicator.members < 2 ? 0 : predicted_ps(shape, communicator);
      if (predicted < best_ps) best_ps = predicted, best = shape;
    }
  return canonical(best);
}

}  // namespace manyworlds::core::collective
