#include "farm/results/result_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/compile/tuner_choices.hpp"
#include "core/step/layout/memory_requirement.hpp"
#include "core/step/run/result.hpp"
#include "core/workload/build/measurement_coverage.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/parts/expert_load.hpp"
#include "core/workload/program/step_parts.hpp"
#include "experiments/analysis/guesses.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/catalog/calibration.hpp"
#include "farm/results/document_columns.hpp"
#include "farm/results/kernel_columns.hpp"
#include "farm/results/result_costs.hpp"
#include "farm/results/result_row.hpp"
#include "farm/results/subsimulation_table.hpp"
#include "farm/texts/tuner_text.hpp"

namespace manyworlds::farm {
namespace {

using core::step::StepResult;
using io::Column;

constexpr const char* kAnalytic = "analytic";

void add_status_columns(std::vector<Column>& to, const Rows& rows) {
  to.push_back(text_column(
      "status",
      "ran, out_of_memory, too_large (beyond its limit), failed, bounded (its lower bound is behind the best that are "
      "asked for), or pending: not computed yet",
      rows, [](const Row& row) { return row.status; }));
  to.push_back(text_column("reason", "why it did not run", rows, [](const Row& row) { return row.reason; }));
  to.push_back(text_column("fidelity",
                           "packet: every packet on every link; fluid: collectives share links max-min fairly; "
                           "analytic: a lower bound without contention",
                           rows, [](const Row& row) { return name_of(row.configuration.transport.fidelity); }));
  to.push_back(text_column(
      "composition", "composed: only contending collectives are simulated together; coupled: all in one event loop",
      rows, [](const Row& row) {
        const bool coupled = row.configuration.composition == core::step::Composition::coupled;
        return std::string(coupled ? "coupled" : "composed");
      }));
  to.push_back(text_column(
      "collectives_calibrated",
      "yes: collectives cost what was measured on this GPU; as GPU: what was on that one, scaled by link "
      "speed; no: another protocol",
      rows, [](const Row& row) { return experiments::describe_calibration(row.configuration.collectives); }));
}

void add_tuner(std::vector<Column>& to, const Rows& rows) {
  const auto has_table = [](const Row& row) { return !row.configuration.collectives.tuner_rules.empty(); };
  if (std::none_of(rows.begin(), rows.end(), has_table)) return;
  to.push_back(text_column(
      "collectives_tuner",
      "how many distinct collectives (by operation, bytes and communicator) each of collectives.msccl_files and each "
      "line of collectives.tuner_file chose the algorithm of, and how many the library; empty where it did not run",
      rows, [](const Row& row) { return row.tuner; }));
}

/// Returns the MFU. It exceeds 1 only if a table of measured kernel times implies that.
double mfu_of(const Row& row) {
  const auto& configuration = row.configuration;
  if (configuration.programs) return kNaN;  // the FLOPs of their models are not known
  const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(configuration.model));
  const double mfu = row.per_gpu_second(static_cast<double>(configuration.strategy.global_batch) * flops) /
                     (core::step::mean_peak_tflops(configuration) * 1e12);
  MANYWORLDS_CHECK(mfu <= 1 || configuration.gpu.measured, "an MFU of {:.1f} % of the {} peak", 100 * mfu,
                   core::compute::precision_names()[static_cast<std::size_t>(configuration.strategy.stack.precision)]);
  return mfu;
}

/// Adds the lower bounds of a sweep that asks for its best.
void add_bounds(std::vector<Column>& to, const Rows& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.bound_ps.has_value(); })) return;
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.bound_ps ? core::seconds(*row.bound_ps) : kNaN);
  to.push_back({"step_time_bound_s", "s",
                "lower bound of the step time: the analytic step, or sums over a micro-batch where these say enough; "
                "NaN where there is "
                "none",
                std::move(values)});
  to.push_back(
      text_column("bounded_by",
                  "what step_time_bound_s is: sums over a micro-batch, or the analytic step; empty where there "
                  "is none",
                  rows, [](const Row& row) { return row.bounded_by; }));
}

