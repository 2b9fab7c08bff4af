#include "farm/results/answer_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/run/result.hpp"
#include "core/step/world/demand.hpp"
#include "core/workload/build/kernel_account.hpp"
#include "core/workload/layer/expert_load.hpp"
#include "core/workload/layer/operators.hpp"
#include "core/workload/layer/prices.hpp"
#include "experiments/analysis/uncertainty.hpp"
#include "experiments/settings/calibration.hpp"
#include "farm/results/answer_costs.hpp"

namespace manyworlds::farm {
namespace {

using core::sharing::Key;
using core::step::StepResult;
using core::step::Used;
using io::Column;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kNoCount = -1;

/// One experiment on its way to being a row.
struct Row {
  const experiments::Experiment& experiment;
  const PlannedExperiment& planned;
  core::step::Configuration configuration;  // without its graph
  std::string status, reason;
  const StepResult* step = nullptr;                      // of one that ran
  experiments::Interval interval;                        // of a step that ran packet by packet
  std::optional<core::workload::KernelAccount> kernels;  // of one that ran with a table of measured times
  RowCosts costs;

  bool analytic() const { return configuration.transport.fidelity == core::network::Fidelity::analytic; }
  bool has_interval() const { return step != nullptr && !analytic(); }
  double gpus() const {
    const auto& s = configuration.strategy;
    return static_cast<double>(s.tp * s.cp * s.pp * s.dp);
  }
  double tokens() const {
    return static_cast<double>(configuration.strategy.global_batch) * static_cast<double>(configuration.model.sequence);
  }
  double per_gpu_second(double total) const { return total / (core::seconds(step->step_ps) * gpus()); }
};

using Rows = std::vector<Row>;

Column texts(std::string name, std::string description, const Rows& rows,
             const std::function<std::string(const Row&)>& value) {
  std::vector<std::string> values;
  for (const Row& row : rows) values.push_back(value(row));
  return {std::move(name), "", std::move(description), std::move(values)};
}

/// A figure of those that ran; NaN elsewhere.
Column reals(std::string name, std::string unit, std::string description, const Rows& rows,
             const std::function<double(const Row&)>& value) {
  std::vector<double> values;
  for (const Row& row : rows) values.push_back(row.step != nullptr ? value(row) : kNone);
  return {std::move(name), std::move(unit), std::move(description) + "; NaN where it did not run", std::move(values)};
}

/// A count of those that ran; -1 elsewhere.
Column counts(std::string name, std::string unit, std::string description, const Rows& rows,
              const std::function<std::int64_t(const StepResult&)>& value) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(row.step != nullptr ? value(*row.step) : kNoCount);
  return {std::move(name), std::move(unit), std::move(description) + "; -1 where it did not run", std::move(values)};
}

/// A figure that every experiment has, whether it ran or not.
Column integers(std::string name, std::string unit, std::string description, const Rows& rows,
                const std::function<std::int64_t(const Row&)>& value) {
  std::vector<std::int64_t> values;
  for (const Row& row : rows) values.push_back(value(row));
  return {std::move(name), std::move(unit), std::move(description), std::move(values)};
}

/// The column of one axis; `value(i)` is that of row i.
Column axis_column(const experiments::AxisColumn& axis, std::size_t rows,
                   const std::function<const core::OptionValue&(std::size_t)>& value) {
  Column column{axis.name, axis.unit, axis.description, {}};
  const auto fill = [&](auto values, auto convert) {
    for (std::size_t i = 0; i < rows; ++i) values.push_back(convert(value(i)));
    column.values = std::move(values);
  };
  using Kind = core::OptionInfo::Kind;
  if (axis.kind == Kind::integer)
    fill(std::vector<std::int64_t>(), [](const auto& held) { return std::get<std::int64_t>(held); });
  else if (axis.kind == Kind::real)
    fill(std::vector<double>(), [](const auto& held) { return std::get<double>(held); });
  else if (axis.kind == Kind::boolean)
    fill(std::vector<std::string>(), [](const auto& held) { return std::get<bool>(held) ? "true" : "false"; });
  else
    fill(std::vector<std::string>(), [](const auto& held) { return std::get<std::string>(held); });
  return column;
}

void add_what_became(std::vector<Column>& to, const Rows& rows) {
  to.push_back(texts("status", "ran, out_of_memory, too_large (beyond its limit), failed, or pending: not computed yet",
                     rows, [](const Row& row) { return row.status; }));
  to.push_back(texts("reason", "why it did not run", rows, [](const Row& row) { return row.reason; }));
  to.push_back(texts("fidelity", "packet: every packet on every link; analytic: a lower bound without contention", rows,
                     [](const Row& row) { return std::string(row.analytic() ? "analytic" : "packet"); }));
  to.push_back(texts("composition", "composed: only what meets is simulated together; coupled: all in one event loop",
                     rows, [](const Row& row) {
                       const bool coupled = row.configuration.composition == core::step::Composition::coupled;
                       return std::string(coupled ? "coupled" : "composed");
                     }));
  to.push_back(
      texts("collectives_calibrated",
            "yes: collectives cost what was measured on this GPU; as GPU: what was on that one, scaled by link "
            "speed; no: another protocol",
            rows, [](const Row& row) { return experiments::describe_calibration(row.configuration.collectives); }));
}

/// Above 1 only where somebody's table of kernel times says so.
double mfu_of(const Row& row) {
  const auto& of = row.configuration;
  const auto flops = static_cast<double>(core::workload::model_flops_per_sequence(of.model));
  const double mfu = row.per_gpu_second(static_cast<double>(of.strategy.global_batch) * flops) /
                     (core::step::mean_peak_tflops(of) * 1e12);
  MANYWORLDS_CHECK(mfu <= 1 || of.gpu.measured, "an MFU of {:.1f} % of the {} peak", 100 * mfu,
                   core::compute::precision_names()[static_cast<std::size_t>(of.strategy.stack.precision)]);
  return mfu;
}

void add_figures(std::vector<Column>& to, const Rows& rows) {
  to.push_back(reals("step_time_s", "s", "time of one training step", rows,
                     [](const Row& row) { return core::seconds(row.step->step_ps); }));
  to.push_back(counts("step_time_ps", "ps", "the same, exactly", rows, [](const StepResult& s) { return s.step_ps; }));
  to.push_back(reals("tokens_per_s_per_gpu", "tokens/s", "tokens trained per second on each GPU", rows,
                     [](const Row& row) { return row.per_gpu_second(row.tokens()); }));
  to.push_back(
      reals("mfu", "",
            "model FLOPs utilisation: the model's own FLOPs over mfu_peak_tflops, the dense matrix peak in the "
            "layers' precision",
            rows, mfu_of));
  to.push_back(reals("mfu_peak_tflops", "TFLOP/s", "the peak that mfu is a share of, of one GPU", rows,
                     [](const Row& row) { return core::step::mean_peak_tflops(row.configuration); }));
  to.push_back(texts("precision", "number format of the layers' matrix multiplications", rows, [](const Row& row) {
    return core::compute::precision_names()[static_cast<std::size_t>(row.configuration.strategy.stack.precision)];
  }));
}

/// How sure step times are. A lower bound has no interval.
void add_uncertainty(std::vector<Column>& to, const Rows& rows) {
  struct Part {
    const char *name, *unit, *description;
    std::function<double(const Row&)> value;
  };
  const auto step_s = [](const Row& row) { return core::seconds(row.step->step_ps); };
  for (const Part& part :
       {Part{"step_time_low_s", "s", "lower end of the 80 % interval of a measured step, given the prediction",
             [&](const Row& row) { return step_s(row) * row.interval.low; }},
        Part{"step_time_high_s", "s", "its upper end", [&](const Row& row) { return step_s(row) * row.interval.high; }},
        Part{"told_apart_ratio", "",
             "layouts of one model, batch and machine whose step times are in a smaller ratio are not told apart",
             [](const Row& row) { return row.interval.told_apart; }}}) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.has_interval() ? part.value(row) : kNone);
    to.push_back({part.name, part.unit, part.description, std::move(values)});
  }
  const auto basis = [&](const char* name, const char* description, std::string experiments::Interval::*member) {
    to.push_back(texts(name, std::string(description) + "; empty where there is no interval", rows,
                       [&](const Row& row) { return row.has_interval() ? row.interval.*member : std::string(); }));
  };
  basis("step_time_basis", "whose residuals the three before come from", &experiments::Interval::basis);
  basis("step_time_basis_gpu", "the chip whose published steps count most for it", &experiments::Interval::chip);
  basis("step_time_basis_kind", "the kind of layout it is: dense, experts (a mixture of them), or sharded (ZeRO 3)",
        &experiments::Interval::kind);
}

