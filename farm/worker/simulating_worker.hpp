// The simulating process: it constructs the runner of its job, then runs one task specification after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farm/protocol/outcome.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

/// Frames sent to the simulating process.
std::string build_request(const std::string& common_spec);
std::string run_request(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs);

/// A frame that the simulating process sends back.
struct SimulatorReply {
  enum class Kind : std::uint8_t { ready, incompatible, computed } kind = Kind::ready;
  std::uint64_t signature = 0;  // signature of the job, if ready
  std::uint32_t task = 0;       // task number, if computed
  Outcome outcome;              // outcome if computed; its bytes are the reason if incompatible
};
SimulatorReply decode_reply(const std::string& frame);

/// Serves `socket` until the peer closes it.
void simulate(int socket, const JobKind& kind);

/// Runs one task and converts any exception into an outcome.
Outcome run_guarded(Runner& runner, const std::string& spec, const std::vector<std::string>& inputs);

}  // namespace manyworlds::farm
