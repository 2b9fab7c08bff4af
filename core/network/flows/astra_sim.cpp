// ASTRA-sim's closed forms, with its arithmetic: doubles in its units, rounded down to nanoseconds where ASTRA-sim
// rounds them, and integer division of sizes.
#include "core/network/flows/astra_sim.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::network {
namespace {

using collective::Algorithm;
using collective::Kind;
using collective::Shape;

/// The time of one message to the next member in nanoseconds, for the congestion-unaware and the congestion-aware
/// backend.
struct HopTimes {
  std::int64_t unaware, aware;
};

HopTimes hop_times(std::int64_t bytes, const AstraSimPath& path) {
  const double bytes_per_ns = static_cast<double>(path.bits_per_second) / 8e9;
  const double latency_ns = static_cast<double>(path.latency_ps) / static_cast<double>(kNanosecond);
  const double sending_ns = static_cast<double>(bytes) / bytes_per_ns;
  return {static_cast<std::int64_t>(static_cast<double>(path.hops) * latency_ns + sending_ns),
          path.hops * static_cast<std::int64_t>(latency_ns + sending_ns)};
}

/// Returns the nanoseconds for the reduction of a message: two reads and a write.
std::int64_t reduction_ns(std::int64_t bytes, double memory_gb_per_s) {
  return 3 * static_cast<std::int64_t>(static_cast<double>(bytes) / (memory_gb_per_s * 1e9) * 1e9);
}

/// Returns the nanoseconds of one chunk in a ring of `n` members; a message to the next member takes `step`, a
/// reduction `reduce`.
std::int64_t chunk_ns(Kind kind, std::int64_t n, std::int64_t step, std::int64_t reduce) {
  switch (kind) {
    case Kind::all_reduce:
      return (n - 1) * (2 * step + reduce);
    case Kind::reduce_scatter:
      return (n - 1) * (step + reduce);
    case Kind::all_gather:
      return (n - 1) * step;
    default:  // all_to_all around the ring: a message for the k-th next member takes k steps
      return n * (n - 1) / 2 * step;
  }
}

bool is_modelled(const Shape& shape) {
  if (shape.kind == Kind::all_to_all) return true;  // whatever its algorithm here, ASTRA-sim sends around the ring
  return shape.algorithm == Algorithm::ring &&
         (shape.kind == Kind::all_reduce || shape.kind == Kind::reduce_scatter || shape.kind == Kind::all_gather);
}

}  // namespace

const OptionTable<AstraSim>& astra_sim_options() {
  static const OptionTable<AstraSim> table{
      option("splits", &AstraSim::splits, "chunks of the collective, one after another (preferred-dataset-splits)",
             {1, 1'048'576}),
      option("endpoint_delay_ns", &AstraSim::endpoint_delay_ns, "delay of an endpoint at each message (endpoint-delay)",
             {0, 1'000'000'000}, "ns"),
      option("memory_gb_per_s", &AstraSim::memory_gb_per_s, "memory bandwidth of a reduction (local-mem-bw)",
             {0.001, 1e9}, "GB/s"),
  };
  return table;
}

AstraSimPath astra_sim_path(Router& router, std::uint32_t members) {
  AstraSimPath path;
  const std::vector<Link>& links = router.graph().links;
  for (std::uint32_t i = 0; i < members; ++i) {
    const Route route = router.route(i, (i + 1) % members, 0);
    if (i == 0) path = {0, links[route[0]].bits_per_second, links[route[0]].latency_ps};
    if (i == 0) path.hops = static_cast<std::int64_t>(route.size());
    bool uniform = static_cast<std::int64_t>(route.size()) == path.hops;
    for (const std::uint32_t link : route)
      uniform &= links[link].bits_per_second == path.bits_per_second && links[link].latency_ps == path.latency_ps;
    if (!uniform)
      throw InputError(
          fmt::format("the way from GPU {} to GPU {} is not as the others'; ASTRA-sim's ring needs equal links all "
                      "around: one_switch with cluster.gpus_per_node 1, or one node",
                      i, (i + 1) % members));
  }
  return path;
}

AstraSimTimes astra_sim(const AstraSim& system, const Shape& shape, const AstraSimPath& path) {
  if (!is_modelled(shape))
    throw InputError(
        fmt::format("ASTRA-sim's model here is that of the ring: all_reduce, all_gather, reduce_scatter "
                    "or all_to_all, not '{}'",
                    shape.text()));
  const std::int64_t n = shape.members;
  // Both programs count the bytes of the vector, and a message is one member's share of a chunk of it. The exception is
  // all_gather: ASTRA-sim counts the bytes that a member contributes, Shape::bytes those that it has in the end.
  const std::int64_t message = shape.kind == Kind::all_gather ? shape.bytes / n / system.splits  //
                                                              : shape.bytes / system.splits / n;
  if (message < 1)
    throw InputError(
        fmt::format("{} bytes are less than one for each of {} members in {} splits", shape.bytes, n, system.splits));
  const std::int64_t reduce = reduction_ns(message, system.memory_gb_per_s);
  const HopTimes hop = hop_times(message, path);
  const auto total = [&](std::int64_t hop_ns) {
    const std::int64_t chunk = chunk_ns(shape.kind, n, hop_ns + system.endpoint_delay_ns, reduce);
    return system.splits * (system.endpoint_delay_ns + chunk) * kNanosecond;
  };
  return {total(hop.unaware), total(hop.aware)};
}

}  // namespace manyworlds::core::network