void add_memory(std::vector<Column>& to, const Rows& rows) {
  to.push_back(integers("memory_peak_bytes", "bytes", "peak memory of the rank that needs most, also where too much",
                        rows, [](const Row& row) { return row.planned.memory.total(); }));
  to.push_back(integers("gpu_memory_bytes", "bytes", "what a process can have of the GPU's memory", rows,
                        [](const Row& row) { return row.planned.memory_bytes; }));
  for (const core::memory::FootprintPart& part : core::memory::footprint_parts())
    to.push_back(integers(fmt::format("memory_{}_bytes", part.name), "bytes",
                          fmt::format("of the peak: {}", part.description), rows,
                          [&](const Row& row) { return row.planned.memory.*part.member; }));
}

void add_breakdown(std::vector<Column>& to, const Rows& rows) {
  using core::step::Breakdown;
  struct Part {
    const char *name, *description;
    double Breakdown::*member;
  };
  for (const Part& part : {
           Part{"forward_s", "forward kernels, mean over ranks", &Breakdown::forward_s},
           Part{"backward_s", "backward kernels, mean over ranks", &Breakdown::backward_s},
           Part{"recompute_s", "forward kernels run again for the backward pass, mean over ranks",
                &Breakdown::recompute_s},
           Part{"optimizer_s", "optimizer kernels, mean over ranks", &Breakdown::optimizer_s},
           Part{"host_s", "waiting for the host to launch the next kernel, mean over ranks", &Breakdown::host_s},
           Part{"slowed_s", "what kernels took longer beside collectives, mean over ranks", &Breakdown::slowed_s},
           Part{"exposed_tp_s", "compute waited for tensor-parallel communication, mean over ranks",
                &Breakdown::exposed_tp_s},
           Part{"exposed_dp_s", "compute waited for data-parallel communication, mean over ranks",
                &Breakdown::exposed_dp_s},
           Part{"exposed_pp_s", "compute waited for pipeline communication, mean over ranks", &Breakdown::exposed_pp_s},
           Part{"exposed_cp_s", "compute waited for context-parallel communication, mean over ranks",
                &Breakdown::exposed_cp_s},
           Part{"exposed_ep_s", "compute waited for expert-parallel communication, mean over ranks",
                &Breakdown::exposed_ep_s},
           Part{"exposed_offload_s",
                "compute waited for activations to go to the host or to come back, mean over ranks",
                &Breakdown::exposed_offload_s},
           Part{"bubble_s", "compute waited for a pipeline neighbour or the end of the step, mean over ranks",
                &Breakdown::bubble_s},
           Part{"stall_s", "compute waited for the slowest member of a collective, mean over ranks",
                &Breakdown::stall_s},
       })
    to.push_back(reals(part.name, "s", part.description, rows,
                       [&](const Row& row) { return row.step->breakdown.*part.member; }));
}

