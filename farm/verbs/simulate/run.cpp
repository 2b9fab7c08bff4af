// `manyworlds run SPEC`: one experiment, in this process, with the breakdown of its step.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/plural.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/config/graphs.hpp"
#include "experiments/faults/failed_cables.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/cli/options/emit_options.hpp"
#include "farm/cli/options/job_options.hpp"
#include "farm/cli/options/one_experiment.hpp"
#include "farm/cli/options/own_options.hpp"
#include "farm/cli/options/run_recording.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/options/thread_options.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/explain/critical_path_text.hpp"
#include "farm/explain/drawn_steps.hpp"
#include "farm/run/ticking_line.hpp"
#include "farm/sweep/single_experiment.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/texts/memory_advice.hpp"
#include "farm/texts/stage_footprints.hpp"
#include "farm/texts/step_text.hpp"
#include "farm/verbs/simulate/run_kernels.hpp"
#include "io/ranking/top.hpp"
#include "io/results/number_format.hpp"
#include "io/results/results.hpp"

namespace manyworlds::farm::commands {

namespace {

using Json = nlohmann::ordered_json;

using Row = ResultRow;

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
  row("reserved", [](const auto& stage) { return stage.reserved(); });
  row("total", [](const auto& stage) { return stage.total(); });
  return text +
         "\nallocated is what the framework counts: without rounding, communicators and context; reserved is what its "
         "allocator takes: with rounding\n";
}

Json stages_json(const std::vector<core::memory::Footprint>& stages, double memory_gib) {
  Json object{{"memory_gib", memory_gib}, {"stages", Json::array()}};
  for (const core::memory::Footprint& stage : stages) {
    Json row;
    for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
      row[fmt::format("{}_bytes", part.name)] = stage.*part.member;
    row["allocated_bytes"] = stage.allocated();
    row["reserved_bytes"] = stage.reserved();
    row["total_bytes"] = stage.total();
    object["stages"].push_back(row);
  }
  return object;
}

/// Parameters of a model, and those of them that are trained.
struct ParameterCounts {
  std::int64_t all, trained;
};

int show_memory(const experiments::Sweep& sweep, bool json) {
  const auto configuration = sweep.experiments.front().config().configuration;
  const auto stages = stage_footprints(configuration);
  const double memory_gib = core::step::memory_requirement_of(configuration).memory_gib;
  const core::workload::Model& model = configuration.model;
  const ParameterCounts counts = configuration.programs ? ParameterCounts{0, 0}
                                                        : ParameterCounts{core::workload::model_parameters(model),
                                                                          core::workload::trained_parameters(model)};
  if (json) {
    Json object = stages_json(stages, memory_gib);
    if (counts.trained < counts.all) object["parameters"] = counts.all, object["trained_parameters"] = counts.trained;
    if (model.teacher) object["teacher_parameters"] = core::workload::model_parameters(*model.teacher);
    std::cout << object.dump(1) << '\n';
    return kExitDone;
  }
  if (counts.trained < counts.all)
    std::cout << fmt::format("parameters        {} ({}), of which {} ({}) are trained\n", counts.all,
                             experiments::models::count_text(counts.all), counts.trained,
                             experiments::models::count_text(counts.trained));
  if (model.teacher) {
    const std::int64_t count = core::workload::model_parameters(*model.teacher);
    std::cout << fmt::format("teacher           {} ({}) parameters, in 16 bits\n", count,
                             experiments::models::count_text(count));
  }
  std::cout << stages_text(stages, memory_gib);
  return kExitDone;
}

/// Describes the sources of the kernel times; "" if no measured table was given.
std::string kernels_text(const Row& row) {
  if (row.table.find("measured_rows") == nullptr) return "";
  std::string text = fmt::format(
      "measured times    {:.0f} rows of the table fit; kernel time by layers {:.1f} %, submodules {:.1f} %, kernels "
      "{:.1f} %, the model {:.1f} %\n",
      row.number("measured_rows"), 100 * row.number("time_by_layers"), 100 * row.number("time_by_submodules"),
      100 * row.number("time_by_kernels"), 100 * row.number("time_by_model"));
  const auto add_disagreement = [&](const char* who, const std::string& name) {
    if (const std::string at = row.text(name + "_at"); !at.empty())
      text += fmt::format("  {} by up to {:+.1f} %, {}\n", who, 100 * row.number(name), at);
  };
  add_disagreement("levels disagree", "levels_disagree");
  add_disagreement("the model is off", "model_disagrees");
  return text;
}

double error_percent(const Row& row, const experiments::MeasuredStep& measured) {
  return 100 * (row.number("step_time_s") / measured.step_time_s - 1);
}

std::string own_text(const std::optional<OwnView>& own) {
  if (!own) return "";
  return fmt::format("with your own     {} to {}, by the {} of your own that fit, of {} {} ({})\n",
                     io::with_si_prefix(own->low_s, "s"), io::with_si_prefix(own->high_s, "s"),
                     own->rows == 1 ? "row" : fmt::format("{} rows", own->rows), own->experiments,
                     core::plural(own->experiments, "experiment"), own->table);
}

core::Time step_ps(const Row& row) {
  return core::round_half_up(row.number("step_time_s") * static_cast<double>(core::kSecond));
}

/// Returns the cables of the experiment that fail; none if it does not run.
std::vector<experiments::FailedCable> failed_cables_of(const experiments::Experiment& experiment) {
  if (experiment.settings.text("faults.fails").empty()) return {};
  experiments::GraphCache graphs;
  const core::step::Configuration configuration = configure(experiment, graphs);
  return experiments::failed_cables(configuration.failures, *configuration.graph);
}

/// Says which cables failed when, and what that lost; "" if none was to.
std::string failures_text(const Row& row, const experiments::Experiment& experiment) {
  const auto cables = failed_cables_of(experiment);
  if (cables.empty()) return "";
  const auto count = [&](const char* name) { return static_cast<std::int64_t>(row.number(name)); };
  return fmt::format("failed            {}\n",
                     experiments::failed_cables_text(cables, step_ps(row), "the step", count("packets_lost"),
                                                     count("packets_sent_again")));
}

std::string as_text(const Row& row, const experiments::Sweep& sweep, const std::optional<OwnView>& own,
                    const std::optional<DrawnSteps>& drawn) {
  std::string text = fmt::format("{}: {}{}\n", sweep.name, row.text("status"),
                                 row.text("reason").empty() ? "" : " (" + row.text("reason") + ")");
  if (!sweep.single && !sweep.columns.empty()) {
    text += "layout           ";
    const experiments::Experiment& one = sweep.experiments.front();
    for (std::size_t axis = 0; axis < sweep.columns.size(); ++axis) {
      const double* number = std::get_if<double>(&one.axes[axis]);
      if (number != nullptr && std::isnan(*number)) continue;  // a leaf that does not apply
      text += fmt::format(" {}={}", sweep.columns[axis].name, experiments::import::value_text(one.axes[axis]));
    }
    text += "\n";
  }
  if (row.text("status") == "ran" || row.text("status") == "out_of_memory")
    text += split_text(sweep.experiments.front());
  if (row.text("status") != "ran") text += memory_text(row, sweep.experiments.front());
  if (row.text("status") == "out_of_memory") text += fitting_text(fitting_advice(sweep.experiments.front()));
  if (row.text("status") != "ran") return text;
  const bool analytic = row.text("fidelity") == "analytic";
  text += fmt::format("step time         {}{:.6f} s{}\n", analytic ? "at least " : "", row.number("step_time_s"),
                      analytic ? " (analytic: no queueing on links)" : "") +
          interval_text(row) + own_text(own);
  text += throughput_text(row);
  for (const auto& [name, title] :
       {std::pair("gpu_energy_per_token_j", "GPUs' energy"), std::pair("energy_per_token_j", "building's energy"),
        std::pair("usd_per_million_tokens", "a million tokens"), std::pair("goodput", "goodput"),
        std::pair("checkpoint_interval_s", "checkpoint every"), std::pair("train_time_s", "time to train"),
        std::pair("train_energy_kwh", "kWh to train"), std::pair("train_usd", "USD to train"),
        std::pair("budget_tokens", "tokens in budget"), std::pair("budget_loss", "predicted loss")})
    if (const io::Column* column = row.table.find(name); column != nullptr && !std::isnan(column->number_at(0)))
      text += fmt::format("{:<18}{}\n", title, io::format_cell(column, 0));
  if (const io::Column* tuner = row.table.find("collectives_tuner"))
    text += fmt::format("tuner             {}\n", tuner->text_at(0));
  if (const io::Column* packed = row.table.find("packed_documents"))
    text += fmt::format("documents         {}\n", packed->text_at(0)) + drawn_steps_text(drawn);
  text += memory_text(row, sweep.experiments.front()) + breakdown_text(row) + time_basis_text(row) + kernels_text(row);
  text += "network           ";
  if (row.text("fidelity") == "fluid")
    text += io::fluid_error_text(row.table, {0}) + ", ";
  else if (!analytic)
    text += fmt::format("{:.0f} link-hops, {:.0f} packets marked, {:.0f} pauses, ", row.number("link_hops"),
                        row.number("ecn_marks"), row.number("pauses"));
  text += fmt::format("busiest link {:.1f} %\n", 100 * row.number("busiest_link_share"));
  text += failures_text(row, sweep.experiments.front());
  if (const auto& measured = sweep.measured)
    text += fmt::format("predicted {:.3f} s, measured {:.3f} s: {:+.1f} % ({})\n", row.number("step_time_s"),
                        measured->step_time_s, error_percent(row, *measured), measured->source);
  return text;
}

Json as_json(const SingleRun& run, const experiments::Sweep& sweep, const std::optional<OwnView>& own,
             const std::optional<CriticalPath>& path, const std::optional<DrawnSteps>& drawn) {
  Json object = experiment_json(sweep, run.results());
  const Row row{run.results().experiments};
  if (const auto cables =
          row.ran() ? failed_cables_of(sweep.experiments.front()) : std::vector<experiments::FailedCable>();
      !cables.empty())
    object["failed_cables"] = experiments::failed_cables_json(cables, step_ps(row));
  if (own)
    object["own"] = {{"step_time_low_s", own->low_s},
                     {"step_time_high_s", own->high_s},
                     {"experiments", own->experiments},
                     {"rows", own->rows},
                     {"table", own->table}};
  if (drawn) object["drawn_steps"] = drawn_steps_json(*drawn);
  if (path) object["critical_path"] = critical_path_json(*path);
  return object;
}

/// Says on one line what became of the step.
std::string step_title(const Row& row) {
  if (row.text("status") != "ran") return row.text("status");
  return fmt::format("{} a step, {:.1f} tokens/s/GPU", io::with_si_prefix(row.number("step_time_s"), "s"),
                     row.number("tokens_per_s_per_gpu"));
}

/// Runs the experiment and shows its progress.
SingleRun run_with_progress(const experiments::Sweep& sweep, const std::vector<std::uint32_t>& ranks,
                            std::size_t threads) {
  RunProgress progress;
  const auto& experiment = sweep.experiments.front();
  const double estimate_s = experiments::fitting::closed_form_s(experiment.config());
  const std::string estimate = io::with_si_prefix(estimate_s, "s");
  bool is_said = ::isatty(STDERR_FILENO) == 1;  // a terminal shows the line below from the beginning
  const TickingLine line([&](double elapsed_s) {
    if (!std::exchange(is_said, true))
      print_message(
          "analytic estimate: {} a step; {}\n", estimate,
          experiment.settings.text("fidelity") == "packet"
              ? "its packets are being simulated (--set fidelity=fluid is faster, with an error that it tells)"
              : "it is being simulated");
    const std::size_t tasks = progress.tasks, done = progress.done;
    if (done + 1 < tasks)
      return fmt::format(
          "analytic estimate: {} a step; after {:.0f} s, {} of {} collectives are simulated, then the step", estimate,
          elapsed_s, done, tasks - 1);
    return fmt::format("analytic estimate: {} a step; after {:.0f} s, {} of it are simulated", estimate, elapsed_s,
                       io::with_si_prefix(core::seconds(progress.reached), "s"));
  });
  return SingleRun(sweep, ranks, &progress, threads);
}

/// Returns what a job's file was read as: the model's parameters, the GPUs and their layout, and the batch.
std::string sizes_text(const experiments::Experiment& experiment) {
  const experiments::ExperimentConfig config = experiment.config();
  if (const auto& programs = config.configuration.programs)
    return fmt::format("sizes             {} ranks, {} distinct programs; {} GPUs\n",
                       programs->ranks->program_of_rank.size(), programs->programs.size(), config.cluster.gpus());
  const core::workload::Model& model = config.configuration.model;
  const core::workload::Strategy& strategy = config.configuration.strategy;
  const std::int64_t gpus = config.cluster.gpus(), group = strategy.tp * strategy.cp * strategy.pp;
  const std::string name = experiment.settings.text("model.name"), gpu = experiment.settings.text("cluster.gpu.name");
  return fmt::format(
      "sizes             {}{} parameters in {} layers; {} GPUs{}: tp {}, pp {}, cp {}, dp {}{}; {} samples of {} "
      "tokens, "
      "{} a micro-batch\n",
      name.empty() ? "" : name + ", ", experiments::models::count_text(core::workload::model_parameters(model)),
      model.layers, gpus, gpu.empty() ? "" : " (" + gpu + ")", strategy.tp, strategy.pp, strategy.cp, gpus / group,
      strategy.ep > 1 ? fmt::format(", ep {}", strategy.ep) : "", strategy.global_batch, model.sequence,
      strategy.micro_batch);
}

/// Reads SPEC; where it names no stack, the software is that of what is emitted.
experiments::Sweep read_spec(const cxxopts::ParseResult& parsed, const experiments::jobs::EmitTarget* target) {
  experiments::Sweep sweep = one_experiment(parsed);
  if (target == nullptr || sweep.assumed.find("strategy.stack=") == std::string::npos) return sweep;
  sweep = one_experiment(parsed, {}, {fmt::format("strategy.stack.name={}", target->stack)});
  print_message("assumed: the stack {}, which is what --emit {} is launched with (--set strategy.stack=NAME)\n",
                target->stack, target->name);
  return sweep;
}

/// Reads SPEC, or the job that --like names, which goes to `job`.
experiments::Sweep read_experiment(const cxxopts::ParseResult& parsed, const experiments::jobs::EmitTarget* target,
                                   std::optional<experiments::jobs::Job>& job) {
  if (!has_job(parsed)) return read_spec(parsed, target);
  std::vector<std::string> set;
  if (parsed.count("set") > 0) set = parsed["set"].as<std::vector<std::string>>();
  apply_assume_option(parsed, set);
  JobExperiment read = job_experiment(parsed, set);
  job = std::move(read.job);
  return std::move(read.sweep);
}

int run_run(const Invocation& invocation) {
  cxxopts::Options options("manyworlds run", "One experiment, in this process: its step time and what it is made of.");
  add_experiment_options(options);
  add_guess_option(options);
  add_job_options(options);
  add_emit_options(options, "this experiment");
  options.add_options()("coupled", "all packets of the step in one event loop: slow, simple, the oracle")(
      "memory", "only what each pipeline rank needs of memory, part by part; nothing is simulated")(
      "kernels",
      "only the experiment's kernels (or --kernels=submodule, =layer) with sizes and times, as a CSV table to "
      "fill in for cluster.gpu.measured_kernels; nothing is simulated",
      cxxopts::value<std::string>()->implicit_value("kernel"),
      "LEVEL")("aiob", "with --kernels=submodule: the table has the times of a file of AICB's AIOB (docs/formats.md)",
               cxxopts::value<std::string>(), "FILE")(
      "totals",
      "only what the step's kernels take by measured layers, by submodules, by kernels and by the model, each alone, "
      "and where these differ; nothing is simulated")("beside", "with --totals: the same under another software stack",
                                                      cxxopts::value<std::string>(),
                                                      "STACK")("json", "every column of the results, as JSON");
  add_thread_options(options);
  add_own_options(options);
  add_recording_options(options);
  options.parse_positional({"spec"});
  options.positional_help("SPEC.yaml");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  EmitOptions emit(*parsed);
  std::optional<experiments::jobs::Job> job;
  experiments::Sweep sweep = read_experiment(*parsed, emit.target(), job);
  refuse_guesses(*parsed, sweep);
  if (emit.any())
    emit.emit(sweep.experiments.front().settings, job ? &*job : nullptr,
              experiments::Catalog((*parsed)["catalog"].as<std::string>()));
  RecordingOptions recording(*parsed, sweep);
  if (parsed->count("memory") > 0) {
    const int code = show_memory(sweep, parsed->count("json") > 0);
    emit.write({sweep.name});
    return code;
  }
  const bool shows_kernels = parsed->count("kernels") > 0, shows_totals = parsed->count("totals") > 0;
  if ((shows_kernels || shows_totals) && emit.any())
    throw core::InputError("goes with no table of kernels: leave one of them out", "--emit");
  const auto given = [&](const char* option) {
    return parsed->count(option) > 0 ? (*parsed)[option].as<std::string>() : std::string();
  };
  if (!shows_kernels && !given("aiob").empty()) throw core::InputError("needs --kernels=submodule", "--aiob");
  if (!shows_totals && !given("beside").empty()) throw core::InputError("needs --totals", "--beside");
  if (shows_kernels) return show_kernels(sweep, given("kernels"), given("aiob"));
  if (shows_totals) {
    std::optional<experiments::Sweep> other;
    if (const std::string stack = given("beside"); !stack.empty())
      other = one_experiment(*parsed, {}, {fmt::format("strategy.stack={}", stack)});
    return show_totals(sweep, other, parsed->count("json") > 0);
  }
  if (parsed->count("coupled") > 0) {
    require_every_packet(sweep, "--coupled");
    sweep.experiments.front().settings["composition"] = std::string("coupled");
  }
  const SingleRun run = run_with_progress(sweep, recording.ranks(), threads_of(*parsed));
  const Row row{run.results().experiments};
  const std::optional<OwnView> own = row.ran() ? own_view(*parsed, row, sweep.experiments.front()) : std::nullopt;
  if (job && parsed->count("json") == 0) {
    for (const std::string& line : explanation(*job)) std::cout << line << "\n";
    std::cout << sizes_text(sweep.experiments.front());
  }
  std::optional<CriticalPath> path;
  if (recording.wants_critical_path() && run.recorded()) path = critical_path_of(run.compiled(), run.recording());
  const auto drawn = row.ran() ? drawn_steps(sweep.experiments.front()) : std::nullopt;
  std::cout << (parsed->count("json") > 0 ? as_json(run, sweep, own, path, drawn).dump(1) + "\n"
                                          : as_text(row, sweep, own, drawn) + (path ? critical_path_text(*path) : "") +
                                                io::assumed_text(sweep.assumed));
  emit.write({fmt::format("{}: {}", sweep.name, step_title(row))});
  if (run.recorded()) {
    const std::string written = recording.write(run);
    if (parsed->count("json") == 0) std::cout << written;
  }
  if (recording.any() && !run.recorded())
    print_message("manyworlds: nothing is recorded, as the step did not run: {}\n", row.text("status"));
  const std::string status = row.text("status");
  const bool has_answer = status != "failed" && status != "out_of_memory";
  return !has_answer || (recording.any() && !run.recorded()) ? kExitFailed : kExitDone;
}

}  // namespace

Command run_command() {
  return {.name = "run", .summary = "one experiment, with its breakdown", .run = run_run};
}

}  // namespace manyworlds::farm::commands
