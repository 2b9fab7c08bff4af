// What `manyworlds ramp` prints: the batches that reach a loss soonest, beside Megatron-LM's ramps and fixed batches.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "farm/ramp/batch_schedule.hpp"
#include "farm/ramp/critical_file.hpp"
#include "farm/ramp/megatron_ramp.hpp"

namespace manyworlds::farm::ramp {

/// The loss that `tokens` in batches of `batch` samples reach is to be reached soonest.
struct RampQuestion {
  double tokens = 0;
  std::int64_t batch = 0;
  double restart_s = 0;   // lost where the layout changes
  std::string results;    // name in messages
  CriticalFile critical;  // the defaults where `critical_name` is empty
  std::string critical_name;
  double parameters = 0;  // of the model without embeddings, for the law
};

struct NamedSchedule {
  std::string name, title;  // in JSON, and for people
  BatchSchedule schedule;
};

struct RampReport {
  RampQuestion question;
  SimulatedBatches batches;
  double end_steps = 0, end_tokens = 0;         // of an infinite and of a tiny batch
  double first_critical = 0, end_critical = 0;  // tokens
  std::optional<double> loss;                   // by the law, in nats a token
  std::vector<NamedSchedule> schedules;  // the best first; Megatron-LM's and the fixed batch where there are such
  std::optional<MegatronRamp> megatron;

  /// Tables of the best schedule's phases and of all schedules, Megatron-LM's arguments, and what was assumed.
  std::string text() const;
  /// One object; times in seconds, batches in samples and tokens.
  std::string json() const;
};

/// Throws core::InputError where the layouts are too many for restarts; best_schedule() says when.
RampReport decide_ramp(RampQuestion question, SimulatedBatches batches);

}  // namespace manyworlds::farm::ramp
