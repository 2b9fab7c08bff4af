// The simulating process: it constructs the runner of its job, then runs one task specification after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farm/protocol/outcome.hpp"
#include "farm/worker/zygote.hpp"

namespace manyworlds::farm {

/// Frames sent to the simulating process.
struct BuildOptions {
  std::size_t threads = 1;
  bool may_ask = false;         // there are other ranks
  std::string components = {};  // see RunnerOptions
};
std::string build_request(const std::string& common_spec, const BuildOptions& options = {});
/// To answer another process, which the reply `helped` does.
std::string help_request(std::uint64_t number, const std::string& question);
/// The answer to a question that it asked, "" if there will be none.
std::string answer_notice(std::uint64_t number, const std::string& answer);
/// How many questions it may have under way.
std::string places_notice(std::uint64_t places);
std::string run_request(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs);

/// A frame that the simulating process sends back.
struct SimulatorReply {
  enum class Kind : std::uint8_t { ready, incompatible, computed, asks, helped } kind = Kind::ready;
  std::uint64_t signature = 0;  // signature of the job, if ready
  std::uint32_t task = 0;       // task number, if computed
  Outcome outcome;              // outcome if computed; its bytes are the reason if incompatible
  std::uint64_t used = 0;       // answers that it has used so far, if computed or if it asks
  std::uint64_t number = 0;     // of the question, if it asks or has helped
  std::string text;             // the question or the answer, "" if it has none
  std::uint64_t helped_us = 0;  // the time that the answer took
};
SimulatorReply decode_reply(const std::string& frame);

/// Serves `socket` until the peer closes it.
void simulate(int socket, const JobKind& kind);

/// Runs one task and converts any exception into an outcome.
Outcome run_guarded(Runner& runner, const std::string& spec, const std::vector<std::string>& inputs);

}  // namespace manyworlds::farm
