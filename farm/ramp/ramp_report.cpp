#include "farm/ramp/ramp_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/base/plural.hpp"
#include "farm/status/progress.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::ramp {
namespace {

using Json = nlohmann::ordered_json;

std::string time_text(double seconds) {
  return seconds >= io::kDaysThreshold_s ? io::days_text(seconds) : duration_text(seconds);
}

std::string tokens_text(double tokens) {
  return io::with_si_prefix(tokens, "");
}

double gpu_hours(const RampReport& report, const BatchSchedule& schedule) {
  return schedule.time_s * static_cast<double>(report.batches.gpus) / 3'600;
}

const Candidate& candidate_of(const RampReport& report, const Phase& phase) {
  return report.batches.candidates[phase.candidate];
}

const std::string& layout_of(const RampReport& report, const Phase& phase) {
  return report.batches.layouts[candidate_of(report, phase).layout];
}

/// Returns the schedule of the batch that was asked for; null if it was not simulated.
const BatchSchedule* given_schedule(const RampReport& report) {
  for (const NamedSchedule& one : report.schedules)
    if (one.name == "given") return &one.schedule;
  return nullptr;
}

std::string phases_table(const RampReport& report) {
  std::vector<std::vector<std::string>> lines{
      {"batch", "from token", "to token", "critical batch", "experiment", "layout", "step", "steps", "time"}};
  for (const Phase& phase : report.schedules.front().schedule.phases) {
    const Candidate& one = candidate_of(report, phase);
    const std::string& layout = layout_of(report, phase);
    lines.push_back({std::to_string(one.batch), tokens_text(phase.from_tokens), tokens_text(phase.to_tokens),
                     tokens_text(phase.critical), std::to_string(one.id), layout.empty() ? io::kMissing : layout,
                     io::with_si_prefix(one.step_s, "s"), io::group_digits(std::round(phase.steps)),
                     time_text(phase.time_s)});
  }
  return io::align_columns(lines, {false, false, false, false, false, true, false, false, false});
}

bool same_experiment(const BatchSchedule& a, const BatchSchedule& b) {
  return a.phases.front().candidate == b.phases.front().candidate;
}

std::string schedules_table(const RampReport& report) {
  std::vector<std::vector<std::string>> lines{{"schedule", "time", "", "tokens", "steps", "GPU-hours", "restarts"}};
  const BatchSchedule* given = given_schedule(report);
  for (const NamedSchedule& one : report.schedules) {
    const BatchSchedule& schedule = one.schedule;
    if (given != nullptr && one.name == "best_fixed" && same_experiment(schedule, *given)) continue;
    const std::string change = given == nullptr || given == &schedule
                                   ? ""
                                   : fmt::format("{:+.1f} %", 100 * (schedule.time_s / given->time_s - 1));
    lines.push_back({one.title, time_text(schedule.time_s), change, tokens_text(schedule.tokens()),
                     io::group_digits(std::round(schedule.steps())), fmt::format("{:.1f}", gpu_hours(report, schedule)),
                     std::to_string(schedule.restarts)});
  }
  return io::align_columns(lines, {true, false, false, false, false, false, false});
}

std::string megatron_flags(const MegatronRamp& ramp) {
  return fmt::format("--rampup-batch-size {} {} {} --global-batch-size {}", ramp.start, ramp.increment, ramp.samples,
                     ramp.last);
}

std::string megatron_text(const RampReport& report) {
  if (!report.megatron) return "no ramp of Megatron-LM in one of these layouts is faster than a fixed batch\n";
  const std::string& layout = layout_of(report, report.megatron->schedule.phases.front());
  return fmt::format("Megatron-LM's ramp{}: {}\n", layout.empty() ? "" : " of " + layout,
                     megatron_flags(*report.megatron));
}

std::string end_text(const RampReport& report) {
  return fmt::format(
      "that loss{} is {} steps of an infinite batch away, or {} tokens of a tiny one; the critical batch "
      "is {} tokens there\n",
      report.loss ? fmt::format(", {:.3f} nats a token by the law,", *report.loss) : "",
      io::group_digits(std::round(report.end_steps)), tokens_text(report.end_tokens), tokens_text(report.end_critical));
}

std::string law_text(const RampQuestion& question) {
  const LawConstants& law = question.critical.law;
  return fmt::format(
      "assumed: critical batches of {:g} / L^(1/{:g}) tokens, L = ({:g}/N)^{:g} + ({:g}/S)^{:g} after S steps, N = {} "
      "parameters without embeddings{}\n",
      law.b_star, law.alpha_b, law.n_c, law.alpha_n, law.s_c, law.alpha_s, tokens_text(question.parameters),
      question.critical_name.empty()
          ? " (Kaplan et al. 2020: up to 1.5 G, Adam, one corpus); measured ones are better: --critical"
          : ", as " + question.critical_name + " says");
}

std::string assumptions_text(const RampReport& report) {
  const RampQuestion& question = report.question;
  std::string text =
      "counted: where the critical batch is r tokens, a step of an infinite batch is 1 + r/B steps of B tokens "
      "(McCandlish et al. 2018)\n";
  text += question.critical.points.empty()
              ? law_text(question)
              : fmt::format("assumed: critical batches as {} has them at {} {}, linear between, constant outside\n",
                            question.critical_name, question.critical.points.size(),
                            core::plural(question.critical.points.size(), "point"));
  text +=
      "assumed: the learning rate follows the batch, as where critical batches were measured; all tokens are of equal "
      "use\n"
      "assumed: step times as predicted, without failures; `manyworlds top RUN` has their intervals. Steps are counted "
      "in fractions\n";
  text += question.restart_s == 0
              ? "assumed: a change of the layout loses no time; --restart says how much\n"
              : fmt::format("assumed: a change of the layout loses {}, one of the batch alone nothing\n",
                            time_text(question.restart_s));
  if (given_schedule(report) == nullptr)
    text +=
        fmt::format("batch {} did not run here: what it reaches is known, how long it takes is not\n", question.batch);
  return text;
}

Json phase_json(const RampReport& report, const Phase& phase) {
  const Candidate& one = candidate_of(report, phase);
  return {{"experiment", one.id},
          {"layout", layout_of(report, phase)},
          {"batch", one.batch},
          {"batch_tokens", one.tokens},
          {"from_tokens", phase.from_tokens},
          {"to_tokens", phase.to_tokens},
          {"critical_batch_tokens", phase.critical},
          {"step_time_s", one.step_s},
          {"steps", phase.steps},
          {"time_s", phase.time_s}};
}

Json schedule_json(const RampReport& report, const NamedSchedule& named) {
  const BatchSchedule& schedule = named.schedule;
  Json phases = Json::array();
  for (const Phase& phase : schedule.phases) phases.push_back(phase_json(report, phase));
  return {{"schedule", named.name},
          {"time_s", schedule.time_s},
          {"tokens", schedule.tokens()},
          {"steps", schedule.steps()},
          {"gpu_hours", gpu_hours(report, schedule)},
          {"restarts", schedule.restarts},
          {"phases", phases}};
}

Json megatron_json(const std::optional<MegatronRamp>& ramp) {
  if (!ramp) return {};
  return {{"start", ramp->start},
          {"increment", ramp->increment},
          {"samples", ramp->samples},
          {"global_batch_size", ramp->last},
          {"arguments", megatron_flags(*ramp)}};
}

}  // namespace

