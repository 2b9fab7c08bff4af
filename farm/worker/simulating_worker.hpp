// What the simulating process does: makes the runner of the job it is told, then runs the orders it is sent, one at a
// time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farm/protocol/outcome.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

/// Frames to the simulating process ...
std::string build_request(const std::string& common);
std::string run_request(std::uint32_t task, const std::string& order, const std::vector<std::string>& inputs);

/// ... and what comes back.
struct SimulatorReply {
  enum class Kind : std::uint8_t { ready, unfit, computed } kind = Kind::ready;
  std::uint64_t signature = 0;  // of the job, when ready
  std::uint32_t task = 0;       // when computed
  Outcome outcome;              // when computed; its bytes are the reason when unfit
};
SimulatorReply decode_reply(const std::string& frame);

/// Serves `socket` until the other side closes it.
void simulate(int socket, const JobKind& kind);

/// Runs one task and turns whatever it throws into an outcome.
Outcome run_guarded(Runner& runner, const std::string& order, const std::vector<std::string>& inputs);

}  // namespace manyworlds::farm