/// Who says how long kernels take, where an experiment names a table of measured times.
void add_measured_kernels(std::vector<Column>& to, const Rows& rows) {
  using core::compute::Level;
  using core::workload::Disagreement;
  using core::workload::KernelAccount;
  if (std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.configuration.gpu.measured; })) return;
  const auto figures = [&](std::string name, std::string description,
                           const std::function<double(const KernelAccount&)>& value) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(row.kernels ? value(*row.kernels) : kNone);
    to.push_back({std::move(name), "", std::move(description) + "; NaN without a table", std::move(values)});
  };
  struct Part {
    const char *name, *description;
    Level level;
  };
  for (const Part& part :
       {Part{"time_by_layers", "share of kernel time that measured layers say", Level::layer},
        Part{"time_by_submodules", "share of kernel time that measured submodules say", Level::submodule},
        Part{"time_by_kernels", "share of kernel time that measured kernels say", Level::kernel},
        Part{"time_by_model", "share of kernel time that the model says, for want of a measurement", Level::model}})
    figures(part.name, part.description, [&](const KernelAccount& of) { return of.share(part.level); });
  std::vector<std::int64_t> used;
  for (const Row& row : rows) used.push_back(row.kernels ? core::workload::rows_used(row.kernels->prices) : kNoCount);
  to.push_back({"measured_rows", "", "rows of the table of measured times that fit; -1 without a table", used});
  const auto disagreement = [&](const std::string& name, const std::string& description,
                                Disagreement (*of)(const core::workload::Prices&)) {
    figures(name, description, [&](const KernelAccount& account) { return of(account.prices).share; });
    to.push_back(texts(name + "_at", "where that is; empty: nowhere do two say something", rows,
                       [&](const Row& row) { return row.kernels ? of(row.kernels->prices).at : std::string(); }));
  };
  disagreement("levels_disagree",
               "of a layer or submodule that is measured as a whole and in parts, the sum of the parts over the whole, "
               "less 1, where that is farthest from 0",
               core::workload::levels_disagree);
  disagreement("model_disagrees", "of what is measured, the model's time over it, less 1, where farthest from 0",
               core::workload::model_disagrees);
}