void add_throughput_columns(std::vector<Column>& to, const Rows& rows) {
  to.push_back(real_column("step_time_s", "s", "time of one training step", rows,
                           [](const Row& row) { return core::seconds(row.step->step_ps); }));
  to.push_back(
      count_column("step_time_ps", "ps", "the same, exactly", rows, [](const StepResult& s) { return s.step_ps; }));
  to.push_back(real_column("tokens_per_s_per_gpu", "tokens/s", "tokens trained per second on each GPU", rows,
                           [](const Row& row) { return row.per_gpu_second(row.tokens()); }));
  to.push_back(
      real_column("mfu", "",
                  "model FLOPs utilisation: the model's own FLOPs over mfu_peak_tflops, the dense matrix peak in the "
                  "layers' precision",
                  rows, mfu_of));
  to.push_back(real_column("mfu_peak_tflops", "TFLOP/s", "the peak that mfu is a share of, of one GPU", rows,
                           [](const Row& row) { return core::step::mean_peak_tflops(row.configuration); }));
  to.push_back(
      text_column("precision", "number format of the layers' matrix multiplications", rows, [](const Row& row) {
        if (row.configuration.programs) return std::string();  // not known
        return core::compute::precision_names()[static_cast<std::size_t>(row.configuration.strategy.stack.precision)];
      }));
}

/// Adds the uncertainty of step times. A lower bound has no interval.
void add_uncertainty(std::vector<Column>& to, const Rows& rows) {
  using experiments::Interval;
  const auto add = [&](const char* name, const char* unit, const char* description, auto value) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.has_interval() ? value(row) : kNaN);
    to.push_back({name, unit, description, std::move(values)});
  };
  const auto step_s = [](const Row& row) { return core::seconds(row.step->step_ps); };
  add("step_time_low_s", "s", "lower end of the 80 % interval of a measured step, given the prediction",
      [&](const Row& row) { return step_s(row) * row.interval.low; });
  add("step_time_high_s", "s", "its upper end", [&](const Row& row) { return step_s(row) * row.interval.high; });
  add("step_time_guesses_low", "", "factor of the lower end for guessed figures, each at the fast end of its range",
      [](const Row& row) { return row.interval.guesses.low; });
  add("step_time_guesses_high", "", "factor of the upper end, each at the slow end of its range",
      [](const Row& row) { return row.interval.guesses.high; });
  add("distinguishable_ratio", "",
      "layouts of one model, batch and machine whose step times have a smaller ratio are indistinguishable",
      [](const Row& row) { return row.interval.distinguishable_ratio; });
  add("network_ratio", "", "waits of one layout for two networks that have a smaller ratio are indistinguishable",
      [](const Row& row) { return row.interval.network_ratio; });
  const auto basis = [&](const char* name, const char* description, auto text) {
    to.push_back(text_column(name, std::string(description) + "; empty where there is no interval", rows,
                             [&](const Row& row) { return row.has_interval() ? text(row.interval) : std::string(); }));
  };
  basis("step_time_basis", "source of the residuals behind the columns before", std::mem_fn(&Interval::basis));
  basis("step_time_basis_gpu", "the chip whose published steps count most for it", std::mem_fn(&Interval::chip));
  basis("step_time_basis_kind", "the kind of layout it is: dense, experts (a mixture of them), or sharded (ZeRO 3)",
        std::mem_fn(&Interval::kind));
  basis("step_time_guesses", "guessed figures with their ranges, by which the interval is wider",
        [](const Interval& interval) { return interval.guesses.figures; });
}

void add_memory(std::vector<Column>& to, const Rows& rows) {
  to.push_back(integer_column(
      "memory_peak_bytes", "bytes",
      "peak memory of the rank that needs most, also where too much; 0: programs that do not say what they allocate",
      rows, [](const Row& row) { return row.planned.memory.total(); }));
  to.push_back(integer_column("gpu_memory_bytes", "bytes", "GPU memory that a process can use", rows,
                              [](const Row& row) { return row.planned.memory_bytes; }));
  for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
    to.push_back(integer_column(fmt::format("memory_{}_bytes", part.name), "bytes",
                                fmt::format("of the peak: {}", part.description), rows,
                                [&](const Row& row) { return row.planned.memory.*part.member; }));
}

void add_breakdown(std::vector<Column>& to, const Rows& rows) {
  for (const core::workload::StepPartInfo& part : core::workload::kStepParts)
    to.push_back(real_column(std::string(part.column), "s", fmt::format("{}, mean over ranks", part.description), rows,
                             [&](const Row& row) { return row.step->breakdown[part.part]; }));
}

