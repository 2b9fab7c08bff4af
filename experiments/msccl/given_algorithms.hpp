// Algorithms of MSCCL as choices of a step's collectives. docs/msccl.md says what of the interpreter is modelled.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/collective/library/tuner_rules.hpp"
#include "experiments/msccl/algorithm.hpp"

namespace manyworlds::experiments::msccl {

/// Returns the most bytes of a chunk that one loop of the interpreter moves: of Simple, half of a buffer of 4 MiB
/// (MSCCL_CHUNKSTEPS of NCCL_STEPS); of LL and LL128, an eighth of theirs, flags apart.
std::int64_t loop_bytes(Protocol protocol);

/// Returns the protocol as libraries call it.
core::collective::Protocol protocol_of(Protocol protocol);

/// Returns an algorithm as data of a collective; what its steps copy and reduce is left out.
core::collective::GivenAlgorithm given_of(const Algorithm& algorithm);

/// Parses and checks an algorithm, and returns when it is chosen: for its collective among so many GPUs, and bytes
/// from minBytes to maxBytes that its chunks divide, in place or not, as MSCCL's own scheduler does (RCCL,
/// src/misc/msccl/msccl_lifecycle.cc). Throws InputError as parse_algorithm() and check_algorithm() do.
core::collective::TunerRule rule_of(std::string_view text, const std::string& path);

/// The rules of files that were read; they may be asked for from several threads.
class RuleCache {
 public:
  /// Returns rule_of() of a file.
  core::collective::TunerRule get(const std::string& path, std::string_view text);

 private:
  std::mutex mutex_;
  std::map<std::string, core::collective::TunerRule> known_;  // by path
};

}  // namespace manyworlds::experiments::msccl
