#include "farm/explain/explained_best.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "core/step/estimate/lower_bound.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/program/step_parts.hpp"
#include "farm/best/best_selection.hpp"
#include "farm/coordinator/task_queue.hpp"
#include "farm/explain/hardware_sensitivity.hpp"
#include "farm/plan/sweep_job.hpp"
#include "farm/plan/sweep_runner.hpp"
#include "farm/texts/step_text.hpp"
#include "farm/worker/simulating_worker.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm {
namespace {

using core::workload::Activity;
using core::workload::StepPart;
using core::workload::StepPartInfo;
using experiments::Experiment;
using Json = nlohmann::ordered_json;

/// What a part of the step is a matter of.
const char* resource_of(const StepPartInfo& part) {
  switch (part.part) {
    case StepPart::host:
      return "the host";
    case StepPart::exposed_dp:
      return "links between replicas";
    case StepPart::exposed_offload:
      return "links to the host's memory";
    case StepPart::bubble:
      return "the pipeline's bubble";
    case StepPart::stall:
      return "the slowest member of collectives";
    default:
      return part.activity == Activity::communication ? "links inside replicas" : "kernels";
  }
}

std::int64_t id_of(const io::Results& results, std::size_t row) {
  return std::get<std::vector<std::int64_t>>(results.experiments.find("id")->values).at(row);
}

/// Returns a number of a row; NaN if results of another version do not have it.
double number_or_nan(const ResultRow& row, const std::string& column) {
  const io::Column* found = row.table.find(column);
  return found == nullptr ? std::nan("") : found->number_at(row.row);
}

ResultRow winner_row(const ExplainedBest& explained) {
  return {explained.results->experiments, explained.proof.rows.front()};
}

std::string percent_behind(double bound_s, double step_s) {
  return fmt::format("{:.1f} % below its step", 100 * (1 - bound_s / step_s));
}

/// The shares of a step by what they are a matter of, largest first.
std::vector<std::pair<std::string, double>> shares_by_resource(const ResultRow& row) {
  std::vector<std::pair<std::string, double>> shares;
  for (const StepPartInfo& part : core::workload::kStepParts) {
    const double share = row.number(std::string(part.column)) / row.number("step_time_s");
    const auto known =
        std::find_if(shares.begin(), shares.end(), [&](const auto& one) { return one.first == resource_of(part); });
    if (known == shares.end())
      shares.emplace_back(resource_of(part), share);
    else
      known->second += share;
  }
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

std::string ladder_text(const ExplainedBest& explained) {
  const io::BestProof& proof = explained.proof;
  std::vector<std::vector<std::string>> lines{{"rung", "looked at", "left behind", "worse by least", "median", "most"}};
  for (const io::ProofRung& rung : proof.rungs)
    lines.push_back({name_of(rung.kind), io::group_digits(static_cast<double>(rung.looked_at)),
                     io::group_digits(static_cast<double>(rung.left_behind)), io::margin_text(rung.margins.least),
                     io::margin_text(rung.margins.median), io::margin_text(rung.margins.largest)});
  return fmt::format(
             "the ladder: what each lower bound left behind, and by how much it is worse than the last of the best, "
             "{}\n",
             io::format_value(*proof.objective.column, proof.last)) +
         io::align_columns(lines, {true, false, false, false, false, false}, "  ");
}

/// The experiments on a front, the best by the objective first.
std::string front_lines_text(const io::Results& results, const io::ProvenFront& front) {
  const io::Axes axes(results);
  std::vector<std::vector<std::string>> lines{{"experiment", front.objective->name, front.column->name, "layout"}};
  for (const std::size_t row : front.rows)
    lines.push_back({results.experiments.text_at("id", row),
                     io::format_value(*front.objective, front.objective->number_at(row)),
                     io::format_value(*front.column, front.column->number_at(row)), axes.layout(row)});
  return io::align_columns(lines, {false, false, false, true}, "  ");
}

std::string values_text(const io::BestProof& proof) {
  std::vector<std::vector<std::string>> lines{{"axis", "value", "fit", "none is better than", "worse by"}};
  const io::ValuesLeftBehind behind = io::values_left_behind(proof);
  for (const io::ProvenValue& value : behind.values)
    lines.push_back({value.axis, value.value, io::group_digits(static_cast<double>(value.fitting)),
                     io::format_value(*proof.objective.column, value.bound), io::margin_text(value.margin)});
  if (behind.values.empty()) return "every value of every axis is among what was simulated\n";
  const std::string text =
      "values that nothing simulated has\n" + io::align_columns(lines, {true, true, false, false, false}, "  ");
  return behind.more == 0 ? text : text + fmt::format("  and {} more\n", behind.more);
}

/// The parts of the bound beside those of the step.
std::string parts_text(const ResultRow& analytic, const ResultRow& step) {
  std::vector<std::vector<std::string>> lines{{"part", "bound", "", "step", "", "a matter of"}};
  for (const StepPartInfo& part : core::workload::kStepParts) {
    const std::string column(part.column);
    const double low = analytic.number(column), high = number_or_nan(step, column);
    if (!(low > 0) && !(high > 0)) continue;
    lines.push_back({std::string(part.name()), io::with_si_prefix(low, "s"),
                     fmt::format("{:.1f} %", 100 * low / analytic.number("step_time_s")), io::with_si_prefix(high, "s"),
                     fmt::format("{:.1f} %", 100 * high / step.number("step_time_s")), resource_of(part)});
  }
  return io::align_columns(lines, {true, false, false, false, false, true}, "  ");
}

std::string binding_text(const ResultRow& analytic) {
  std::vector<std::string> parts;
  for (const auto& [resource, share] : shares_by_resource(analytic))
    if (share >= 0.01) parts.push_back(fmt::format("{} ({:.0f} %)", resource, 100 * share));
  return fmt::format("what binds it: {}\n", fmt::join(parts, ", "));
}

std::string memory_line(const ExplainedBest& explained) {
  const ResultRow row = winner_row(explained);
  const double peak = row.number("memory_peak_bytes"), memory = number_or_nan(row, "gpu_memory_bytes");
  std::string text = fmt::format("memory: {} of {} ({:.0f} %)", gib_text(peak), gib_text(memory), 100 * peak / memory);
  const auto nearly = io::nearly_fitting(*explained.results, 1);
  if (nearly.empty()) return text + "; nothing is left out for its memory\n";
  const auto counts = explained.results->experiments.counts_of("status");
  return text +
         fmt::format("; {} do not fit, of which experiment {} lacks least: it needs {:.1f} % more than there is\n",
                     io::group_digits(static_cast<double>(counts.at("out_of_memory"))),
                     id_of(*explained.results, nearly.front().first), 100 * (nearly.front().second - 1));
}

std::string more_memory_text(const ExplainedBest& explained) {
  const MoreMemory& memory = *explained.memory;
  const std::string kind = fmt::format("10 % more memory: {} of the {} that do not fit would",
                                       io::group_digits(static_cast<double>(memory.fitting)),
                                       io::group_digits(static_cast<double>(memory.too_large)));
  if (memory.too_large == 0) return "10 % more memory: the results have nothing that does not fit\n";
  if (memory.fitting == 0) return kind + "\n";
  const std::string looked =
      fmt::format("simulated: {}; the bounds of the others are behind the best", memory.simulated);
  if (!memory.best) return fmt::format("{}; none of them is better ({})\n", kind, looked);
  return fmt::format("{}; the best of them is experiment {}, {} ({})\n", kind, *memory.best,
                     io::format_value(*explained.proof.objective.column, memory.value), looked);
}

std::string winner_text(const ExplainedBest& explained) {
  const ResultRow row = winner_row(explained);
  const double step_s = row.number("step_time_s"), bound_s = number_or_nan(row, "step_time_bound_s");
  const io::Axes axes(*explained.results);
  std::string text = fmt::format("the best: experiment {}, {}\n", id_of(*explained.results, row.row),
                                 core::line_text(axes.layout(row.row)));
  if (!explained.winner)
    return text +
           fmt::format("its bound is {}, {}, its step {}\n", io::with_si_prefix(bound_s, "s"),
                       percent_behind(bound_s, step_s), io::with_si_prefix(step_s, "s")) +
           memory_line(explained);
  const ProvenWinner& winner = *explained.winner;
  const ResultRow analytic{winner.analytic.experiments};
  text +=
      fmt::format("its sums are {}, {}; its analytic step is {}, {}; its step {}\n",
                  io::with_si_prefix(winner.sums_s, "s"), percent_behind(winner.sums_s, step_s),
                  io::with_si_prefix(bound_s, "s"), percent_behind(bound_s, step_s), io::with_si_prefix(step_s, "s"));
  if (analytic.ran()) text += binding_text(analytic) + parts_text(analytic, row);
  return text + memory_line(explained);
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json rung_json(const io::ProofRung& rung) {
  return {{"rung", name_of(rung.kind)},
          {"looked_at", rung.looked_at},
          {"left_behind", rung.left_behind},
          {"worse_by_least", finite_or_null(rung.margins.least)},
          {"worse_by_median", finite_or_null(rung.margins.median)},
          {"worse_by_most", finite_or_null(rung.margins.largest)}};
}

Json winner_json(const ExplainedBest& explained) {
  const ResultRow row = winner_row(explained);
  Json result{{"id", id_of(*explained.results, row.row)},
              {"layout", io::Axes(*explained.results).layout(row.row)},
              {"step_time_s", row.number("step_time_s")},
              {"step_time_bound_s", finite_or_null(number_or_nan(row, "step_time_bound_s"))},
              {"memory_peak_bytes", row.number("memory_peak_bytes")},
              {"gpu_memory_bytes", finite_or_null(number_or_nan(row, "gpu_memory_bytes"))}};
  if (!explained.winner) return result;
  result["sums_s"] = explained.winner->sums_s;
  const ResultRow analytic{explained.winner->analytic.experiments};
  if (!analytic.ran()) return result;
  for (const auto& [resource, share] : shares_by_resource(analytic)) result["binds"][resource] = share;
  for (const StepPartInfo& part : core::workload::kStepParts) {
    const std::string column(part.column);
    result["parts"][column] = {{"bound", analytic.number(column)},
                               {"step", finite_or_null(number_or_nan(row, column))}};
  }
  return result;
}

/// Returns the experiments that do not fit, each in GPUs with more memory, if they then do.
std::vector<Experiment> fitting_in_more_memory(const experiments::Sweep& sweep, const io::Results& results) {
  std::vector<Experiment> fitting;
  const io::Table& table = results.experiments;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text_at("status", row) != "out_of_memory") continue;
    Experiment experiment = sweep.experiments.at(static_cast<std::size_t>(id_of(results, row)));
    improve(experiment.settings, memory_keys(experiment.settings));
    const auto needs = core::step::memory_requirement_of(experiment.config().configuration);
    if (needs.required.total() <= needs.memory_bytes()) fitting.push_back(std::move(experiment));
  }
  return fitting;
}

}  // namespace

