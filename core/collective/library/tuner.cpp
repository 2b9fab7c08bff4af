#include "core/collective/library/tuner.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr double kNotConsidered = std::numeric_limits<double>::infinity();
constexpr double kBusShare = 0.8;      // of the links: 20, 20 and 40 GB/s per NVLink 3, 4 and 5, of 25, 25 and 50
constexpr double kNicBusShare = 0.96;  // of the NICs
constexpr double kLl128Share = 0.92, kTreeShare = 0.92, kLlTreeDivisor = 3.8;
constexpr double kLlMaxOf210 = 39;     // GB/s; inferred: with 39 to 50 its times jump where those of vTrain and Echo do
constexpr double kProxyUs = 1;         // a step between nodes, Intel's hosts; three of them with Simple
constexpr double kLongRing = 1.4;      // Simple, by so much longer is a ring's latency
constexpr double kLongRingBytes = 64;  // from so many bytes per channel and member on
constexpr double kInSwitchUs = 25;

/// The tables of an architecture, in GB/s. The channels of a tree have two rates: on two nodes, and on more.
struct ArchitectureTable {
  double ll_max, in_switch_share;
  std::vector<double> in_switch_rates;  // of a channel, from the fastest
  std::array<double, 2> tree_channel, ll128_tree_channel;
  std::int64_t in_switch_channels;
};

const ArchitectureTable& table_of(Architecture architecture) {
  static const std::array<ArchitectureTable, 4> tables{{
      {87.7, 0, {}, {23.6, 17.8}, {20, 20}, 16},
      {141, 0.85, {60, 50, 40, 30, 24, 20}, {41.4, 36}, {36.7, 29}, 16},
      {282, 0.74, {90, 80, 70, 60, 50, 45, 40, 30}, {82.8, 72}, {73.4, 58}, 32},
      {0, 0, {}, {}, {}, 16},  // RCCL has shares of the links' rates instead, below
  }};
  MANYWORLDS_CHECK(architecture != Architecture::unknown, "the tuner has no tables for an unknown architecture");
  return tables.at(static_cast<std::size_t>(architecture) - 1);
}

/// Latencies of a protocol, in microseconds.
struct Latencies {
  double launch, intra_node, inter_node;
};

// By protocol: ll, ll128, simple.
constexpr std::array kRing{Latencies{6.6, 0.6, 2.7}, Latencies{14, 1.9, 4}, Latencies{8.4, 3.4, 14}};
constexpr std::array kTree{Latencies{6.8, 0.6, 5}, Latencies{14, 1.25, 8.5}, Latencies{8.4, 4, 14}};

/// RCCL's latencies, and the shares of the links' rates that it expects: 48 of an xGMI link's 64 GB/s
/// (src/graph/topo.h, GFX94X_XGMI_WIDTH), less in trees, on two nodes and on more. It has no LL128.
struct RcclTable {
  Latencies latencies;
  std::array<double, 2> share;
};
constexpr double kXgmiBusShare = 48.0 / 64;
// By protocol: ll, ll128, simple.
constexpr std::array kRcclRing{RcclTable{{12, 0.8, 9.5}, {0.08, 0.08}}, RcclTable{}, RcclTable{{17, 2.1, 320}, {1, 1}}};
constexpr std::array kRcclTree{RcclTable{{12, 0.9, 10.5}, {0.06, 0.06}}, RcclTable{},
                               RcclTable{{17, 2.3, 25}, {0.11, 0.59}}};

