#include "experiments/logs/log_formats.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/logs/log_lines.hpp"

namespace manyworlds::experiments::logs {
namespace {

std::string known_forms() {
  std::string text;
  for (const LogFormat& one : log_formats())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.framework, one.example);
  return text;
}

/// Reads lines in every form at once, as nobody knows whose they are before the first step.
class LogReader {
 public:
  explicit LogReader(const std::string& path) : builders_(log_formats().size()) {
    for (LogBuilder& one : builders_) one.log.path = path;
  }

  void read(std::string_view raw, int number) {
    clean_line(raw, line_);
    ++lines_;
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      builders_[i].begin_line(number);
      log_formats()[i].read(line_, builders_[i]);
    }
  }

  TrainingLog finish();

 private:
  std::vector<LogBuilder> builders_;
  std::string line_;
  std::int64_t lines_ = 0;
};

/// What one form lacks of the run's memory, machines and batch, another may say: DeepSpeed beside Megatron-LM does.
TrainingLog LogReader::finish() {
  std::size_t chosen = 0;
  while (chosen < builders_.size() && builders_[chosen].log.steps.empty()) ++chosen;
  const std::string path = builders_.front().log.path;
  if (chosen == builders_.size()) {
    for (const LogBuilder& one : builders_)
      if (one.log.unreadable > 0)
        throw core::InputError("the line says a step and lacks its number or its time; no other step is readable", path,
                               one.log.first_unreadable);
    throw core::InputError(fmt::format("no training step is found in it; read are the logs of {}", known_forms()),
                           path);
  }
  TrainingLog result = std::move(builders_[chosen].log);
  result.framework = log_formats()[chosen].framework;
  result.unit = log_formats()[chosen].unit;
  result.running_average = log_formats()[chosen].running_average;
  result.lines = lines_;
  for (std::size_t i = 0; i < builders_.size(); ++i) {
    if (i == chosen) continue;
    const TrainingLog& other = builders_[i].log;
    if (result.memory.empty()) result.memory = other.memory;
    if (result.gpus == 0) result.gpus = other.gpus;
    if (result.global_batch == 0) result.global_batch = other.global_batch;
    if (result.sequence == 0) result.sequence = other.sequence;
    if (result.device.empty()) result.device = other.device;
    if (result.arguments.empty()) {
      result.arguments = other.arguments;
      result.arguments_line = other.arguments_line;
    }
  }
  return result;
}

}  // namespace

const std::vector<LogFormat>& log_formats() {
  static const std::vector<LogFormat> formats{
      {"Megatron-LM", "elapsed time per iteration (ms): 5410.6", StepUnit::seconds, false, read_megatron_line},
      {"torchtitan", "step: 10 … memory: 45.29GiB(47.7%) tps: 8,171", StepUnit::tokens_per_s_per_gpu, false,
       read_torchtitan_line},
      {"NeMo", "global_step: 49 | train_step_timing in s: 12.39", StepUnit::seconds, false, read_nemo_line},
      {"Megatron-Bridge", "Step Time : 11.65s GPU utilization: …", StepUnit::seconds, false, read_bridge_line},
      {"DeepSpeed", "global_step=40, RunningAvgSamplesPerSec=…, CurrSamplesPerSec=25.7", StepUnit::samples_per_s, false,
       read_deepspeed_line},
      {"DeepSpeed's pipelines", "steps: 10 … iter time (s): 1.234", StepUnit::seconds, false,
       read_deepspeed_pipeline_line},
      {"DeepSpeed before 0.7", "0/40, SamplesPerSec=83.5", StepUnit::samples_per_s, true, read_old_deepspeed_line},
  };
  return formats;
}

TrainingLog read_training_log(const std::string& path) {
  LogReader reader(path);
  read_lines(path, [&](std::string_view line, int number) { reader.read(line, number); });
  return reader.finish();
}

TrainingLog parse_training_log(const std::string& text, const std::string& path) {
  LogReader reader(path);
  LineSplitter lines([&](std::string_view line, int number) { reader.read(line, number); });
  lines.add(text);
  lines.finish();
  return reader.finish();
}

}  // namespace manyworlds::experiments::logs
