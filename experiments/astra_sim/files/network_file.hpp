// ASTRA-sim's network.yml: the network of its analytical backend, one dimension after the other
// (astra-sim/astra-network-analytical at 599a047, NetworkParser.cpp, the topologies of both backends).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::experiments::astra_sim {

/// The longest time that anything may take, 11 days: what lies beyond is refused.
inline constexpr double kLongestNs = 1e15;

/// What connects the ranks of one dimension: links to both neighbours, links to all others, or a switch.
enum class Block : std::uint8_t { ring, fully_connected, switched };

struct NetworkDimension {
  Block block = Block::ring;
  std::uint32_t ranks = 2;
  double gb_per_s = 1;  // of a link, one direction; of 2^30 bytes
  double latency_ns = 0;

  /// Returns the links from one place of the dimension to another; a ring is walked the shorter way around.
  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const;
  double bytes_per_ns() const;
};

/// The way of a message: all of it lies in the first dimension in which its ends differ.
struct Way {
  std::uint32_t dimension = 0, hops = 0;
  bool operator==(const Way&) const = default;
};

struct Network {
  std::string name;  // of the file, in messages
  std::vector<NetworkDimension> dimensions;

  std::uint32_t ranks() const;
  /// Returns the way between two ranks, which must differ. Ranks count the first dimension fastest.
  Way way(std::uint32_t from, std::uint32_t to) const;
  /// Returns the nanoseconds of a message, as the congestion-unaware backend rounds them: all latencies of the way and
  /// one serialisation. Throws InputError above kLongestNs.
  std::int64_t message_ns(const Way& way, std::int64_t bytes) const;
};

/// Parses the file; `name` is its name in messages. Throws InputError with the line for keys that ASTRA-sim does not
/// have, lists of different lengths, and values out of range.
Network parse_network_file(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::astra_sim
