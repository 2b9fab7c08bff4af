// A collective as a DAG of transfers between its members. A transfer starts when both its members have entered and
// all transfers before it have finished; a member is done when every transfer it takes part in has finished.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/kind.hpp"

namespace manyworlds::core::collective {

struct Transfer {
  std::uint32_t pair = 0;  // index into Dag::pairs: the connection it uses
  std::int64_t bytes = 0;
};

struct Dag {
  std::uint32_t members = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // (source, destination), by first use
  std::vector<Transfer> transfers;
  std::vector<std::uint16_t> waits;  // of each transfer: those before it, and members that only it proves entered
  std::vector<std::uint32_t> successors_begin, successors;  // of transfer i: [begin[i], begin[i + 1])
  std::vector<std::uint32_t> entry_begin, entry;            // of member i: transfers that wait for it to enter
  std::vector<std::uint32_t> uses;                          // of member i: transfers it takes part in
};

/// What a DAG is made from, and all it depends on.
struct Shape {
  Kind kind = Kind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::uint32_t members = 0;
  std::int64_t bytes = 0;      // see Kind
  std::uint32_t per_node = 1;  // members [i * per_node, (i + 1) * per_node) share a node; divides `members`
  auto operator<=>(const Shape&) const = default;
  std::string text() const;  // "all_reduce ring n=8 20971520 B"
};

/// Builds the DAG. all_to_all is pairwise and send a single transfer from member 0 to member 1, whatever the
/// algorithm. Fewer than two members give an empty DAG.
Dag build(const Shape& shape);

/// Appends transfers; used by the algorithms, one file each.
class DagBuilder {
 public:
  explicit DagBuilder(std::uint32_t members);
  /// Adds a transfer after the given ones (duplicates are counted once); returns its number.
  std::uint32_t add(std::uint32_t source, std::uint32_t destination, std::int64_t bytes,
                    std::vector<std::uint32_t> after = {});
  Dag finish();

 private:
  Dag dag_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries_;  // (member, transfer)
  std::vector<std::vector<std::uint32_t>> pair_numbers_;          // by source: (destination, pair) flattened
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;    // (before, after)
};

/// The transfers after which each member may go on to the next phase of a multi-phase algorithm.
using Frontier = std::vector<std::vector<std::uint32_t>>;

/// Ring phases over `ring` (members in ring order): `steps` rounds in which each passes on one of ring.size() chunks
/// of `bytes`; reduce-scatter and all-gather take n - 1 rounds, all-reduce both. Starts after the members' frontier
/// and replaces it.
void add_ring(DagBuilder& dag, const std::vector<std::uint32_t>& ring, std::int64_t bytes, std::uint32_t steps,
              Frontier& frontier);
void add_two_level(DagBuilder& dag, const Shape& shape, Frontier& frontier);
void add_pairwise(DagBuilder& dag, const Shape& shape);

/// Bytes of chunk `index` of `count` when `bytes` do not divide evenly: the first ones take one more.
constexpr std::int64_t chunk_bytes(std::int64_t bytes, std::uint32_t count, std::uint32_t index) {
  return bytes / count + (index < bytes % count ? 1 : 0);
}

}  // namespace manyworlds::core::collective
