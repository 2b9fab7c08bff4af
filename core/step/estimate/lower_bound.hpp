// A lower bound of a training step's time, from sums over one micro-batch. It holds for every fidelity and transport,
// so that a search discards most layouts without simulating them. docs/model/bounds.md has the inequalities.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "core/step/estimate/rank_work.hpp"

namespace manyworlds::core::step {

/// Lower bounds of many steps, of which equal pipelines have one order of passes. Not thread-safe.
class LowerBounds {
 public:
  /// Returns a time in picoseconds that no step of the configuration falls below: the largest of what the kernels of
  /// each rank, the host that launches them, its communication with replicas, and its waits for other stages of the
  /// pipeline take at least. Takes tens of microseconds to milliseconds. Sizes must be valid
  /// (experiments/validity/validity.hpp).
  Time of(const Configuration& configuration, Replicas replicas = Replicas::counted);
  /// Returns the fastest links of the configuration's fabric, until the next call.
  const Links& links_of(const Configuration& configuration);

 private:
  /// Returns a pipeline's passes; null where their order depends on more than its sizes, or is too long.
  const PipelinePasses* passes_of(const Configuration& configuration);

  std::shared_ptr<const network::Graph> graph_;
  Links links_;  // of that graph
  /// By schedule, ranks, micro-batches, chunks, and whether there are backward passes.
  std::map<std::tuple<workload::ScheduleKind, std::int64_t, std::int64_t, std::int64_t, bool>, PipelinePasses> passes_;
};

/// The same for one step.
Time lower_bound_ps(const Configuration& configuration, Replicas replicas = Replicas::counted);

/// Returns the fastest rates of a GPU, or of a NIC that GPUs share, and the shortest latencies of a path, inside a node
/// and between nodes.
Links fastest_links(const network::Graph& graph);

}  // namespace manyworlds::core::step
