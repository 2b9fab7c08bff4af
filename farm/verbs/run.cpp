// `manyworlds run SPEC`: one experiment, in this process, with what its step is made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/step/world/demand.hpp"
#include "core/step/world/layout.hpp"
#include "core/workload/build/kernel_account.hpp"
#include "core/workload/layer/prices.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/import/measured_kernels.hpp"
#include "farm/cli/one_experiment.hpp"
#include "farm/cli/run_recording.hpp"
#include "farm/results/memory_advice.hpp"
#include "farm/results/step_text.hpp"
#include "farm/run/ticking_line.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/system/talk.hpp"
#include "farm/verbs/verbs.hpp"
#include "io/ranking/top.hpp"
#include "io/results/figures.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

using Json = nlohmann::ordered_json;

using Row = AnswerRow;

/// What each pipeline rank needs at its peak, part by part: of its ranks the one that needs most.
std::vector<core::memory::Footprint> footprints(const core::step::Configuration& of) {
  std::vector<core::memory::Footprint> stages(static_cast<std::size_t>(of.strategy.pp));
  for (const auto& [one, ranks] : core::step::classes_of(core::step::arrangement_of(of))) {
    core::memory::Footprint& most = stages[static_cast<std::size_t>(one.stage)];
    const auto other = core::memory::footprint(of.model, of.strategy, of.gpu_of(one), one);
    if (other.total() > most.total()) most = other;
  }
  return stages;
}

std::string stages_text(const std::vector<core::memory::Footprint>& stages, double memory_gib) {
  std::string text = fmt::format("peak memory of each pipeline rank, GiB of {:.2f}\n{:<16}", memory_gib, "rank");
  for (std::size_t stage = 0; stage < stages.size(); ++stage) text += fmt::format("{:>9}", stage);
  const auto row = [&](const char* name, auto bytes) {
    text += fmt::format("\n{:<16}", name);
    for (const core::memory::Footprint& stage : stages)
      text += fmt::format("{:>9.3f}", static_cast<double>(bytes(stage)) / (1 << 30));
  };
  for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
    row(part.name, [&](const auto& stage) { return stage.*part.member; });
  row("allocated", [](const auto& stage) { return stage.allocated(); });
  row("total", [](const auto& stage) { return stage.total(); });
  return text + "\nallocated is what the framework counts: without rounding, communicators and context\n";
}

Json stages_json(const std::vector<core::memory::Footprint>& stages, double memory_gib) {
  Json made{{"memory_gib", memory_gib}, {"stages", Json::array()}};
  for (const core::memory::Footprint& stage : stages) {
    Json row;
    for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
      row[fmt::format("{}_bytes", part.name)] = stage.*part.member;
    row["allocated_bytes"] = stage.allocated();
    row["total_bytes"] = stage.total();
    made["stages"].push_back(row);
  }
  return made;
}

int show_memory(const experiments::Sweep& sweep, bool json) {
  const auto of = experiments::world_of(sweep.experiments.front().settings, sweep.inputs).configuration;
  const auto stages = footprints(of);
  const double memory_gib = core::step::demand_of(of).memory_gib;
  std::cout << (json ? stages_json(stages, memory_gib).dump(1) + "\n" : stages_text(stages, memory_gib));
  return kExitDone;
}

/// The kernels, submodules or layers of the experiment, as a table that cluster.gpu.measured_kernels reads.
int show_kernels(const experiments::Sweep& sweep, const std::string& level) {
  using core::compute::kLevelNames;
  const auto* named = std::find(kLevelNames.begin() + 1, kLevelNames.end(), level);
  if (named == kLevelNames.end())
    throw core::InputError(
        fmt::format("must be one of {}, not '{}'", fmt::join(kLevelNames.begin() + 1, kLevelNames.end(), ", "), level),
        "--kernels");
  const auto& experiment = sweep.experiments.front();
  auto of = experiments::world_of(experiment.settings, sweep.inputs).configuration;
  if (of.is_mixed())
    throw core::InputError("tells of GPUs that are all alike, and here are several kinds", "--kernels");
  of.gpu.measured = measured_times(experiment);
  std::vector<experiments::import::KernelRow> rows;
  for (const auto& [what, sources] : core::workload::kernel_account(of.model, of.strategy, of.gpu).prices)
    if (kLevelNames.at(static_cast<std::size_t>(what.level)) == *named)
      rows.push_back({what, sources.ps(), sources.measured ? "measured" : "modelled"});
  std::cout << experiments::import::measured_kernels_csv(rows);
  return kExitDone;
}

/// Who says how long kernels take; nothing where no table was given.
std::string kernels_text(const Row& row) {
  if (row.table.find("measured_rows") == nullptr) return "";
  std::string text = fmt::format(
      "measured times    {:.0f} rows of the table fit; kernel time by layers {:.1f} %, submodules {:.1f} %, kernels "
      "{:.1f} %, the model {:.1f} %\n",
      row.number("measured_rows"), 100 * row.number("time_by_layers"), 100 * row.number("time_by_submodules"),
      100 * row.number("time_by_kernels"), 100 * row.number("time_by_model"));
  const auto disagreement = [&](const char* who, const std::string& name) {
    if (const std::string at = row.text(name + "_at"); !at.empty())
      text += fmt::format("  {} by up to {:+.1f} %, {}\n", who, 100 * row.number(name), at);
  };
  disagreement("levels disagree", "levels_disagree");
  disagreement("the model is off", "model_disagrees");
  return text;
}

double error_percent(const Row& row, const experiments::Measured& measured) {
  return 100 * (row.number("step_time_s") / measured.step_time_s - 1);
}