/// What routers and capacity make of the experts' tokens, where some row's experts are not balanced.
void add_routing(std::vector<Column>& to, const Rows& rows) {
  using core::workload::RoutingAccount;
  std::vector<RoutingAccount> accounts;
  bool any = false;
  for (const Row& row : rows) {
    const auto& of = row.configuration;
    any |= of.model.routing || of.strategy.capacity_factor > 0;
    accounts.push_back(core::workload::routing_account(of.model, of.strategy));
  }
  if (!any) return;
  const auto figures = [&](const char* name, const char* description, double RoutingAccount::*member) {
    std::vector<double> values;
    for (const RoutingAccount& account : accounts) values.push_back(account.*member);
    to.push_back({name, "", description, std::move(values)});
  };
  figures("expert_drop_rate", "share of tokens' ways to experts that is dropped, mean over layers with experts",
          &RoutingAccount::drop_rate);
  figures("expert_imbalance",
          "rows that the busiest expert rank of a layer computes over those of the mean rank, mean over such layers",
          &RoutingAccount::imbalance);
  std::vector<std::int64_t> copies;
  for (const RoutingAccount& account : accounts) copies.push_back(account.copies);
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
      values.push_back(row.step != nullptr && !row.analytic() ? row.step->*part.member : kNoCount);
    to.push_back({part.name, "", std::string(part.description) + "; -1 where it did not run packet by packet", values});
  }
  to.push_back(reals("busiest_link_share", "",
                     "what the busiest network link has to send over the step; above 1 an analytic step is too short",
                     rows, [](const Row& row) { return row.step->busiest_link_share; }));
  to.push_back(integers("dp", "", "data parallel size, which follows from the GPUs", rows,
                        [](const Row& row) { return row.configuration.strategy.dp; }));
  to.push_back(integers("gpus", "", "GPUs", rows, [](const Row& row) { return std::int64_t(row.gpus()); }));
}