/// Adds the effect of routers and capacity on the experts' tokens if some row's experts are not balanced.
void add_routing(std::vector<Column>& to, const Rows& rows) {
  using core::workload::RoutingSummary;
  std::vector<RoutingSummary> accounts;
  bool any = false;
  for (const Row& row : rows) {
    const auto& configuration = row.configuration;
    any |= !configuration.programs && (configuration.model.routing || configuration.strategy.capacity_factor > 0);
    accounts.push_back(core::workload::routing_summary(configuration.model, configuration.strategy));
  }
  if (!any) return;
  const auto add_column = [&](const char* name, const char* description, double RoutingSummary::*member) {
    std::vector<double> values;
    for (const RoutingSummary& account : accounts) values.push_back(account.*member);
    to.push_back({name, "", description, std::move(values)});
  };
  add_column("expert_drop_rate", "share of token-to-expert assignments that is dropped, mean over layers with experts",
             &RoutingSummary::drop_rate);
  add_column("expert_imbalance",
             "rows that the busiest expert rank of a layer computes over those of the mean rank, mean over such layers",
             &RoutingSummary::imbalance);
  std::vector<std::int64_t> copies;
  for (const RoutingSummary& account : accounts) copies.push_back(account.copies);
  to.push_back({"hot_expert_copies", "", "hot experts that every rank has a copy of, all layers together", copies});
}

void add_network(std::vector<Column>& to, const Rows& rows) {
  struct Part {
    const char *name, *description;
    std::int64_t StepResult::*member;
  };
  for (const Part& part : {Part{"link_hops", "packets times links they crossed", &StepResult::link_hops},
                           Part{"ecn_marks", "packets marked", &StepResult::ecn_marks},
                           Part{"pauses", "pause frames sent", &StepResult::pauses}}) {
    std::vector<std::int64_t> values;
    for (const Row& row : rows)
      values.push_back(row.step != nullptr && row.packets() ? row.step->*part.member : kNoCount);
    to.push_back({part.name, "", std::string(part.description) + "; -1 where it did not run packet by packet", values});
  }
  to.push_back(real_column("busiest_link_share", "",
                           "load of the busiest network link as a share of its capacity over the step; above 1 an "
                           "analytic step is too short",
                           rows, [](const Row& row) { return row.step->busiest_link_share; }));
  to.push_back(integer_column("dp", "", "data parallel size, which follows from the GPUs", rows,
                              [](const Row& row) { return row.configuration.strategy.dp; }));
  to.push_back(integer_column("gpus", "", "GPUs", rows, [](const Row& row) { return std::int64_t(row.gpus()); }));
}

/// Adds what failing cables lost, if the cables of any experiment fail.
void add_losses(std::vector<Column>& to, const Rows& rows) {
  const auto fails = [](const Row& row) { return !row.experiment.settings.text("faults.fails").empty(); };
  if (std::none_of(rows.begin(), rows.end(), fails)) return;
  const auto add_column = [&](const char* name, const std::string& description, std::int64_t StepResult::*member) {
    std::vector<std::int64_t> values;
    for (const Row& row : rows) values.push_back(row.step != nullptr && row.packets() ? row.step->*member : kNoCount);
    to.push_back({name, "", description + "; -1 where it did not run packet by packet", values});
  };
  add_column("packets_lost", "packets that cables lost which failed", &StepResult::packets_lost);
  add_column("packets_sent_again", "packets that were sent again, for these or other losses",
             &StepResult::packets_sent_again);
}

