// Lines of DeepSpeed's throughput timer and of its pipeline engine. What it prints as GB are GiB:
//   epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=25.7, MemAllocated=4.32GB,
//   MaxMemAllocated=38.49GB
#include "experiments/logs/line_numbers.hpp"
#include "experiments/logs/log_formats.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr double kGib = 1 << 30;

void read_peak(std::string_view line, LogBuilder& to) {
  if (const auto peak = number_after(line, "MaxMemAllocated=")) to.peak(kAnyRank, *peak * kGib, std::nullopt);
}

/// Returns the step of "0/40, " before `at`; nothing if there is none.
std::optional<std::int64_t> counted_step(std::string_view line, std::size_t at) {
  const std::size_t slash = line.rfind('/', at);
  return slash == std::string_view::npos ? std::nullopt : integer_after(line.substr(slash), "/");
}

}  // namespace

void read_deepspeed_line(std::string_view line, LogBuilder& to) {
  const std::size_t at = line.find("CurrSamplesPerSec=");
  if (at == std::string_view::npos) return;
  auto iteration = integer_after(line, "global_step=");
  if (!iteration) iteration = counted_step(line, line.find("RunningAvg"));
  to.step(iteration, number_after(line, "CurrSamplesPerSec="));
  read_peak(line, to);
}

void read_deepspeed_pipeline_line(std::string_view line, LogBuilder& to) {
  if (line.find("iter time (s):") == std::string_view::npos) return;
  to.step(integer_after(line, "steps:"), number_after(line, "iter time (s):"));
}

void read_old_deepspeed_line(std::string_view line, LogBuilder& to) {
  const std::size_t at = line.find(" SamplesPerSec=");
  if (at == std::string_view::npos) return;
  to.step(counted_step(line, at), number_after(line, " SamplesPerSec="));
  read_peak(line, to);
}

}  // namespace manyworlds::experiments::logs
