#include "farm/explain/drawn_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/step/layout/as_given.hpp"
#include "core/step/layout/drawn_documents.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/config/graphs.hpp"

namespace manyworlds::farm {
namespace {

constexpr std::uint64_t kDraws = 16;

core::Time step_of(core::step::SimulationContext& context, core::step::Configuration configuration,
                   core::workload::GivenPrograms programs) {
  configuration.programs = std::make_shared<const core::workload::GivenPrograms>(std::move(programs));
  configuration.model = {};
  configuration.strategy = {};
  core::step::IsolatedResults results;
  return context.run(context.compile(configuration), results).step_ps;
}

/// Whether a program can hold the step (core::step::as_given()), of whose documents alone a draw changes the lengths.
bool is_expressible(const core::step::Configuration& configuration) {
  const auto& strategy = configuration.strategy;
  return configuration.model.documents && !configuration.model.teacher && !configuration.programs &&
         !configuration.is_mixed() &&
         !(configuration.model.has_experts() && strategy.ep > 1 &&
           strategy.stack.dispatcher != core::workload::Dispatcher::all_to_all);
}

}  // namespace

double DrawnSteps::mean() const {
  return std::accumulate(longer.begin(), longer.end(), 0.0) / static_cast<double>(longer.size());
}

double DrawnSteps::quantile(double share) const {
  return longer[static_cast<std::size_t>(share * static_cast<double>(longer.size() - 1))];
}

std::optional<DrawnSteps> drawn_steps(const experiments::Experiment& experiment) {
  experiments::GraphCache graphs;
  core::step::Configuration configuration = configure(experiment, graphs);
  if (!is_expressible(configuration)) return std::nullopt;
  configuration.transport.fidelity = core::network::Fidelity::analytic;
  core::step::SimulationContext context;
  const core::step::CompiledStep compiled = context.compile(configuration);
  const core::workload::GivenPrograms balanced = core::step::as_given(configuration, compiled.layout());
  if (!core::step::can_draw_documents(configuration, balanced)) return std::nullopt;
  const auto balanced_ps = static_cast<double>(step_of(context, configuration, balanced));
  core::step::DrawnDocuments documents(configuration, compiled.layout(), balanced);
  DrawnSteps drawn;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw)
    drawn.longer.push_back(static_cast<double>(step_of(context, configuration, documents.draw(draw))) / balanced_ps -
                           1);
  std::sort(drawn.longer.begin(), drawn.longer.end());
  return drawn;
}

std::string drawn_steps_text(const std::optional<DrawnSteps>& drawn) {
  if (!drawn)
    return "drawn steps       none: this layout's are not built, or have too many operations; the imbalance of "
           "replicas is not simulated\n";
  return fmt::format(
      "drawn steps       {}, in which replicas and micro-batches have documents of their own, without contention: "
      "{:+.1f} "
      "% over the balanced step on average, median {:+.1f} %, 95th percentile {:+.1f} %, at most {:+.1f} %\n",
      drawn->longer.size(), 100 * drawn->mean(), 100 * drawn->quantile(0.5), 100 * drawn->quantile(0.95),
      100 * drawn->longer.back());
}

nlohmann::ordered_json drawn_steps_json(const DrawnSteps& drawn) {
  return {{"draws", drawn.longer.size()},
          {"mean", drawn.mean()},
          {"median", drawn.quantile(0.5)},
          {"p95", drawn.quantile(0.95)},
          {"max", drawn.longer.back()}};
}

}  // namespace manyworlds::farm