/// Adds the measured error of fluids, if any experiment was simulated as fluids.
void add_fluid_error(std::vector<Column>& to, const Rows& rows) {
  const auto is_fluid = [](const Row& row) {
    return row.configuration.transport.fidelity == core::network::Fidelity::fluid;
  };
  if (std::none_of(rows.begin(), rows.end(), is_fluid)) return;
  using core::step::FluidError;
  to.push_back(count_column("fluid_contended", "", "collectives that were slower because they shared links", rows,
                            [](const StepResult& step) { return step.fluid.contended; }));
  to.push_back(count_column("fluid_sampled", "", "collectives of these that were simulated packet by packet as well",
                            rows, [](const StepResult& step) { return step.fluid.sampled; }));
  for (const auto& [name, description, member] :
       {std::tuple("fluid_error_mean", "mean difference without sign", &FluidError::mean),
        std::tuple("fluid_error_bias", "mean difference, above 0 if fluids take longer", &FluidError::bias),
        std::tuple("fluid_error_max", "largest difference without sign", &FluidError::max)})
    to.push_back(real_column(name, "",
                             std::string(description) + " of the sampled collectives' durations from those of packets, "
                                                        "as a share of these",
                             rows, [is_fluid, member = member](const Row& row) {
                               const bool is_known = is_fluid(row) && row.step->fluid.sampled > 0;
                               return is_known ? row.step->fluid.*member : kNaN;
                             }));
  to.push_back(
      real_column("fluid_step_error", "",
                  "by which share the step is longer if every collective that is slower for sharing links takes "
                  "longer by fluid_error_mean",
                  rows, [is_fluid](const Row& row) {
                    return is_fluid(row) && row.step->fluid.sampled > 0 ? row.step->fluid.step : kNaN;
                  }));
}

RowCosts costs_of(const experiments::ExperimentConfig& config, const StepResult* step,
                  experiments::GraphCache& graphs) {
  StepResult one_second_step;
  one_second_step.step_ps = core::kSecond;
  one_second_step.breakdown[core::workload::StepPart::forward] = 1;
  // Building the graph takes time, and only a known power of switch ports needs it.
  const bool counts_ports = config.machine_power.switch_port_power_w > 0 && config.cluster.nodes > 1;
  const auto graph = counts_ports ? graphs.get(config) : nullptr;
  return {experiments::costs_of(config, step != nullptr ? *step : one_second_step, graph.get()), step != nullptr};
}

/// A row of each experiment as if its step took no longer than its bound.
class RowsAtBounds {
 public:
  RowsAtBounds(const Rows& rows, const Plan& plan, const OutcomeOf& outcome, experiments::GraphCache& graphs)
      : steps_(rows.size()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row row = rows[i];
      row.step = nullptr;
      if (row.bound_ps) {
        if (row.bounded_by == kAnalytic)
          steps_[i] = core::step::decode_step(outcome(plan.task_of_bound(plan.steps[row.planned.step].bound)).bytes);
        steps_[i].step_ps = *row.bound_ps;
        row.step = &steps_[i];
      }
      row.costs = costs_of(row.experiment.config(), row.step, graphs);
      rows_.push_back(std::move(row));
    }
  }
  const Rows& rows() const { return rows_; }

 private:
  std::vector<StepResult> steps_;
  Rows rows_;
};

std::vector<Column> cost_columns_of(const Rows& rows, const std::string& objective) {
  std::vector<const RowCosts*> all;
  for (const Row& row : rows) all.push_back(&row.costs);
  return cost_columns(all, objective);
}

/// Adds the objective at the bounds, unless it is the step time, which step_time_bound_s has.
void add_objective_bound(io::Table& to, const Rows& at_bounds, const std::string& objective) {
  const auto place = std::find_if(to.columns.begin(), to.columns.end(),
                                  [](const Column& column) { return column.name == "bounded_by"; });
  if (place == to.columns.end() || objective == "step_time_s") return;
  std::vector<Column> columns = cost_columns_of(at_bounds, objective);
  add_throughput_columns(columns, at_bounds);
  for (Column& column : columns)
    if (column.name == objective) {
      column.name += io::kBoundSuffix;
      column.description = fmt::format(
          "{} if the step took step_time_bound_s: it cannot be better; NaN where there is no "
          "bound",
          objective);
      to.columns.insert(place, std::move(column));
      return;
    }
}

