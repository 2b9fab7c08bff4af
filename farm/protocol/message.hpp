// Messages between coordinator and workers, and among workers. Any message may be lost, delayed or duplicated, so each
// is an idempotent statement of fact.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "farm/protocol/outcome.hpp"

namespace manyworlds::farm {

enum class MessageKind : std::uint8_t {
  // Messages from a worker to the coordinator.
  hello,           // the worker has started; `flag`: it has received the job and is still building
  report,          // it serves job `number` and holds `tasks`, the first of them running if `flag`
  result,          // `results` of tasks; `number` counts this worker's results, so that a duplicated crash counts once
  missing_inputs,  // `tasks` whose results it needs and has never received
  incompatible,    // it cannot serve the job because of `text`; `flag`: for lack of memory
  // Messages from the coordinator to a worker.
  job,      // `text` is the payload that all tasks of the job have in common
  work,     // `assignments`, and the `results` among their inputs that the worker lacks
  drop,     // `tasks` that others have finished; if `flag`, also everything that is not running
  helpers,  // `ranks` that have nothing to do, and may be asked to help; all that there are
  alive,    // acknowledgement without content
  leave,    // the run is over
  // Messages between workers, about work ahead (core/base/work_ahead.hpp) of one.
  question,  // `text`, whose answer has the same `number`
  answer,    // `text`; "" if there will be none
};

constexpr bool for_coordinator(MessageKind kind) {
  return kind <= MessageKind::incompatible;
}

constexpr bool for_another_worker(MessageKind kind) {
  return kind >= MessageKind::question;
}

/// What a worker has done for others, and they for it, since it started.
struct Help {
  std::uint64_t given = 0;     // questions that it answered
  std::uint64_t given_us = 0;  // the time that took
  std::uint64_t used = 0;      // answers of others that its tasks used
  bool operator==(const Help&) const = default;
};

struct Assignment {
  std::uint32_t task = 0;
  std::vector<std::uint32_t> inputs;
  std::string spec;  // Job::spec()
};

struct Message {
  MessageKind kind = MessageKind::alive;
  bool flag = false;
  std::uint64_t number = 0;
  std::vector<std::uint32_t> tasks = {};
  std::vector<Assignment> assignments = {};
  std::vector<std::pair<std::uint32_t, Outcome>> results = {};
  std::vector<std::uint32_t> ranks = {};
  Help help = {};  // of reports and results
  std::string text = {};
};

std::string encode(const Message& message);
/// Throws core::InternalError on bytes that encode() did not produce.
Message decode_message(const std::string& bytes);

std::string encode(const Outcome& outcome);
Outcome decode_outcome(const std::string& bytes);

}  // namespace manyworlds::farm
