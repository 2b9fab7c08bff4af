#include "core/step/run/simulation_context.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/network/transports/pfc_headroom.hpp"
#include "core/network/transports/registry.hpp"
#include "core/step/layout/keys.hpp"
#include "core/step/network/merged_collective.hpp"

namespace manyworlds::core::step {
namespace {

// Each layout holds the routes of its communicators, about a megabyte at 1,024 GPUs.
constexpr std::size_t kMaxLayouts = 8;

// Of states of one step of fluids; and of all such steps with what is kept of their runs.
constexpr std::int64_t kMaxStateBytes = std::int64_t{64} << 20, kMaxFluidBytes = std::int64_t{128} << 20;
constexpr std::size_t kMaxFluidSteps = 16;

/// Returns the key of a step of fluids but for its routes, the kind of its transport and the options of that.
sharing::Key fluid_key(const Configuration& configuration, Ranks ranks) {
  sharing::KeyWriter writer("fluids");
  writer.key(operations_key(configuration));
  write_options(writer, collective::library_options().read(configuration.collectives));
  for (const auto& [role, library] : configuration.group_libraries) {
    writer.integer(static_cast<std::int64_t>(role));
    write_options(writer, collective::library_options().read(library));
  }
  writer.integer(static_cast<std::int64_t>(configuration.composition)).integer(static_cast<std::int64_t>(ranks));
  writer.integer(configuration.limit.link_hops).integer(configuration.limit.events).integer(configuration.tick_ns);
  write_transport(writer, configuration.transport);
  writer.integer(configuration.fluid.samples).integer(configuration.fluid.link_hops);
  write_failures(writer, configuration.failures);
  return writer.finish();
}

/// Returns the transport with which a step is simulated or, if it is of fluids, with which these are measured.
network::Transport measured(network::Transport transport) {
  if (transport.fidelity == network::Fidelity::fluid) transport.fidelity = network::Fidelity::packet;
  return transport;
}

}  // namespace

SimulationContext::FluidStep::FluidStep(sharing::Key step_key, CompiledStep step, const IsolatedResults& results)
    : key(std::move(step_key)), compiled(std::move(step)), runs(compiled, results, kMaxStateBytes) {}

/// All steps with one key and one layout have the same programs, groups, shapes and routes.
SimulationContext::FluidStep& SimulationContext::fluid_step(const Configuration& configuration, Ranks ranks) {
  const sharing::Key key = fluid_key(configuration, ranks);
  const std::shared_ptr<RankLayout> current = layout(configuration);
  auto known = std::find_if(fluid_steps_.begin(), fluid_steps_.end(), [&](const auto& one) {
    return one->key == key && &one->compiled.layout() == current.get() &&
           one->compiled.configuration().collectives == configuration.collectives &&
           one->compiled.configuration().group_libraries == configuration.group_libraries;
  });
  if (known == fluid_steps_.end()) {
    std::int64_t bytes = 0;
    for (const auto& one : fluid_steps_) bytes += one->runs.bytes();
    while (!fluid_steps_.empty() && (bytes > kMaxFluidBytes || fluid_steps_.size() == kMaxFluidSteps)) {
      bytes -= fluid_steps_.front()->runs.bytes();
      fluid_steps_.erase(fluid_steps_.begin());
    }
    known = fluid_steps_.insert(fluid_steps_.end(),
                                std::make_unique<FluidStep>(key, compile(configuration, ranks), fluid_results_));
  }
  std::rotate(known, known + 1, fluid_steps_.end());
  return *fluid_steps_.back();
}

const SimulationContext::RouterEntry& SimulationContext::router(const Configuration& configuration) {
  const network::Transport& transport = configuration.transport;
  network::PathChoice choice = network::path_choice_of(transport);
  choice.routing = network::routing_of(transport);
  for (const RouterEntry& known : routers_)
    if (known.graph == configuration.graph && known.choice == choice) return known;
  network::check_pfc_headroom(*configuration.graph, transport);
  RouterEntry& added = routers_.emplace_back();
  added.graph = configuration.graph;
  added.choice = choice;
  added.router = std::make_shared<network::Router>(configuration.graph, choice);
  if (network::spreads(transport)) added.spreads = std::make_shared<network::PathSpreads>(configuration.graph);
  return added;
}

std::shared_ptr<RankLayout> SimulationContext::layout(const Configuration& configuration) {
  const RouterEntry& entry = router(configuration);
  const Spreading spreading{entry.spreads, configuration.transport.fidelity == network::Fidelity::packet};
  const ParallelConfig parallel = parallel_config_of(configuration);
  auto known = std::find_if(layouts_.begin(), layouts_.end(), [&](const LayoutEntry& one) {
    return one.router == entry.router && one.spreading == spreading && one.parallel == parallel;
  });
  if (known == layouts_.end()) {
    if (layouts_.size() == kMaxLayouts) layouts_.erase(layouts_.begin());
    known = layouts_.insert(layouts_.end(), {parallel, entry.router, spreading,
                                             std::make_shared<RankLayout>(parallel, entry.router, spreading)});
  }
  std::rotate(known, known + 1, layouts_.end());
  return layouts_.back().layout;
}

CompiledStep SimulationContext::compile(const Configuration& configuration, Ranks ranks) {
  return CompiledStep(configuration, layout(configuration), dags_, ranks);
}

StepSummary SimulationContext::summary(const Configuration& configuration) {
  const sharing::Key key = operations_key(configuration);
  auto known = operations_.find(key);
  if (known == operations_.end()) known = operations_.emplace(key, StepOperations(configuration)).first;
  return summary_of(configuration, known->second, *layout(configuration), dags_);
}

/// Results of the per-packet engine are those of one fabric.
SimulationContext::TransportCache& SimulationContext::transport_cache(
    const network::Transport& transport, const std::shared_ptr<const network::Graph>& fabric) {
  for (const auto& known : transport_caches_)
    if (known->cache.transport() == transport && (!known->cache.fabric() || known->cache.fabric() == fabric))
      return *known;
  return *transport_caches_.emplace_back(
      std::make_unique<TransportCache>(transport, fabric, share_, helpers_, keeper_));
}

IsolatedResult SimulationContext::simulate(const collective::Shape& shape, const collective::Dag& dag,
                                           const Connections& connections, const Configuration& configuration) {
  const network::Transport& transport = configuration.transport;
  const network::Graph& graph = *configuration.graph;
  const auto with = [&](network::ComponentCache& cache) {
    const network::LinkHops before = cache.link_hops();
    std::optional<IsolatedResult> result;
    if (share_ && transport.fidelity == network::Fidelity::packet && dag.members == shape.members)
      if (const auto merged = merge_members(shape, connections.routes, graph, transport))
        result = simulate_merged(*merged, graph, cache);
    if (!result) result = simulate_isolated(dag, connections, graph, cache);
    link_hops_ += cache.link_hops() - before;
    return std::move(*result);
  };
  if (share_) return with(transport_cache(transport, configuration.graph).cache);
  network::ComponentCache cache(transport, configuration.graph);
  cache.simulate_with(helpers_);
  return with(cache);
}

IsolatedResult SimulationContext::isolated(const CompiledStep& step, const CollectiveOp& collective_op) {
  return of_all_ranks(
      simulate(collective_op.shape, *collective_op.dag, *collective_op.connections, step.configuration()),
      collective_op);
}

IsolatedResult SimulationContext::isolated(const Configuration& configuration, const collective::Shape& shape,
                                           GroupId group, const sharing::Key& key) {
  const std::shared_ptr<RankLayout> ranks = layout(configuration);
  MANYWORLDS_CHECK(group < ranks->groups().next_id(), "group {} of {}", group, ranks->groups().size());
  const std::shared_ptr<const collective::Dag> dag = dags_.get(shape);
  const Connections& connections = *ranks->connections_of(group, ranks->connectivity_number(*dag));
  const sharing::Key found = collective_key(shape, connections.route_signature, transport_key(configuration.transport));
  MANYWORLDS_CHECK(found == key, "collective {} is {}, not {}", shape.text(), found.hex(), key.hex());
  return simulate(shape, *dag, connections, configuration);
}

void SimulationContext::add_isolated(const CompiledStep& compiled, const MissingResults& missing,
                                     IsolatedResults& results) {
  for (const CollectiveOpId id : missing.collective_ops) {
    const CollectiveOp& collective_op = compiled.collective_ops()[id];
    auto& slot = results[collective_op.key];
    if (!slot) slot = std::make_shared<IsolatedResult>(isolated(compiled, collective_op));
  }
}

/// Returns how long the step takes as fluids if every contended collective takes longer by FluidRuns::kSlowedByPpm.
Time SimulationContext::slowed_step_ps(const CompiledStep& compiled, TransportCache& caches, IsolatedResults& results,
                                       std::atomic<Time>* reached) {
  Step step(compiled, caches.episodes, caches.efficiency, results, nullptr, reached);
  step.slow_contended(FluidRuns::kSlowedByPpm);
  while (true) {
    auto outcome = step.advance();
    if (const auto* done = std::get_if<StepResult>(&outcome)) return done->step_ps;
    add_isolated(compiled, std::get<MissingResults>(outcome), results);
  }
}

StepResult SimulationContext::run_fluids(const Configuration& configuration, Ranks ranks, std::atomic<Time>* reached) {
  if (!share_) return run(compile(configuration, ranks), fluid_results_, nullptr, reached);
  FluidStep& step = fluid_step(configuration, ranks);
  return run_fluids(step.compiled, step.runs, configuration.transport, fluid_results_, reached);
}

StepResult SimulationContext::run_fluids(const CompiledStep& compiled, FluidRuns& runs,
                                         const network::Transport& transport, IsolatedResults& results,
                                         std::atomic<Time>* reached) {
  TransportCache& caches = transport_cache(measured(transport), compiled.configuration().graph);
  const network::LinkHops before = caches.cache.link_hops();
  StepResult result =
      runs.run({caches.cache, caches.episodes, caches.efficiency, helpers_,
                [&](const MissingResults& missing) { add_isolated(compiled, missing, results); },
                [&](const std::vector<ContendedCollective>& contended) {
                  return measure_fluid_error(compiled, contended, dags_, caches.cache, caches.efficiency);
                },
                reached});
  result.computed = caches.cache.link_hops() - before;
  link_hops_ += result.computed;
  return result;
}

StepResult SimulationContext::run(const CompiledStep& compiled, IsolatedResults& results, Recording* recording,
                                  std::atomic<Time>* reached) {
  if (!share_) transport_caches_.clear();
  if (share_ && recording == nullptr && compiled.transport().fidelity == network::Fidelity::fluid &&
      compiled.configuration().composition == Composition::composed) {
    FluidRuns runs(compiled, results, kMaxStateBytes);
    return run_fluids(compiled, runs, compiled.transport(), results, reached);
  }
  TransportCache& caches = transport_cache(measured(compiled.transport()), compiled.configuration().graph);
  const network::LinkHops before = link_hops_;
  network::LinkHops hops_counted = caches.cache.link_hops();
  Step step(compiled, caches.episodes, caches.efficiency, results, recording, reached);
  while (true) {
    auto outcome = step.advance();
    auto* const done = std::get_if<StepResult>(&outcome);
    const Configuration& configuration = compiled.configuration();
    if (done != nullptr && configuration.transport.fidelity == network::Fidelity::fluid) {
      done->fluid = measure_fluid_error(compiled, step.contended(), dags_, caches.cache, caches.efficiency);
      if (done->fluid.mean > 0)
        done->fluid.step = FluidRuns::error_of_step(done->fluid.mean, done->step_ps,
                                                    slowed_step_ps(compiled, caches, results, reached));
    }
    link_hops_ += caches.cache.link_hops() - hops_counted;
    if (done != nullptr) {
      const bool packets = configuration.transport.fidelity == network::Fidelity::packet;
      if (packets && configuration.composition == Composition::coupled) link_hops_.simulated += done->link_hops;
      done->computed = link_hops_ - before;
      return std::move(*done);
    }
    add_isolated(compiled, std::get<MissingResults>(outcome), results);
    hops_counted = caches.cache.link_hops();  // isolated() has counted its own link-hops
  }
}

}  // namespace manyworlds::core::step