ExplainedBest explain_best(const io::Results& results, const experiments::Sweep* sweep, const std::string& run) {
  auto proof = io::best_proof(results);
  if (!proof)
    throw core::InputError(
        io::provenance_number(results, "best") > 0
            ? "has no proof to explain: it has not ended, none of it ran, or an older version wrote it"
            : "nobody asked it for its best (sweep --best K); explain RUN --experiment ID explains one of its layouts",
        run);
  ExplainedBest result{&results, std::move(*proof), std::nullopt, std::nullopt};
  if (sweep == nullptr) return result;
  const auto id = static_cast<std::size_t>(id_of(results, result.proof.rows.front()));
  for (std::size_t row = 0; row < results.experiments.rows(); ++row)
    if (id_of(results, row) < 0 || id_of(results, row) >= std::ssize(sweep->experiments))
      throw core::InputError("its results are of another sweep than its settings", run);
  ProvenWinner winner{sweep->experiments.at(id), 0, {}};
  experiments::GraphCache graphs;
  winner.sums_s = core::seconds(core::step::lower_bound_ps(configure(winner.experiment, graphs)));
  experiments::Sweep alone = *sweep;
  alone.best = 0;
  alone.front.clear();
  alone.space.reset();
  alone.excluded.clear();
  alone.experiments = {winner.experiment};
  Experiment& bound = alone.experiments.front();
  bound.id = 0;
  bound.settings.set("fidelity", std::string("analytic"));
  bound.settings.set("composition", std::string("composed"));
  winner.analytic = simulate_here(alone);
  result.winner = std::move(winner);
  return result;
}

