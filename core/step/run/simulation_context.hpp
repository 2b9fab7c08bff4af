// The simulation context of a process that runs many steps: caches of routers, layouts, DAGs, components and episodes,
// each keyed by everything that it depends on. The caches never change a result; discarding them only costs time. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/step/compile/step_summary.hpp"
#include "core/step/network/isolated.hpp"
#include "core/step/run/fluid_runs.hpp"
#include "core/step/run/result.hpp"
#include "core/step/run/step.hpp"

namespace manyworlds::core::step {

class SimulationContext {
 public:
  /// With `share` false nothing computed for one collective, component or step is reused for another. Helpers, if there
  /// are any, simulate components of flows ahead (core/network/flows/decomposed_flows.cpp), and a keeper has outcomes
  /// that other processes computed; both must outlive this.
  explicit SimulationContext(bool share = true, HelperThreads* helpers = nullptr, sharing::Keeper* keeper = nullptr)
      : share_(share), helpers_(helpers), keeper_(share ? keeper : nullptr) {}

  CompiledStep compile(const Configuration& configuration, Ranks ranks = Ranks::all);
  /// Returns the summary of a step that planning needs, at a fraction of the cost of compiling it.
  StepSummary summary(const Configuration& configuration);

  /// Simulates an isolated instance of a collective operation.
  IsolatedResult isolated(const CompiledStep& step, const CollectiveOp& collective_op);
  /// Simulates an isolated collective of a shape in a group of the configuration's layout, without building programs.
  /// Throws InternalError if its key is not `key`.
  IsolatedResult isolated(const Configuration& configuration, const collective::Shape& shape, GroupId group,
                          const sharing::Key& key);
  /// Runs a step to its end. Missing isolated results are computed and added to `results`. For `recording` and
  /// `reached` see Step.
  StepResult run(const CompiledStep& compiled, IsolatedResults& results, Recording* recording = nullptr,
                 std::atomic<Time>* reached = nullptr);
  /// Compiles a step of fluids and runs it to its end. Steps that differ in nothing but the kind of their transport and
  /// its options are compiled once, and run once as far as they are the same (fluid_runs.hpp).
  StepResult run_fluids(const Configuration& configuration, Ranks ranks, std::atomic<Time>* reached = nullptr);
  /// Returns the link-hops computed by this context so far, without those taken from caches.
  const network::LinkHops& link_hops() const { return link_hops_; }

 private:
  struct TransportCache {
    TransportCache(const network::Transport& transport, std::shared_ptr<const network::Graph> fabric, bool share,
                   HelperThreads* helpers, sharing::Keeper* keeper)
        : cache(transport, std::move(fabric)), episodes(cache, share), efficiency(cache) {
      cache.simulate_with(helpers);
      if (keeper != nullptr) cache.keep_with(keeper);
    }
    network::ComponentCache cache;
    EpisodeCache episodes;
    TransportEfficiency efficiency;
  };
  void add_isolated(const CompiledStep& compiled, const MissingResults& missing, IsolatedResults& results);
  Time slowed_step_ps(const CompiledStep& compiled, TransportCache& caches, IsolatedResults& results,
                      std::atomic<Time>* reached);
  /// A step of fluids, for all transports.
  struct FluidStep {
    FluidStep(sharing::Key step_key, CompiledStep step, const IsolatedResults& results);
    sharing::Key key;
    CompiledStep compiled;
    FluidRuns runs;
  };
  FluidStep& fluid_step(const Configuration& configuration, Ranks ranks);
  StepResult run_fluids(const CompiledStep& compiled, FluidRuns& runs, const network::Transport& transport,
                        IsolatedResults& results, std::atomic<Time>* reached);
  TransportCache& transport_cache(const network::Transport& transport,
                                  const std::shared_ptr<const network::Graph>& fabric);
  IsolatedResult simulate(const collective::Shape& shape, const collective::Dag& dag, const Connections& connections,
                          const Configuration& configuration);
  std::shared_ptr<RankLayout> layout(const Configuration& configuration);

  bool share_;
  HelperThreads* helpers_;
  sharing::Keeper* keeper_;
  DagCache dags_;
  struct RouterEntry {
    std::shared_ptr<const network::Graph> graph;
    network::PathChoice choice;
    std::shared_ptr<network::Router> router;
    std::shared_ptr<network::PathSpreads> spreads = {};  // null if paths are pinned
  };
  const RouterEntry& router(const Configuration& configuration);
  std::deque<RouterEntry> routers_;  // which stay where they are
  struct LayoutEntry {
    ParallelConfig parallel;
    std::shared_ptr<network::Router> router;
    Spreading spreading;
    std::shared_ptr<RankLayout> layout;
  };
  std::vector<LayoutEntry> layouts_;  // a few, in order of last use
  std::map<sharing::Key, StepOperations> operations_;
  std::vector<std::unique_ptr<TransportCache>> transport_caches_;  // one per transport
  IsolatedResults fluid_results_;                                  // of steps in fluid_steps_
  std::vector<std::unique_ptr<FluidStep>> fluid_steps_;            // a few, in order of last use
  network::LinkHops link_hops_;
};

}  // namespace manyworlds::core::step