io::Table experiments_table(const experiments::Sweep& sweep, const Rows& rows) {
  io::Table table;
  table.columns.push_back(integer_column("id", "", "number of the experiment, in spec order", rows,
                                         [](const Row& row) { return static_cast<std::int64_t>(row.experiment.id); }));
  for (std::size_t a = 0; a < sweep.columns.size(); ++a)
    table.columns.push_back(axis_column(sweep.columns[a], rows.size(), [&](std::size_t i) -> const core::OptionValue& {
      return rows[i].experiment.axes.at(a);
    }));
  std::vector<Column> computed;
  const auto costs = [&](std::vector<Column>& to, const Rows& subset) {
    for (Column& column : cost_columns_of(subset, sweep.objective)) to.push_back(std::move(column));
  };
  using Adder = std::function<void(std::vector<Column>&, const Rows&)>;
  for (const Adder& add : {Adder(add_status_columns), Adder(add_tuner), Adder(add_throughput_columns),
                           Adder(add_bounds), Adder(costs), Adder(add_uncertainty), Adder(add_memory),
                           Adder(add_breakdown), Adder(add_time_basis), Adder(add_measured_kernels), Adder(add_routing),
                           Adder(add_documents), Adder(add_network), Adder(add_losses), Adder(add_fluid_error)})
    add(computed, rows);
  for (Column& column : computed)  // `composition` may be an axis and then is a column already
    if (table.find(column.name) == nullptr) table.columns.push_back(std::move(column));
  return table;
}

io::Table excluded_table(const experiments::Sweep& sweep) {
  io::Table table;
  for (std::size_t a = 0; a < sweep.columns.size(); ++a)
    table.columns.push_back(
        axis_column(sweep.columns[a], sweep.excluded.size(),
                    [&](std::size_t i) -> const core::OptionValue& { return sweep.excluded[i].axes.at(a); }));
  std::vector<std::string> rules, reasons;
  for (const auto& one : sweep.excluded) rules.push_back(one.rule), reasons.push_back(one.reason);
  table.columns.push_back({"rule", "", "the rule that left it out; where: a constraint of the sweep", rules});
  table.columns.push_back({"reason", "", "what would be right, and the values that broke it", reasons});
  return table;
}

/// The results of steps by step number; empty for steps without a result.
using StepResults = std::map<std::uint32_t, std::optional<StepResult>>;

void add_step(StepResults& results, const Plan& plan, const OutcomeOf& outcome, std::uint32_t step) {
  if (step == kNoStep) return;
  const auto [place, is_new] = results.try_emplace(step);
  if (!is_new) return;
  if (const Outcome& settled = outcome(plan.task_of_step(step)); settled.ok())
    place->second = core::step::decode_step(settled.bytes);
}

/// Returns what an experiment is left out for, beside its bound.
std::string behind_text(const experiments::Sweep& sweep) {
  if (sweep.front.empty()) return "which is behind the best that are asked for";
  return fmt::format("and {} that {} no worse in {} {} a better {}{}", sweep.best, sweep.best == 1 ? "is" : "are",
                     sweep.front, sweep.best == 1 ? "has" : "have", sweep.objective,
                     sweep.gap > 0 ? ", but for the gap" : "");
}

Row row_of(const experiments::Sweep& sweep, std::uint32_t id, const Plan& plan, const StepResults& steps,
           const OutcomeOf& outcome, const experiments::Uncertainty& uncertainty, experiments::GraphCache& graphs) {
  const experiments::Experiment& experiment = sweep.experiments.at(id);
  const experiments::ExperimentConfig config = experiment.config();
  Row row{experiment, plan.experiments.at(experiment.id), config.configuration, "ran", "", nullptr, {}, {}, {}, {}, {}};
  row.configuration.gpu.measured = measured_times(experiment);
  if (!row.planned.fits()) {
    row.status = "out_of_memory";
    row.reason = fmt::format("needs {:.2f} of {:.2f} GiB", core::gib(static_cast<double>(row.planned.memory.total())),
                             core::gib(static_cast<double>(row.planned.memory_bytes)));
  } else if (const auto& step = steps.at(row.planned.step); !step) {
    const Outcome& none = outcome(plan.task_of_step(row.planned.step));
    row.status = none.status == Status::pending ? "pending" : none.status == Status::left_out ? "bounded" : "failed";
    row.reason = none.bytes;
  } else if (step->too_large) {
    const auto& limit = row.configuration.limit;
    row.status = "too_large";
    row.reason = fmt::format("has more to simulate than limit: link_hops {}, events {}", limit.link_hops, limit.events);
  } else {
    row.step = &*step;
    if (!row.configuration.collectives.tuner_rules.empty())
      row.tuner = tuner_text(core::step::tuner_choices(configure(experiment, graphs)));
    if (row.has_interval()) row.interval = uncertainty.with_guesses(experiment.settings, config);
    row.guessed = experiments::guessed_kinds(experiment.settings, uncertainty.catalog());
    const auto& configuration = row.configuration;
    if (configuration.gpu.measured && !configuration.programs)
      row.kernels =
          core::workload::measurement_coverage(configuration.model, configuration.strategy, configuration.gpu);
  }
  if (row.planned.step != kNoStep && plan.steps[row.planned.step].floor_ps > 0) {
    const PlannedStep& step = plan.steps[row.planned.step];
    row.bound_ps = step.floor_ps;
    row.bounded_by = "sums";
    if (step.bound != kNoBound)
      if (const Outcome& known = outcome(plan.task_of_bound(step.bound)); known.ok()) {
        row.bound_ps = std::max(step.floor_ps, core::step::decode_step(known.bytes).step_ps);
        row.bounded_by = kAnalytic;
      }
    if (row.status == "bounded")
      row.reason = fmt::format("takes at least {:.6g} s, {}", core::seconds(*row.bound_ps), behind_text(sweep));
  }
  row.costs = costs_of(config, row.step, graphs);
  return row;
}

