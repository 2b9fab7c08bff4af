// The schedules of `manyworlds ramp`.
#include <fmt/format.h>

#include <algorithm>

#include "farm/ramp/ramp_report.hpp"

namespace manyworlds::farm::ramp {

RampReport decide_ramp(RampQuestion question, SimulatedBatches batches) {
  RampReport report;
  const double batch_tokens = static_cast<double>(question.batch) * batches.tokens_per_sample;
  std::unique_ptr<CriticalBatch> critical;
  const CriticalLaw* law = nullptr;
  if (question.critical.points.empty()) {
    auto by_law =
        std::make_unique<CriticalLaw>(question.critical.law, question.parameters, question.tokens / batch_tokens);
    law = by_law.get();
    critical = std::move(by_law);
  } else {
    critical = std::make_unique<MeasuredBatches>(question.critical.points, question.critical.batch_tokens);
  }
  const double end = critical->steps_after(0, batch_tokens, question.tokens);
  report.end_steps = end, report.end_tokens = critical->tokens(end);
  report.first_critical = critical->at(0), report.end_critical = critical->at(end);
  if (law != nullptr) report.loss = law->loss(end);
  const std::span<const Candidate> all = batches.candidates;
  report.schedules.push_back(
      {"best", "best", best_schedule(*critical, all, end, question.restart_s, question.results)});
  report.megatron = best_megatron_ramp(*critical, all, batches.tokens_per_sample, end);
  if (report.megatron) report.schedules.push_back({"megatron_ramp", "Megatron-LM's ramp", report.megatron->schedule});
  const auto add_fixed = [&](const char* name, std::int64_t batch) {
    const Leg leg = best_fixed(*critical, all, end, batch);
    report.schedules.push_back({name, fmt::format("batch {} throughout", all[leg.candidate].batch),
                                follow(*critical, all, std::span(&leg, 1), 0)});
  };
  add_fixed("best_fixed", 0);
  const bool is_simulated =
      std::any_of(all.begin(), all.end(), [&](const Candidate& one) { return one.batch == question.batch; });
  if (is_simulated) add_fixed("given", question.batch);
  report.question = std::move(question), report.batches = std::move(batches);
  return report;
}

}  // namespace manyworlds::farm::ramp
