// The result of one training step, from which the result columns of an experiment are computed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"
#include "core/compute/measured.hpp"
#include "core/network/engine/link_hops.hpp"
#include "core/sharing/key.hpp"
#include "core/step/fluid/fluid_error.hpp"
#include "core/workload/program/step_parts.hpp"

namespace manyworlds::core::step {

/// Times of one rank's compute stream in seconds, averaged over ranks; they add up to the step time (to rounding).
using Breakdown = workload::ByPart<double>;

/// A sub-simulation (kernel, isolated collective or episode) that the step used.
struct SubsimulationUse {
  sharing::Key key;
  std::string parameters;  // one-line description for people: "all_reduce ring n=8 20971520 B"
  std::int64_t result_ps = 0;
  std::int64_t times = 0;  // number of uses in this step
};

/// Shares of the kernels' time, over all ranks, by what it is based on; they add up to 1.
struct KernelShares {
  double measured = 0, interpolated = 0;
  std::array<double, compute::kKernelKinds> modelled{};  // by kind of kernel
};

struct StepResult {
  bool too_large = false;
  Time step_ps = 0;
  Breakdown breakdown;
  std::vector<Breakdown> by_kind;  // by kind of machine; empty if there is only one
  // Packet counts; 0 under `fidelity: analytic`.
  std::int64_t link_hops = 0;  // packets times links crossed in the modelled network, not those that were computed
  std::int64_t ecn_marks = 0;
  std::int64_t pauses = 0;
  // By cables that failed; 0 if they lost none, also of what is dropped or trimmed otherwise.
  std::int64_t packets_lost = 0, packets_sent_again = 0;
  double busiest_link_share = 0;  // serialisation time on the busiest network link / step time
  std::vector<SubsimulationUse> kernels, collectives, episodes;  // sorted by key
  KernelShares kernel_shares;
  FluidError fluid;  // zeros unless `fidelity: fluid`
  // The cost of computing the result; never part of it.
  network::LinkHops computed;
  double cpu_s = 0;
};

/// Serialises a result for journals and messages. decode_step() throws core::InternalError on bytes that encode() did
/// not write.
std::string encode(const StepResult& result);
StepResult decode_step(std::string_view bytes);

}  // namespace manyworlds::core::step