void add_experiments(io::Results& to, const experiments::Sweep& sweep, const Rows& rows) {
  to.provenance.push_back({io::kObjective, sweep.objective});
  for (const auto& column : sweep.columns) to.axis_names.push_back(column.name);
  to.experiments = experiments_table(sweep, rows);
}

}  // namespace

io::Results make_rows(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome,
                      const experiments::Uncertainty& uncertainty, const std::vector<std::uint32_t>& ids) {
  StepResults steps;
  for (const std::uint32_t id : ids) add_step(steps, plan, outcome, plan.experiments.at(id).step);
  Rows rows;
  experiments::GraphCache graphs;
  for (const std::uint32_t id : ids) rows.push_back(row_of(sweep, id, plan, steps, outcome, uncertainty, graphs));
  io::Results results;
  add_experiments(results, sweep, rows);
  return results;
}

io::Results make_results(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome) {
  StepResults steps;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) add_step(steps, plan, outcome, step);
  const auto uncertainty = experiments::Uncertainty::compiled();
  Rows rows;
  experiments::GraphCache graphs;
  for (const auto& experiment : sweep.experiments)
    if (!plan.experiments.at(experiment.id).in_other_shard)
      rows.push_back(row_of(sweep, experiment.id, plan, steps, outcome, uncertainty, graphs));
  io::Results results;
  results.spec = sweep.text;
  if (!results.spec.ends_with('\n')) results.spec += '\n';
  for (const std::string& set : sweep.overrides) results.spec += fmt::format("# --set {}\n", set);
  if (!sweep.front.empty())
    results.spec += fmt::format("# the Pareto front of {} against {} is asked for\n", sweep.objective, sweep.front);
  if (sweep.best > 0)
    results.spec += fmt::format("# the best {} are asked for{}\n", sweep.best,
                                sweep.gap > 0 ? fmt::format(", with a gap of {} %", 100 * sweep.gap) : "");
  if (sweep.space && sweep.space->bound)
    results.spec += fmt::format("# of {} points, no other has a better {} than {}\n", sweep.space->points,
                                sweep.objective, *sweep.space->bound);
  if (!sweep.assumed.empty()) results.spec += fmt::format("{}{}\n", io::kAssumedPrefix, sweep.assumed);
  add_experiments(results, sweep, rows);
  if (sweep.best > 0) {
    const RowsAtBounds at_bounds(rows, plan, outcome, graphs);
    add_objective_bound(results.experiments, at_bounds.rows(), sweep.objective);
    if (!sweep.front.empty()) add_objective_bound(results.experiments, at_bounds.rows(), sweep.front);
  }
  results.excluded = excluded_table(sweep);
  SubsimulationTable kernels, collectives, episodes;
  for (const auto& [number, step] : steps) {
    if (!step) continue;
    kernels.add(step->kernels, plan.steps[number].experiments);
    collectives.add(step->collectives, plan.steps[number].experiments);
    episodes.add(step->episodes, plan.steps[number].experiments);
  }
  results.kernels = kernels.table();
  results.collectives = collectives.table();
  results.episodes = episodes.table();
  return results;
}

}  // namespace manyworlds::farm
