// The log of a training run: when which step was done, at which rate, and what the run says of itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace manyworlds::experiments::logs {

/// What a log prints of a step: its time, or a rate from which the time follows once batch and GPUs are known.
enum class StepUnit : std::uint8_t { seconds, tokens_per_s_per_gpu, samples_per_s };

struct LoggedStep {
  std::int64_t iteration = 0;
  double value = 0;               // in the log's unit, above 0
  std::int64_t global_batch = 0;  // 0: its line does not say
  int line = 0;
  int start = 0;  // 0 for the first start of training in the log, 1 after a restart, …
};

/// Stands for whichever rank a line is of that does not say it.
inline constexpr std::int64_t kAnyRank = -1;

/// Peaks of one rank in bytes; 0: not printed.
struct RankMemory {
  std::int64_t allocated = 0, reserved = 0;
};

struct TrainingLog {
  std::string path, framework;
  StepUnit unit = StepUnit::seconds;
  bool running_average = false;  // each value is a mean over all steps so far
  std::vector<LoggedStep> steps;
  std::map<std::int64_t, RankMemory> memory;              // by rank, or kAnyRank
  std::int64_t gpus = 0, global_batch = 0, sequence = 0;  // 0: not said
  std::string device;                                     // the GPU's own name; empty: not said
  std::string arguments;                                  // the lines of Megatron-LM's dump; empty: none
  int arguments_line = 0;                                 // of its first line
  std::int64_t lines = 0;
  std::int64_t copies = 0;      // of steps that several ranks print
  std::int64_t replaced = 0;    // steps before a restart with other arguments, which are not among `steps`
  std::int64_t unreadable = 0;  // lines of steps that lack a number
  int first_unreadable = 0;
  std::int64_t checkpoints = 0, evaluations = 0;

  /// Returns the largest peak over ranks; 0 where none is printed.
  RankMemory peak() const;
};

/// The most steps that a log may have.
inline constexpr std::size_t kMaxSteps = 4'000'000;

/// Reads a log, which may be compressed by gzip, line by line. Throws InputError if it cannot be read, or has no step
/// in a form that is known, which the message lists.
TrainingLog read_training_log(const std::string& path);

/// Reads the same from text; `path` is its name in messages.
TrainingLog parse_training_log(const std::string& text, const std::string& path);

}  // namespace manyworlds::experiments::logs
