#include "experiments/astra_sim/files/network_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/error.hpp"
#include "experiments/programs/ranks_text.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

using import::Node;

/// In the order of Block.
constexpr std::array<const char*, 3> kBlocks{"Ring", "FullyConnected", "Switch"};
constexpr double kLargestRate = 1e9, kLargestLatency = 1e12;

const Node& list_of(const Node& document, const char* key) {
  const Node* list = document.find(key);
  if (list == nullptr) document.fail(fmt::format("{}: must be there: a list with a value per dimension", key));
  if (list->kind != Node::Kind::sequence)
    list->fail(fmt::format("{}: must be a list with a value per dimension, not {}", key, describe(*list)));
  return *list;
}

double number_of(const Node& node, const char* key, const char* right, double least, double most) {
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto [stop, error] = std::from_chars(node.text.data(), end, value);
  if (node.kind != Node::Kind::scalar || node.quoted || error != std::errc() || stop != end ||
      !(value >= least && value <= most))
    node.fail(fmt::format("{}: must be {}, not {}", key, right, describe(node)));
  return value;
}

Block block_of(const Node& node) {
  const auto found = std::find(kBlocks.begin(), kBlocks.end(), node.text);
  if (node.kind != Node::Kind::scalar || found == kBlocks.end())
    node.fail(fmt::format("topology: must be Ring, FullyConnected or Switch, not {}", describe(node)));
  return static_cast<Block>(found - kBlocks.begin());
}

std::uint32_t ranks_of(const Node& node) {
  const double ranks =
      number_of(node, "npus_count", "an integer from 2 on", 2, static_cast<double>(programs::kMaxRanks));
  const auto whole = static_cast<std::uint32_t>(ranks);
  if (static_cast<double>(whole) != ranks)
    node.fail(fmt::format("npus_count: must be an integer from 2 on, not {}", describe(node)));
  return whole;
}

void check_known(const Node& document) {
  const std::vector<std::string> known{"topology", "npus_count", "bandwidth", "latency"};
  for (const import::Entry& entry : document.entries)
    if (std::find(known.begin(), known.end(), entry.key) == known.end())
      throw core::InputError(
          fmt::format("{}: is no key of the analytical backend{}", entry.key, suggestion(entry.key, known)),
          *document.file, entry.line);
}

}  // namespace

std::uint32_t NetworkDimension::hops(std::uint32_t from, std::uint32_t to) const {
  if (block != Block::ring) return block == Block::switched ? 2 : 1;
  const std::uint32_t ahead = (to + ranks - from) % ranks;
  return std::min(ahead, ranks - ahead);
}

double NetworkDimension::bytes_per_ns() const {
  return gb_per_s * (1 << 30) / 1'000'000'000;
}

std::uint32_t Network::ranks() const {
  std::uint32_t all = 1;
  for (const NetworkDimension& dimension : dimensions) all *= dimension.ranks;
  return all;
}

Way Network::way(std::uint32_t from, std::uint32_t to) const {
  for (std::uint32_t number = 0; number < dimensions.size(); ++number) {
    const NetworkDimension& dimension = dimensions[number];
    if (from % dimension.ranks != to % dimension.ranks)
      return {number, dimension.hops(from % dimension.ranks, to % dimension.ranks)};
    from /= dimension.ranks;
    to /= dimension.ranks;
  }
  MANYWORLDS_CHECK(false, "a message from rank {} to itself", from);
}

std::int64_t Network::message_ns(const Way& way, std::int64_t bytes) const {
  const NetworkDimension& dimension = dimensions[way.dimension];
  const double ns = way.hops * dimension.latency_ns + static_cast<double>(bytes) / dimension.bytes_per_ns();
  if (!(ns < kLongestNs))
    throw core::InputError(fmt::format("bandwidth: must be such that {} bytes take less than 10^15 ns", bytes), name);
  return static_cast<std::int64_t>(ns);
}

Network parse_network_file(std::string_view text, const std::string& name) {
  const Node document = import::parse_yaml(text, name);
  if (document.kind != Node::Kind::mapping)
    throw core::InputError("must have the keys topology, npus_count, bandwidth and latency", name);
  check_known(document);
  const Node& blocks = list_of(document, "topology");
  Network network{name, {}};
  if (blocks.items.empty() || blocks.items.size() > 10)
    blocks.fail(fmt::format("topology: must have from 1 to 10 dimensions, not {}", blocks.items.size()));
  for (const Node& block : blocks.items) network.dimensions.emplace_back().block = block_of(block);
  const auto each = [&](const char* key, const auto& set) {
    const Node& list = list_of(document, key);
    if (list.items.size() != network.dimensions.size())
      list.fail(fmt::format("{}: must have {} values, as topology has, not {}", key, network.dimensions.size(),
                            list.items.size()));
    for (std::size_t i = 0; i < list.items.size(); ++i) set(network.dimensions[i], list.items[i]);
  };
  std::uint64_t ranks = 1;
  each("npus_count", [&](NetworkDimension& dimension, const Node& node) {
    dimension.ranks = ranks_of(node);
    ranks *= dimension.ranks;
    if (ranks > programs::kMaxRanks)
      node.fail(fmt::format("npus_count: must be {} ranks at most, in all dimensions", programs::kMaxRanks));
  });
  each("bandwidth", [](NetworkDimension& dimension, const Node& node) {
    dimension.gb_per_s = number_of(node, "bandwidth", "GB/s of a link, from 1e-6 to 1e9", 1e-6, kLargestRate);
  });
  each("latency", [](NetworkDimension& dimension, const Node& node) {
    dimension.latency_ns = number_of(node, "latency", "nanoseconds of a link, from 0 to 1e12", 0, kLargestLatency);
  });
  return network;
}

}  // namespace manyworlds::experiments::astra_sim
