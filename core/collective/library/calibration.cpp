#include "core/collective/library/calibration.hpp"

#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/collective/algorithms/registry.hpp"

namespace manyworlds::core::collective {
namespace {

constexpr double kPsPerUs = 1e6;

std::uint32_t hop_ps(double us) {
  const Time ps = round_half_up(us * kPsPerUs);
  MANYWORLDS_CHECK(ps >= 0 && ps <= std::numeric_limits<std::uint32_t>::max(), "a hop of {} us", us);
  return static_cast<std::uint32_t>(ps);
}

/// Returns the time of `bytes` at a rate in GB/s, in picoseconds.
double time_at_rate(double bytes, double gb_per_s) {
  return bytes / gb_per_s * 1e3;
}

LatencyGroup group_of(const Shape& shape) {
  return info_of(shape.algorithm).latency_group;
}

/// Returns the bytes that a member stores with flags: its part of the vector, or the whole vector if the algorithm
/// moves whole vectors (trees and rooted operations).
double stored_bytes(const Shape& shape) {
  const auto bytes = static_cast<double>(shape.bytes);
  const bool whole_vector =
      group_of(shape) == LatencyGroup::tree || shape.kind == Kind::broadcast || shape.kind == Kind::reduce;
  return whole_vector ? bytes : bytes / shape.members;
}

/// Tokens are sent at once, without latency per step. With several nodes, NICs are slower than the copies at the
/// endpoints, so these are not counted.
ProtocolCosts dispatch_costs(const Calibration& calibration, const Shape& shape, ProtocolCosts costs) {
  double launch_ps = calibration.dispatch_launch_us * kPsPerUs;
  const auto sent = static_cast<double>(shape.bytes - shape.bytes / shape.members);
  if (shape.per_node == shape.members && calibration.dispatch_copy_gb_per_s > 0)
    launch_ps += time_at_rate(sent, calibration.dispatch_copy_gb_per_s);
  costs.launch_ps = round_half_up(launch_ps);
  return costs;
}

}  // namespace

const OptionTable<Calibration>& calibration_options() {
  static constexpr Range kUs{0, 4'000}, kRate{0, 1e6};
  static const OptionTable<Calibration> table{
      option("library_launch_us", &Calibration::launch_us, "collectives, Simple: from the entry to the first transfer",
             kUs, "us"),
      option("library_hop_us", &Calibration::hop_us,
             "collectives, Simple: before each transfer inside a node, beside the links' latency", kUs, "us"),
      option("library_hop_between_us", &Calibration::hop_between_us,
             "collectives, Simple: before each transfer between nodes, beside the links' latency", kUs, "us"),
      option("library_copy_gb_per_s", &Calibration::copy_gb_per_s,
             "collectives, Simple: rate at which a reduced and gathered vector passes the ends of its connections",
             kRate, "GB/s"),
      option("library_chunking_ns_per_sqrt_b", &Calibration::chunking_ns_per_sqrt_b,
             "collectives, Simple: cost of cutting into chunks, which grows with the root of the bytes", {0, 1'000},
             "ns/B^0.5"),
      option("library_ll_launch_us", &Calibration::ll_launch_us,
             "collectives, LL: from the entry to the first transfer", kUs, "us"),
      option("library_ll_hop_us", &Calibration::ll_hop_us,
             "collectives, LL: before each transfer inside a node, beside the links' latency", kUs, "us"),
      option("library_ll_hop_between_us", &Calibration::ll_hop_between_us,
             "collectives, LL: before each transfer between nodes, beside the links' latency", kUs, "us"),
      option("library_ll_gb_per_s", &Calibration::ll_gb_per_s,
             "collectives, LL: rate at which a member stores its part of the vector, flags beside it", kRate, "GB/s"),
      option("library_in_switch_launch_us", &Calibration::in_switch_launch_us,
             "collectives reduced in switches: from the entry to the first transfer; none: switches do not reduce", kUs,
             "us"),
      option("library_in_switch_copy_gb_per_s", &Calibration::in_switch_copy_gb_per_s,
             "collectives reduced in switches: rate at which the vector passes their ends", kRate, "GB/s"),
      option("library_dispatch_launch_us", &Calibration::dispatch_launch_us,
             "exchange of tokens (hybrid_ep): from the entry to the first transfer", kUs, "us"),
      option("library_dispatch_copy_gb_per_s", &Calibration::dispatch_copy_gb_per_s,
             "exchange of tokens (hybrid_ep) in a node: rate at which what a GPU sends passes the ends; 0: at no cost",
             kRate, "GB/s"),
      option("library_nic_share", &Calibration::nic_share, "share of a NIC's line rate that the library reaches",
             {0, 1}, "share"),
      option("library_from", &Calibration::from,
             "the GPU whose library_ figures these are, scaled by link speed, where this one has none of its own"),
  };
  return table;
}

ProtocolCosts calibrated_costs(const Calibration& calibration, const Shape& shape) {
  if (calibration.copy_gb_per_s <= 0 || calibration.ll_gb_per_s <= 0)
    throw InputError("protocol: calibrated needs the library_ figures of the GPU, of which some are 0");
  ProtocolCosts costs = line_format_costs(shape.protocol);
  if (shape.protocol == Protocol::calibrated_ll) {
    costs.launch_ps =
        round_half_up(calibration.ll_launch_us * kPsPerUs + time_at_rate(stored_bytes(shape), calibration.ll_gb_per_s));
    costs.intra_node_ps = hop_ps(calibration.ll_hop_us);
    costs.inter_node_ps = hop_ps(calibration.ll_hop_between_us);
    return costs;
  }
  MANYWORLDS_CHECK(shape.protocol == Protocol::calibrated_simple, "protocol {} is not calibrated",
                   static_cast<int>(shape.protocol));
  if (group_of(shape) == LatencyGroup::token_exchange) return dispatch_costs(calibration, shape, costs);
  const bool in_switch = group_of(shape) == LatencyGroup::in_switch;
  const double copy_rate = in_switch ? calibration.in_switch_copy_gb_per_s : calibration.copy_gb_per_s;
  if (copy_rate <= 0)
    throw InputError(
        fmt::format("{} is not calibrated on this GPU (library_in_switch_copy_gb_per_s is 0); take another "
                    "algorithm, or give the figure",
                    info_of(shape.algorithm).name));
  // Operations that only reduce, gather or send copy the vector at the endpoints half as often as an all-reduce.
  const double passes = shape.kind == Kind::all_reduce ? 1 : 0.5;
  const auto bytes = static_cast<double>(shape.bytes);
  const double copy_ps = time_at_rate(bytes, copy_rate) + calibration.chunking_ns_per_sqrt_b * 1e3 * std::sqrt(bytes);
  costs.launch_ps = round_half_up((in_switch ? calibration.in_switch_launch_us : calibration.launch_us) * kPsPerUs +
                                  passes * copy_ps);
  if (in_switch) return costs;
  costs.intra_node_ps = hop_ps(calibration.hop_us);
  costs.inter_node_ps = hop_ps(calibration.hop_between_us);
  return costs;
}

}  // namespace manyworlds::core::collective