MoreMemory look_at_more_memory(const ExplainedBest& explained, const experiments::Sweep& sweep,
                               const TaskProgress& on_progress) {
  MoreMemory result;
  const auto counts = explained.results->experiments.counts_of("status");
  if (const auto found = counts.find("out_of_memory"); found != counts.end()) result.too_large = found->second;
  experiments::Sweep larger = sweep;
  larger.experiments = fitting_in_more_memory(sweep, *explained.results);
  result.fitting = larger.experiments.size();
  if (result.fitting == 0) return result;
  // The winner is one of them, so that the bounds of the others have to be better than its step.
  larger.experiments.push_back(explained.winner.value().experiment);
  std::vector<std::uint32_t> ids;
  for (Experiment& one : larger.experiments) {
    ids.push_back(one.id);
    one.id = static_cast<std::uint32_t>(ids.size() - 1);
  }
  larger.best = 1;
  larger.gap = 0;
  larger.front.clear();
  larger.space.reset();
  larger.excluded.clear();
  const SweepJob job(serialize_job(larger, {}));
  BestSelection selection(job, 1);
  TaskQueue queue(job.tasks(), &selection);
  SweepRunner runner(job.common_spec());
  while (const auto task = queue.take()) {
    on_progress(queue.done(), queue.total());
    queue.settle(*task, run_guarded(runner, job.spec(*task), {}));
  }
  const SelectedResults selected =
      selected_results(job, [&](std::uint32_t task) -> const Outcome& { return queue.outcome(task); });
  const io::Results rows = make_results(job.sweep(), selected.plan, selected.outcome);
  const io::Column& objective = *rows.experiments.find(larger.objective);
  result.value = explained.proof.objective.column->number_at(explained.proof.rows.front());
  for (std::size_t row = 0; row < result.fitting; ++row) {
    if (rows.experiments.text_at("status", row) != "ran") continue;
    ++result.simulated;
    if (!explained.proof.objective.better(objective.number_at(row), result.value)) continue;
    result.best = ids[row];
    result.value = objective.number_at(row);
  }
  return result;
}

