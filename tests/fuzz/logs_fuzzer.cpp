// Any bytes as the log of a training run: its steps have times and places, and its statistics are of them, or it is
// refused.
#include "core/base/error.hpp"
#include "experiments/logs/step_statistics.hpp"
#include "experiments/logs/training_log.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const logs::TrainingLog log = logs::parse_training_log(text, "train.log");
    fuzz::require(!log.steps.empty());
    for (const logs::LoggedStep& one : log.steps)
      fuzz::require(one.value > 0 && one.iteration >= 0 && one.line > 0 && one.global_batch >= 0);
    const logs::StepStatistics steps = logs::statistics_of(logs::step_times(log, 1 << 20, 64, 8));
    fuzz::require(steps.records > 0 && steps.records + steps.warm_up == log.steps.size());
    fuzz::require(steps.low_s <= steps.median_s && steps.median_s <= steps.high_s);
    fuzz::require(log.peak().allocated >= 0 && log.peak().reserved >= 0);
  } catch (const core::InputError&) {
  }
  return 0;
}
