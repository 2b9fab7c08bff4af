// Lines of NeMo, as its loggers and progress bars print them, and of Megatron-Bridge:
//   Training epoch 0, iteration 49/49 | … global_step: 49 | peak_memory_usage: 70833405952 | … train_step_timing in
//   s: 12.39 Epoch 0: : 100%|█| 50/50 [23:22<00:00, reduced_train_loss=0.186, global_step=49.00, …, train_step_timing
//   in s=24.00] [NeMo I … perf_metrics_utils:56] train_step_timing in s: [11.85, 6.98, 5.36] Step Time : 11.65s GPU
//   utilization: 1158.1MODEL_TFLOP/s/GPU
#include "experiments/logs/line_numbers.hpp"
#include "experiments/logs/log_formats.hpp"

namespace manyworlds::experiments::logs {
namespace {

constexpr std::string_view kTiming = "train_step_timing in s";

void read_list(std::string_view list, LogBuilder& to) {
  for (;;) {
    const std::size_t comma = list.find_first_of(",]");
    to.next_step(number_at(list.substr(0, comma)));
    if (comma == std::string_view::npos || list[comma] == ']') return;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

void read_nemo_line(std::string_view line, LogBuilder& to) {
  const std::size_t at = line.find(kTiming);
  if (at == std::string_view::npos) return;
  std::string_view rest = line.substr(at + kTiming.size());
  if (rest.empty() || (rest[0] != ':' && rest[0] != '=')) return;
  rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (rest.starts_with('[')) return read_list(rest.substr(1), to);
  auto iteration = integer_after(line, "global_step:");
  if (!iteration) iteration = integer_after(line, "global_step=");
  if (!iteration) iteration = integer_after(line, "iteration ");
  to.step(iteration, number_at(rest), integer_after(line, "global_batch_size:").value_or(0));
  // It is what the caching allocator had reserved, whatever it is called.
  if (const auto peak = number_after(line, "peak_memory_usage:")) to.peak(kAnyRank, std::nullopt, peak);
}

void read_bridge_line(std::string_view line, LogBuilder& to) {
  constexpr std::string_view kStepTime = "Step Time :";
  if (const std::size_t at = line.find(kStepTime);
      at != std::string_view::npos && line.find("GPU utilization", at) != std::string_view::npos)
    to.next_step(number_at(line.substr(at + kStepTime.size())));
}

}  // namespace manyworlds::experiments::logs