std::string best_explained_text(const ExplainedBest& explained, const std::string& run) {
  const io::BestProof& proof = explained.proof;
  std::string text = fmt::format("{}: the best {} by {}", core::line_text(run), proof.best,
                                 core::line_text(proof.objective.column->name));
  text += proof.gap.value_or(0) > 0
              ? fmt::format("; nothing else is better than the last of them by more than {:.2g} %\n", 100 * *proof.gap)
              : std::string("; nothing else is better than the last of them\n");
  const auto front = io::proven_front(*explained.results);
  if (front) text += io::front_text(*explained.results, *front) + "\n" + front_lines_text(*explained.results, *front);
  text += ladder_text(explained) + values_text(proof);
  if (proof.gap.value_or(0) > 0) text += "worse by less than nothing: it may be better, but by no more than the gap\n";
  text += winner_text(explained);
  return explained.memory ? text + more_memory_text(explained) : text;
}

Json best_explained_json(const ExplainedBest& explained, const std::string& run) {
  const io::BestProof& proof = explained.proof;
  Json result{{"run", run},
              {"objective", proof.objective.column->name},
              {"best", proof.best},
              {"last_of_best", proof.last},
              {"gap", proof.gap ? Json(*proof.gap) : Json()},
              {"ladder", Json::array()},
              {"values", Json::array()},
              {"closing", Json::array()}};
  for (const io::ProofRung& rung : proof.rungs) result["ladder"].push_back(rung_json(rung));
  for (const io::ProvenValue& value : proof.values)
    result["values"].push_back({{"axis", value.axis},
                                {"value", value.value},
                                {"fitting", value.fitting},
                                {"simulated", value.simulated},
                                {"bound", finite_or_null(value.bound)},
                                {"worse_by", finite_or_null(value.margin)}});
  for (const io::ClosingStep& step : proof.closing)
    result["closing"].push_back(
        {{"simulated", step.simulated}, {"known", finite_or_null(step.known)}, {"open", finite_or_null(step.open)}});
  if (const auto front = io::proven_front(*explained.results)) {
    result["front"] = {{"column", front->column->name}, {"gap", front->gap}, {"experiments", Json::array()}};
    for (const std::size_t row : front->rows) result["front"]["experiments"].push_back(id_of(*explained.results, row));
  }
  result["winner"] = winner_json(explained);
  if (!explained.memory) return result;
  const MoreMemory& memory = *explained.memory;
  result["more_memory"] = {{"too_large", memory.too_large},
                           {"fitting", memory.fitting},
                           {"simulated", memory.simulated},
                           {"best", memory.best ? Json(*memory.best) : Json()}};
  if (memory.best) result["more_memory"]["value"] = memory.value;
  return result;
}

}  // namespace manyworlds::farm
