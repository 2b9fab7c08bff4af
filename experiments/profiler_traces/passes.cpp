#include "experiments/profiler_traces/passes.hpp"

#include <algorithm>

namespace manyworlds::experiments::profiler {

using core::workload::StepPart;

Passes::Passes(const RankTrace& trace) : backward_(trace.threads.size()), optimizer_(trace.threads.size()) {
  for (const Span& span : trace.backwards) add(backward_[span.thread], span), add(backwards_, span);
  for (const Span& span : trace.optimizers) add(optimizer_[span.thread], span), add(optimizers_, span);
  for (const Span& span : trace.steps) add(steps_, span);
}

/// Spans come in the order of their starts.
void Passes::add(Intervals& to, const Span& span) {
  if (!to.empty() && span.start < to.back().end)
    to.back().end = std::max(to.back().end, span.end);
  else
    to.push_back({span.start, span.end});
}

bool Passes::has(const Intervals& all, std::int64_t time) {
  auto behind = std::upper_bound(all.begin(), all.end(), time,
                                 [](std::int64_t at, const Interval& one) { return at < one.start; });
  return behind != all.begin() && time < std::prev(behind)->end;
}

std::int64_t Passes::next_start(const Intervals& all, std::int64_t time) {
  const auto next = std::upper_bound(all.begin(), all.end(), time,
                                     [](std::int64_t at, const Interval& one) { return at < one.start; });
  return next == all.end() ? INT64_MAX : next->start;
}

StepPart Passes::part_of(std::uint32_t thread, std::int64_t launched) const {
  if (has(backward_[thread], launched)) return StepPart::backward;
  if (has(optimizer_[thread], launched)) return StepPart::optimizer;
  const std::int64_t backward = next_start(backwards_, launched);
  if (backward < next_start(optimizers_, launched) && backward < next_start(steps_, launched)) return StepPart::forward;
  return StepPart::kernels;
}

}  // namespace manyworlds::experiments::profiler
