#include "core/collective/dag/protocol.hpp"

#include <array>

#include "core/base/error.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr Time kTenNanoseconds = 10 * kNanosecond;

struct Latencies {  // in units of 10 ns
  std::uint16_t launch, intra_node, inter_node;
};

// By protocol: ll, ll128, simple.
constexpr std::array kRing{Latencies{660, 60, 270}, Latencies{1400, 190, 400}, Latencies{840, 340, 1400}};
constexpr std::array kTree{Latencies{680, 60, 500}, Latencies{1400, 125, 850}, Latencies{840, 400, 1400}};

/// Simple protocol only. Inside nodes: NVLS, half of its 25 us, which are for two passes through the switch.
constexpr Latencies kInSwitch{0, 1250, 1800};

}  // namespace

// LL stores a 4-byte flag after every 4 bytes of data; LL128 stores an 8-byte flag in every line of 128 bytes.
ProtocolCosts line_format_costs(Protocol protocol) {
  ProtocolCosts costs;
  if (protocol == Protocol::ll || protocol == Protocol::calibrated_ll) costs.line_bytes = 16, costs.payload_bytes = 8;
  if (protocol == Protocol::ll128 || protocol == Protocol::calibrated_ll128)
    costs.line_bytes = 128, costs.payload_bytes = 120;
  return costs;
}

ProtocolCosts costs_of(Protocol protocol, LatencyGroup group) {
  if (protocol == Protocol::none) return {};
  MANYWORLDS_CHECK(protocol <= Protocol::simple, "protocol {} has no figures here", static_cast<int>(protocol));
  const auto& table = group == LatencyGroup::tree ? kTree : kRing;
  const bool in_switch = group == LatencyGroup::in_switch;
  const Latencies& row = in_switch ? kInSwitch : table.at(static_cast<std::size_t>(protocol) - 1);
  // Data in switches has no flags.
  ProtocolCosts costs = in_switch ? ProtocolCosts{} : line_format_costs(protocol);
  costs.launch_ps = row.launch * kTenNanoseconds;
  costs.intra_node_ps = static_cast<std::uint32_t>(row.intra_node * kTenNanoseconds);
  costs.inter_node_ps = static_cast<std::uint32_t>(row.inter_node * kTenNanoseconds);
  return costs;
}

const char* name_of(Protocol protocol) {
  static constexpr std::array kNames{
      "none", "ll", "ll128", "simple", "auto", "calibrated", "calibrated ll", "calibrated simple", "calibrated ll128"};
  return kNames.at(static_cast<std::size_t>(protocol));
}

}  // namespace manyworlds::core::collective
