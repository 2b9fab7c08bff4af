// The forms in which frameworks print their steps.
#pragma once

#include <string_view>
#include <vector>

#include "experiments/logs/log_builder.hpp"

namespace manyworlds::experiments::logs {

struct LogFormat {
  const char* framework;
  const char* example;  // of a line with a step, for messages
  StepUnit unit;
  bool running_average = false;
  /// Takes what a line says in this form.
  void (*read)(std::string_view line, LogBuilder& to);
};

/// Returns all formats. Of a log with steps in several forms, as software prints that builds on another, the first
/// counts.
const std::vector<LogFormat>& log_formats();

void read_megatron_line(std::string_view line, LogBuilder& to);
void read_torchtitan_line(std::string_view line, LogBuilder& to);
void read_nemo_line(std::string_view line, LogBuilder& to);
void read_bridge_line(std::string_view line, LogBuilder& to);
void read_deepspeed_line(std::string_view line, LogBuilder& to);
void read_deepspeed_pipeline_line(std::string_view line, LogBuilder& to);
void read_old_deepspeed_line(std::string_view line, LogBuilder& to);

}  // namespace manyworlds::experiments::logs