io::Table experiments_table(const experiments::Sweep& sweep, const Rows& rows) {
  io::Table table;
  table.columns.push_back(integers("id", "", "number of the experiment, in spec order", rows,
                                   [](const Row& row) { return static_cast<std::int64_t>(row.experiment.id); }));
  for (std::size_t a = 0; a < sweep.columns.size(); ++a)
    table.columns.push_back(axis_column(sweep.columns[a], rows.size(), [&](std::size_t i) -> const core::OptionValue& {
      return rows[i].experiment.axes.at(a);
    }));
  std::vector<Column> computed;
  const auto costs = [&](std::vector<Column>& to, const Rows& of) {
    std::vector<const RowCosts*> all;
    for (const Row& row : of) all.push_back(&row.costs);
    for (Column& column : cost_columns(all, sweep.objective)) to.push_back(std::move(column));
  };
  using Adder = std::function<void(std::vector<Column>&, const Rows&)>;
  for (const Adder& add :
       {Adder(add_what_became), Adder(add_figures), Adder(costs), Adder(add_uncertainty), Adder(add_memory),
        Adder(add_breakdown), Adder(add_measured_kernels), Adder(add_routing), Adder(add_network)})
    add(computed, rows);
  for (Column& column : computed)  // `composition` may be an axis, and is a column already
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

/// Sub-simulations of one kind that the steps used, by key.
class Uses {
 public:
  void add(const std::vector<Used>& used, std::uint32_t experiments) {
    for (const Used& one : used) {
      const auto [entry, is_new] = by_key_.try_emplace(one.key, Entry{one.parameters, one.result_ps, 0});
      MANYWORLDS_CHECK(entry->second.result_ps == one.result_ps, "{} gives {} ps and {} ps", one.key.hex(),
                       entry->second.result_ps, one.result_ps);
      entry->second.used_by += experiments;
      times_ += one.times * experiments;
    }
  }
  io::Table table() const {
    std::vector<std::string> keys, parameters;
    std::vector<std::int64_t> results, used_by;
    for (const auto& [key, entry] : by_key_) {
      keys.push_back(key.hex());
      parameters.push_back(entry.parameters);
      results.push_back(entry.result_ps);
      used_by.push_back(entry.used_by);
    }
    return {{{"key", "", "digest of everything it depends on", std::move(keys)},
             {"parameters", "", "what it is", std::move(parameters)},
             {"result_ps", "ps", "how long it lasts", std::move(results)},
             {"used_by", "", "experiments that use it", std::move(used_by)}}};
  }
  std::int64_t times() const { return times_; }

 private:
  struct Entry {
    std::string parameters;
    std::int64_t result_ps, used_by;
  };
  std::map<Key, Entry> by_key_;
  std::int64_t times_ = 0;
};

/// What became of steps: their results, or nothing for those that have none.
using StepResults = std::map<std::uint32_t, std::optional<StepResult>>;

void add_step(StepResults& results, const Plan& plan, const OutcomeOf& outcome, std::uint32_t step) {
  if (step == kNoStep) return;
  const auto [place, is_new] = results.try_emplace(step);
  if (!is_new) return;
  if (const Outcome& of = outcome(plan.task_of_step(step)); of.ok()) place->second = core::step::decode_step(of.bytes);
}

RowCosts costs_of(const experiments::World& world, const StepResult* step, experiments::GraphCache& graphs) {
  StepResult second;
  second.step_ps = core::kSecond;
  second.breakdown.forward_s = 1;
  // A graph takes time, and nobody asks for ports that draw an unknown power.
  const bool counts_ports = world.machine_power.switch_port_power_w > 0 && world.cluster.nodes > 1;
  const auto graph = counts_ports ? graphs.get(world) : nullptr;
  return {experiments::costs_of(world, step != nullptr ? *step : second, graph.get()), step != nullptr};
}

Row row_of(const experiments::Experiment& experiment, const Plan& plan, const StepResults& steps,
           const OutcomeOf& outcome, const experiments::Uncertainty& uncertainty, experiments::GraphCache& graphs) {
  const experiments::World world = experiments::world_of(experiment.settings, experiment.inputs);
  Row row{experiment, plan.experiments.at(experiment.id), world.configuration, "ran", "", nullptr, {}, {}, {}};
  row.configuration.gpu.measured = measured_times(experiment);
  if (!row.planned.fits()) {
    row.status = "out_of_memory";
    row.reason = fmt::format("needs {:.2f} of {:.2f} GiB", core::gib(static_cast<double>(row.planned.memory.total())),
                             core::gib(static_cast<double>(row.planned.memory_bytes)));
  } else if (const auto& step = steps.at(row.planned.step); !step) {
    const Outcome& none = outcome(plan.task_of_step(row.planned.step));
    row.status = none.status == Status::pending ? "pending" : "failed";
    row.reason = none.bytes;
  } else if (step->too_large) {
    const auto& limit = row.configuration.limit;
    row.status = "too_large";
    row.reason = fmt::format("beyond limit: link_hops {}, events {}", limit.link_hops, limit.events);
  } else {
    row.step = &*step;
    row.interval = uncertainty.of(experiment.settings, world);
    const auto& of = row.configuration;
    if (of.gpu.measured) row.kernels = core::workload::kernel_account(of.model, of.strategy, of.gpu);
  }
  row.costs = costs_of(world, row.step, graphs);
  return row;
}

void add_experiments(io::Results& to, const experiments::Sweep& sweep, const Rows& rows) {
  for (const auto& column : sweep.columns) to.axis_names.push_back(column.name);
  to.experiments = experiments_table(sweep, rows);
}

}  // namespace

io::Results rows_of(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome,
                    const experiments::Uncertainty& uncertainty, const std::vector<std::uint32_t>& ids) {
  StepResults steps;
  for (const std::uint32_t id : ids) add_step(steps, plan, outcome, plan.experiments.at(id).step);
  Rows rows;
  experiments::GraphCache graphs;
  for (const std::uint32_t id : ids)
    rows.push_back(row_of(sweep.experiments.at(id), plan, steps, outcome, uncertainty, graphs));
  io::Results results;
  add_experiments(results, sweep, rows);
  return results;
}

io::Results answer_of(const experiments::Sweep& sweep, const Plan& plan, const OutcomeOf& outcome) {
  StepResults steps;
  for (std::uint32_t step = 0; step < plan.steps.size(); ++step) add_step(steps, plan, outcome, step);
  const auto uncertainty = experiments::Uncertainty::compiled();
  Rows rows;
  experiments::GraphCache graphs;
  for (const auto& experiment : sweep.experiments)
    if (!plan.experiments.at(experiment.id).elsewhere)
      rows.push_back(row_of(experiment, plan, steps, outcome, uncertainty, graphs));
  io::Results results;
  results.spec = sweep.text;
  if (!results.spec.ends_with('\n')) results.spec += '\n';
  for (const std::string& set : sweep.overrides) results.spec += fmt::format("# --set {}\n", set);
  if (!sweep.assumed.empty()) results.spec += fmt::format("{}{}\n", io::kAssumed, sweep.assumed);
  add_experiments(results, sweep, rows);
  results.excluded = excluded_table(sweep);
  Uses kernels, collectives, episodes;
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