/// The factors of a tree's rate by the size of the vector: from 64 B, doubling.
constexpr std::array<std::array<double, 23>, 3> kTreeFactors{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

std::size_t index_of(Protocol protocol) {
  if (protocol == Protocol::calibrated_ll) return 0;
  return protocol == Protocol::calibrated_ll128 ? 1 : 2;
}

std::int64_t log2_down(std::int64_t n) {
  std::int64_t log = 0;
  while (n >>= 1) ++log;
  return log;
}

double us_of(double latency_us, std::int64_t bytes, double gb_per_s) {
  return latency_us + static_cast<double>(bytes) / gb_per_s * 1e-3;
}

/// One question to the tuner.
struct Question {
  const TunerInput& input;
  Kind kind;
  std::uint32_t members, per_node;
  std::int64_t bytes;

  std::uint32_t nodes() const { return members / per_node; }
  bool is_rccl() const { return input.architecture == Architecture::cdna; }
  double bus() const {
    const double share = is_rccl() ? kXgmiBusShare : kBusShare;
    return nodes() > 1 ? per_node * input.nic_gb_per_s * kNicBusShare : input.link_gb_per_s * share;
  }
  double steps() const { return static_cast<double>(ring_steps(kind, members)); }
  double ll_max() const { return nodes() > 1 ? ll_gb_per_s_between(nodes()) : table_of(input.architecture).ll_max; }
  bool is_rooted() const { return kind == Kind::broadcast || kind == Kind::reduce; }
};

/// Returns the rate at which a ring's connections carry data. NCCL 2.29 gives each of Blackwell's eight channels 40
/// GB/s for LL128; that is inferred from the sizes at which measured times jump.
double ring_rate(const Question& q, Protocol protocol) {
  if (protocol == Protocol::calibrated_ll)
    return std::min(q.input.version == LibraryVersion::v2_10 ? kLlMaxOf210 : q.ll_max(), q.bus() / 2);
  if (protocol == Protocol::calibrated_simple) return q.bus();
  const bool limited = q.input.architecture == Architecture::blackwell && q.input.version >= LibraryVersion::v2_29;
  return limited && q.nodes() == 1 ? std::min(kLl128Share * q.bus(), 8 * 40.0) : kLl128Share * q.bus();
}

double ring_us(const Question& q, Protocol protocol) {
  const Latencies& latencies = kRing.at(index_of(protocol));
  const double steps = q.steps();
  // A vector of n blocks passes each connection in `steps` blocks; a rooted operation's passes it once.
  const double rate = ring_rate(q, protocol) * (q.is_rooted() ? 1 : q.members / steps);
  if (q.nodes() == 1) return us_of(latencies.launch + steps * latencies.intra_node, q.bytes, rate);
  const double between = static_cast<double>(ring_steps(q.kind, q.nodes()));
  const bool simple = protocol == Protocol::calibrated_simple;
  double latency_us = latencies.launch + between * latencies.inter_node +
                      (steps - between) * std::max(latencies.intra_node, simple ? 3 * kProxyUs : kProxyUs);
  const double share = static_cast<double>(q.bytes) / (std::max(q.per_node, 4u) * static_cast<double>(q.members));
  if (simple && q.kind == Kind::all_reduce && share >= kLongRingBytes) latency_us *= kLongRing;
  return us_of(latency_us, q.bytes, rate);
}

double tree_us(const Question& q, Protocol protocol) {
  const ArchitectureTable& table = table_of(q.input.architecture);
  const std::size_t index = index_of(protocol), more_than_two = q.nodes() > 2 ? 1 : 0;
  const double channels = std::max(q.per_node, 4u);
  const double whole = std::min(q.bus() * kTreeShare, channels * table.tree_channel[more_than_two]);
  double rate = whole;
  if (protocol == Protocol::calibrated_ll) rate = std::min(whole / kLlTreeDivisor, q.ll_max());
  if (protocol == Protocol::calibrated_ll128)
    rate = std::min(whole * 120 / 128, table.ll128_tree_channel[more_than_two] * channels);
  rate /= 2;
  const auto size = static_cast<std::size_t>(log2_down(std::max<std::int64_t>(1, q.bytes >> 6)));
  if (size < kTreeFactors[index].size()) rate *= kTreeFactors[index][size];
  const Latencies& latencies = kTree.at(index);
  const double latency_us = latencies.launch + 2 * ((q.per_node - 1) * latencies.intra_node +
                                                    static_cast<double>(log2_down(q.nodes())) * latencies.inter_node);
  return us_of(latency_us, q.bytes, rate);
}

/// Each member is a head that a channel of one rate serves; as many as the links carry at the slowest rate.
double in_switch_us(const Question& q) {
  const ArchitectureTable& table = table_of(q.input.architecture);
  if (table.in_switch_share == 0 || q.members < 3 || q.nodes() > 1 || q.kind != Kind::all_reduce) return kNotConsidered;
  const double heads = std::min<double>(q.members, std::max(1.0, q.bus() / table.in_switch_rates.back()));
  const auto rate = std::find_if(table.in_switch_rates.begin(), table.in_switch_rates.end(),
                                 [&](double each) { return each <= q.bus() / heads + 0.5; });
  if (rate == table.in_switch_rates.end()) return kNotConsidered;
  const double bus = heads * *rate * table.in_switch_share * (q.members - 1) / q.members;
  return us_of(kInSwitchUs, q.bytes, 2 * bus * q.members / q.steps());
}

/// RCCL's time: a tree, which there is across nodes alone, has half of its rate.
double rccl_us(const Question& q, Protocol protocol, bool tree) {
  if (protocol == Protocol::calibrated_ll128) return kNotConsidered;
  const RcclTable& table = (tree ? kRcclTree : kRcclRing).at(index_of(protocol));
  const Latencies& latencies = table.latencies;
  const double share = table.share[q.nodes() > 2 ? 1 : 0], steps = q.steps();
  if (tree)
    return us_of(latencies.launch + 2 * ((q.per_node - 1) * latencies.intra_node +
                                         static_cast<double>(log2_down(q.nodes())) * latencies.inter_node),
                 q.bytes, q.bus() * share / 2);
  const double between = q.nodes() > 1 ? static_cast<double>(ring_steps(q.kind, q.nodes())) : 0;
  const double rate = q.bus() * share * (q.is_rooted() ? 1 : q.members / steps);
  return us_of(latencies.launch + between * latencies.inter_node + (steps - between) * latencies.intra_node, q.bytes,
               rate);
}

}  // namespace

std::int64_t ring_steps(Kind kind, std::uint32_t members) {
  if (kind == Kind::broadcast || kind == Kind::reduce) return members;
  return (kind == Kind::all_reduce ? 2 : 1) * (std::int64_t{members} - 1);
}

double ll_gb_per_s_between(std::uint32_t nodes) {
  return nodes <= 2 ? 39 : 20.4;
}

std::int64_t in_switch_channels(Architecture architecture) {
  return table_of(architecture).in_switch_channels;
}

double tuner_us(const TunerInput& input, Kind kind, Algorithm algorithm, Protocol protocol, std::uint32_t members,
                std::uint32_t per_node, std::int64_t bytes) {
  const Question question{input, kind, members, per_node, bytes};
  const bool across = members > per_node;
  if (protocol == Protocol::calibrated_ll128 && across && !input.ll128_between_nodes) return kNotConsidered;
  const LatencyGroup group = info_of(algorithm).latency_group;
  if (group == LatencyGroup::in_switch && !across)
    return protocol == Protocol::calibrated_simple ? in_switch_us(question) : kNotConsidered;
  const bool tree = group == LatencyGroup::tree && across;
  if (question.is_rccl()) return rccl_us(question, protocol, tree);
  return tree ? tree_us(question, protocol) : ring_us(question, protocol);
}

}  // namespace manyworlds::core::collective