std::string as_text(const Row& row, const experiments::Sweep& sweep) {
  std::string text = fmt::format("{}: {}{}\n", sweep.name, row.text("status"),
                                 row.text("reason").empty() ? "" : " (" + row.text("reason") + ")");
  if (row.text("status") != "ran") text += memory_text(row, sweep.experiments.front());
  if (row.text("status") == "out_of_memory") text += fitting_text(fitting_neighbours(sweep.experiments.front()));
  if (row.text("status") != "ran") return text;
  const bool analytic = row.text("fidelity") == "analytic";
  text += fmt::format("step time         {}{:.6f} s{}\n", analytic ? "at least " : "", row.number("step_time_s"),
                      analytic ? " (analytic: nothing waits for anything on a link)" : "") +
          interval_text(row);
  text += fmt::format("tokens/s/GPU      {:.1f}\n", row.number("tokens_per_s_per_gpu"));
  text += fmt::format("MFU               {:.1f} % of {}\n", 100 * row.number("mfu"), io::mfu_peak(row.table, 0));
  for (const auto& [name, title] :
       {std::pair("gpu_energy_per_token_j", "GPUs' energy"), std::pair("energy_per_token_j", "building's energy"),
        std::pair("usd_per_million_tokens", "a million tokens"), std::pair("goodput", "goodput"),
        std::pair("checkpoint_interval_s", "checkpoint every"), std::pair("train_time_s", "time to train"),
        std::pair("train_energy_kwh", "kWh to train"), std::pair("train_usd", "USD to train")})
    if (const io::Column* column = row.table.find(name); column != nullptr && !std::isnan(column->number_at(0)))
      text += fmt::format("{:<18}{}\n", title, io::shown(column, 0));
  text += memory_text(row, sweep.experiments.front()) + breakdown_text(row) + kernels_text(row);
  text += "network           ";
  if (!analytic)
    text += fmt::format("{:.0f} link-hops, {:.0f} packets marked, {:.0f} pauses, ", row.number("link_hops"),
                        row.number("ecn_marks"), row.number("pauses"));
  text += fmt::format("busiest link {:.1f} %\n", 100 * row.number("busiest_link_share"));
  if (const auto& measured = sweep.measured)
    text += fmt::format("predicted {:.3f} s, measured {:.3f} s: {:+.1f} % ({})\n", row.number("step_time_s"),
                        measured->step_time_s, error_percent(row, *measured), measured->source);
  return text;
}

Json as_json(const Row& row, const experiments::Sweep& sweep) {
  Json made{{"name", sweep.name}, {"assumed", sweep.assumed}};
  for (const io::Column& column : row.table.columns)
    std::visit([&](const auto& values) { made[column.name] = values.at(0); }, column.values);
  if (sweep.measured && row.text("status") == "ran")
    made["measured"] = {{"step_time_s", sweep.measured->step_time_s},
                        {"source", sweep.measured->source},
                        {"error_percent", error_percent(row, *sweep.measured)}};
  return made;
}

/// Runs it, and says meanwhile how far it is.
SingleRun run_telling(const experiments::Sweep& sweep, const std::vector<std::uint32_t>& ranks) {
  RunProgress progress;
  const auto& experiment = sweep.experiments.front();
  const double estimate_s =
      experiments::fitting::closed_form_s(experiments::world_of(experiment.settings, experiment.inputs));
  const TickingLine line([&](double elapsed_s) {
    const std::size_t tasks = progress.tasks, done = progress.done;
    if (done + 1 < tasks)
      return fmt::format("{:.0f} s: {} of {} collectives simulated, then the step", elapsed_s, done, tasks - 1);
    return fmt::format("{:.0f} s: {} of the step simulated, of about {}", elapsed_s,
                       io::with_prefix(core::seconds(progress.reached), "s"), io::with_prefix(estimate_s, "s"));
  });
  return SingleRun(sweep, ranks, &progress);
}

}  // namespace

int run_run(const Invocation& invocation) {
  cxxopts::Options options("manyworlds run", "One experiment, in this process: its step time and what it is made of.");
  add_experiment_words(options);
  options.add_options()("coupled", "all packets of the step in one event loop: slow, simple, the oracle")(
      "memory", "only what each pipeline rank needs of memory, part by part; nothing is simulated")(
      "kernels",
      "only the experiment's kernels (or --kernels=submodule, =layer) with sizes and times, as a CSV table to "
      "fill in for cluster.gpu.measured_kernels; nothing is simulated",
      cxxopts::value<std::string>()->implicit_value("kernel"), "LEVEL")("json", "every column of the answer, as JSON");
  add_recording_words(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  experiments::Sweep sweep = one_experiment(*parsed);
  RecordingWords recording(*parsed, sweep);
  if (parsed->count("memory") > 0) return show_memory(sweep, parsed->count("json") > 0);
  if (parsed->count("kernels") > 0) return show_kernels(sweep, (*parsed)["kernels"].as<std::string>());
  if (parsed->count("coupled") > 0) {
    require_every_packet(sweep, "--coupled");
    sweep.experiments.front().settings["composition"] = std::string("coupled");
  }
  const SingleRun run = run_telling(sweep, recording.ranks());
  const Row row{run.results().experiments};
  std::cout << (parsed->count("json") > 0 ? as_json(row, sweep).dump(1) + "\n"
                                          : as_text(row, sweep) + io::told_assumed(sweep.assumed));
  if (run.recorded()) recording.write(run);
  if (recording.any() && !run.recorded())
    tell("manyworlds: nothing is recorded, as the step did not run: {}\n", row.text("status"));
  return row.text("status") == "failed" || (recording.any() && !run.recorded()) ? kExitFailed : kExitDone;
}

}  // namespace manyworlds::farm::commands
