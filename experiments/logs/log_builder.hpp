// Puts together what the lines of a log say, in the form of one framework.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "experiments/logs/training_log.hpp"

namespace manyworlds::experiments::logs {

class LogBuilder {
 public:
  /// Tells the number of the line that the following calls are about.
  void begin_line(int number) { line_ = number; }

  /// Adds a step. A value that is missing or not above 0, or an iteration below 0, makes the line unreadable. A step
  /// that another rank has printed already is a copy; an iteration before the last one is a restart.
  void step(std::optional<std::int64_t> iteration, std::optional<double> value, std::int64_t global_batch = 0);
  /// Adds a step on a line that does not number it: it follows the last one.
  void next_step(std::optional<double> value);
  /// Says that training starts, so that the next step may be of a restart whatever its number is.
  void training_starts() { starts_anew_ = true; }
  /// Raises the peaks of a rank to these numbers of bytes, as far as they are any.
  void peak(std::int64_t rank, std::optional<double> allocated, std::optional<double> reserved);

  void begin_arguments();
  void argument_line(std::string_view line);
  void end_arguments();
  bool in_arguments() const { return in_arguments_; }

  TrainingLog log;

 private:
  bool is_copy(std::int64_t iteration) const;

  int line_ = 0, start_ = 0;
  bool starts_anew_ = false, in_arguments_ = false;
  std::string arguments_;  // of the dump that is being read
  int arguments_line_ = 0;
};

}  // namespace manyworlds::experiments::logs
