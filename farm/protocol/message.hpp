// What coordinator and workers say to each other. Any message may be lost, late or doubled: each is a statement
// of fact that stays harmless when repeated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

enum class MessageKind : std::uint8_t {
  // worker to coordinator
  hello,   // I am here; `flag`: I was told the job and am still building
  report,  // I serve job `number`; `tasks` are what I hold, the first is running if `flag`
  result,  // `results` of tasks; `number` counts this worker's results, so that a doubled crash counts once
  lack,    // `tasks` whose results I need and never got
  unfit,   // I cannot serve the job: `text`; for want of memory if `flag`
  // coordinator to worker
  job,    // `text` is what its tasks have in common
  work,   // `assignments`, with `results` among their inputs that you lack
  drop,   // `tasks` others have finished, or everything not running if `flag`
  alive,  // nothing else to say
  leave,  // the run is over
};

constexpr bool for_coordinator(MessageKind kind) {
  return kind <= MessageKind::unfit;
}

struct Assignment {
  std::uint32_t task = 0;
  std::vector<std::uint32_t> inputs;
  std::string order;  // Job::order()
};

struct Message {
  MessageKind kind = MessageKind::alive;
  bool flag = false;
  std::uint64_t number = 0;
  std::vector<std::uint32_t> tasks = {};
  std::vector<Assignment> assignments = {};
  std::vector<std::pair<std::uint32_t, Outcome>> results = {};
  std::string text = {};
};

std::string encode(const Message& message);
/// Throws core::InternalError on bytes that encode() did not make.
Message decode_message(const std::string& bytes);

std::string encode(const Outcome& outcome);
Outcome decode_outcome(const std::string& bytes);

}  // namespace manyworlds::farm
