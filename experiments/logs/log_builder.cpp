#include "experiments/logs/log_builder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace manyworlds::experiments::logs {
namespace {

/// Ranks write into one file a little apart: a step's copies come before the second next step.
constexpr std::size_t kCopiesWithin = 2;
constexpr std::size_t kMaxArguments = 1u << 20;
constexpr double kMaxBytes = 1e15;
constexpr std::int64_t kMaxRanks = 1 << 20;

/// Arguments that a restart changes although it continues the same training.
constexpr std::array kOfOneStart{" iteration ", " consumed_",  " load ",     " rank ",  " skipped_train_samples",
                                 " start_time", " ckpt_step ", " finetune ", " wandb_", " exit_",
                                 " save ",      " local_rank "};

std::string lasting_part(const std::string& arguments) {
  std::string result;
  for (std::size_t at = 0; at < arguments.size();) {
    const std::size_t end = std::min(arguments.find('\n', at), arguments.size());
    const std::string_view line(arguments.data() + at, end - at);
    if (std::none_of(kOfOneStart.begin(), kOfOneStart.end(),
                     [&](const char* name) { return line.find(name) != std::string_view::npos; }))
      result.append(line).append("\n");
    at = end + 1;
  }
  return result;
}

}  // namespace

RankMemory TrainingLog::peak() const {
  RankMemory result;
  for (const auto& [rank, one] : memory) {
    result.allocated = std::max(result.allocated, one.allocated);
    result.reserved = std::max(result.reserved, one.reserved);
  }
  return result;
}

bool LogBuilder::is_copy(std::int64_t iteration) const {
  for (std::size_t back = 1; back <= std::min(kCopiesWithin, log.steps.size()); ++back) {
    const LoggedStep& one = log.steps[log.steps.size() - back];
    if (one.start == start_ && one.iteration == iteration) return true;
  }
  return false;
}

void LogBuilder::step(std::optional<std::int64_t> iteration, std::optional<double> value, std::int64_t global_batch) {
  if (!iteration || *iteration < 0 || !value || !(*value > 0)) {
    if (log.unreadable++ == 0) log.first_unreadable = line_;
    return;
  }
  if (!starts_anew_ && is_copy(*iteration)) {
    ++log.copies;
    return;
  }
  if (!log.steps.empty() && (starts_anew_ || *iteration < log.steps.back().iteration)) ++start_;
  starts_anew_ = false;
  if (log.steps.size() == kMaxSteps)
    throw core::InputError(fmt::format("has more than {} steps; cut it", kMaxSteps), log.path, line_);
  log.steps.push_back({*iteration, *value, std::max<std::int64_t>(global_batch, 0), line_, start_});
  if (global_batch > 0) log.global_batch = global_batch;
}

void LogBuilder::next_step(std::optional<double> value) {
  step(log.steps.empty() ? 1 : log.steps.back().iteration + 1, value);
}

void LogBuilder::peak(std::int64_t rank, std::optional<double> allocated, std::optional<double> reserved) {
  if (rank < kAnyRank || rank >= kMaxRanks) {
    if (log.unreadable++ == 0) log.first_unreadable = line_;
    return;
  }
  RankMemory& one = log.memory[rank];
  const auto raise = [](std::int64_t& to, std::optional<double> bytes) {
    if (bytes && *bytes > 0 && *bytes < kMaxBytes) to = std::max(to, static_cast<std::int64_t>(*bytes));
  };
  raise(one.allocated, allocated);
  raise(one.reserved, reserved);
}

void LogBuilder::begin_arguments() {
  in_arguments_ = true;
  arguments_.clear();
  arguments_line_ = line_;
}

void LogBuilder::argument_line(std::string_view line) {
  if (arguments_.size() + line.size() > kMaxArguments)
    throw core::InputError("its dump of arguments does not end", log.path, arguments_line_);
  arguments_.append(line).append("\n");
}

/// A later dump counts: it is that of a restart. Steps that ran with other arguments are another experiment's.
void LogBuilder::end_arguments() {
  in_arguments_ = false;
  if (!log.arguments.empty() && lasting_part(arguments_) != lasting_part(log.arguments)) {
    log.replaced += static_cast<std::int64_t>(log.steps.size());
    log.steps.clear();
    log.memory.clear();
  }
  log.arguments = arguments_;
  log.arguments_line = arguments_line_;
  training_starts();
}

}  // namespace manyworlds::experiments::logs