std::string RampReport::text() const {
  return fmt::format("what {} tokens in batches of {} ({} tokens) reach, soonest on {} {}\n",
                     tokens_text(question.tokens), question.batch,
                     tokens_text(static_cast<double>(question.batch) * batches.tokens_per_sample), batches.gpus,
                     core::plural(static_cast<std::uint64_t>(batches.gpus), "GPU")) +
         end_text(*this) + "\n" + phases_table(*this) + "\n" + schedules_table(*this) + megatron_text(*this) + "\n" +
         assumptions_text(*this);
}

std::string RampReport::json() const {
  Json object{{"gpus", batches.gpus},
              {"tokens", question.tokens},
              {"batch", question.batch},
              {"tokens_per_sample", batches.tokens_per_sample},
              {"restart_s", question.restart_s},
              {"critical_batch",
               {{"file", question.critical_name.empty() ? Json() : Json(question.critical_name)},
                {"parameters", question.critical.points.empty() ? Json(question.parameters) : Json()},
                {"first_tokens", first_critical},
                {"last_tokens", end_critical}}},
              {"infinite_batch_steps", end_steps},
              {"tiny_batch_tokens", end_tokens},
              {"loss", loss ? Json(*loss) : Json()},
              {"megatron", megatron_json(megatron)},
              {"schedules", Json::array()}};
  for (const NamedSchedule& one : schedules) object["schedules"].push_back(schedule_json(*this, one));
  return object.dump(1) + "\n";
}

}  // namespace manyworlds::farm::ramp
