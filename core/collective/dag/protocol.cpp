#include "core/collective/dag/protocol.hpp"

#include <array>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr Time kTenNanoseconds = 10 * kNanosecond;

struct Latencies {  // in units of 10 ns
  std::uint16_t launch, inside, between;
};

constexpr std::array kRing{Latencies{660, 60, 270}, Latencies{1400, 190, 400}, Latencies{840, 340, 1400}};
constexpr std::array kTree{Latencies{680, 60, 500}, Latencies{1400, 125, 850}, Latencies{840, 400, 1400}};

/// Of the simple protocol alone: NVLS inside (its 25 us are for two passes through the switch) and between nodes.
constexpr Latencies kInSwitch{0, 1250, 1800};

/// Libraries have tables for rings and trees; every other algorithm is taken for the one that is more like it.
bool like_a_tree(Algorithm algorithm) {
  return algorithm == Algorithm::double_tree || algorithm == Algorithm::binomial_tree;
}

}  // namespace

// LL stores a flag beside every 4 bytes; LL128 one of 8 bytes in a line of 128.
ProtocolCosts lines_with_flags(Protocol protocol) {
  ProtocolCosts costs;
  if (protocol == Protocol::ll || protocol == Protocol::calibrated_ll) costs.line_bytes = 16, costs.payload_bytes = 8;
  if (protocol == Protocol::ll128) costs.line_bytes = 128, costs.payload_bytes = 120;
  return costs;
}

ProtocolCosts costs_of(Protocol protocol, Algorithm algorithm) {
  if (protocol == Protocol::none) return {};
  MANYWORLDS_CHECK(protocol <= Protocol::simple, "protocol {} has no figures here", static_cast<int>(protocol));
  const auto& table = like_a_tree(algorithm) ? kTree : kRing;
  const bool in_switch = algorithm == Algorithm::in_switch;
  const Latencies& row = in_switch ? kInSwitch : table.at(static_cast<std::size_t>(protocol) - 1);
  // In a switch plain data moves.
  ProtocolCosts costs = in_switch ? ProtocolCosts{} : lines_with_flags(protocol);
  costs.launch_ps = row.launch * kTenNanoseconds;
  costs.inside_ps = static_cast<std::uint32_t>(row.inside * kTenNanoseconds);
  costs.between_ps = static_cast<std::uint32_t>(row.between * kTenNanoseconds);
  return costs;
}

const char* name_of(Protocol protocol) {
  static constexpr std::array kNames{"none", "ll",         "ll128",         "simple",
                                     "auto", "calibrated", "calibrated ll", "calibrated simple"};
  return kNames.at(static_cast<std::size_t>(protocol));
}

}  // namespace manyworlds::core::collective
