// What one training step gives: the answer columns of a world that ran.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"
#include "core/network/engine/link_hops.hpp"
#include "core/sharing/key.hpp"

namespace manyworlds::core::step {

/// Times of one rank's compute stream, averaged over ranks; they add up to the step time (to rounding).
struct Breakdown {
  double forward_s = 0, backward_s = 0, recompute_s = 0, optimizer_s = 0;
  double host_s = 0;    // waiting for the host to launch the next kernel
  double slowed_s = 0;  // what kernels took longer because collectives ran beside them
  double exposed_tp_s = 0, exposed_dp_s = 0, exposed_pp_s = 0, exposed_cp_s = 0,
         exposed_ep_s = 0;       // communication that compute waited for
  double exposed_offload_s = 0;  // waiting for activations to go to the host or to come back
  double bubble_s = 0;           // waiting for a pipeline neighbour to begin, and the end of the step
  double stall_s = 0;            // waiting for the slowest member of a collective
};

/// One sub-simulation that the step used.
struct Used {
  sharing::Key key;
  std::string parameters;  // for people, one line: "all_reduce ring n=8 20971520 B"
  std::int64_t result_ps = 0;
  std::int64_t times = 0;  // how often this step used it
};

struct StepResult {
  bool too_large = false;
  Time step_ps = 0;
  Breakdown breakdown;
  std::vector<Breakdown> by_kind;  // of the ranks on machines of each kind, where there are several
  // What happened packet by packet: nothing under `fidelity: analytic`.
  std::int64_t link_hops = 0;  // packets times links they crossed, in the world itself (not: in the simulator)
  std::int64_t ecn_marks = 0;
  std::int64_t pauses = 0;
  double busiest_link_share = 0;                     // serialisation on the busiest network link over the step
  std::vector<Used> kernels, collectives, episodes;  // sorted by key
  // How it was computed; never part of the answer.
  network::LinkHops computed;
  double cpu_s = 0;
};

/// Bytes for journals and messages. decode() throws InternalError on bytes that encode() did not make.
std::string encode(const StepResult& result);
StepResult decode_step(std::string_view bytes);

}  // namespace manyworlds::core::step
