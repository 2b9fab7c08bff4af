// A resolved configuration: everything that the result of a training step depends on, and nothing else.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/collective/library/library.hpp"
#include "core/compute/gpu.hpp"
#include "core/network/fabric/failing_cables.hpp"
#include "core/network/fabric/graph.hpp"
#include "core/network/fabric/transport.hpp"
#include "core/workload/build/given_programs.hpp"
#include "core/workload/layer/rank_class.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/program/program.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::step {

enum class Composition : std::uint8_t { composed, coupled };

/// The order in which ranks fill GPUs, fastest first. Megatron's default is tp-cp-ep-dp-pp.
enum class Placement : std::uint8_t { tp_dp_pp, tp_pp_dp };

/// Limits on what has to be simulated, whatever of it is in a cache; a step that exceeds one is reported as `too_large`
/// before it simulates that. They are part of the step's key.
struct Limit {
  std::int64_t link_hops = 1'000'000'000'000;  // packets times links; what recurs in the step counts once
  std::int64_t events = 10'000'000'000;        // transfers of the same, and entries into collectives
};

/// How much is simulated packet by packet to measure the error of fluid fidelity (core/step/fluid/fluid_error.hpp).
struct FluidSampling {
  std::int64_t samples = 4;
  std::int64_t link_hops = 2'000'000;  // packets times links of one sample, at most
};

using network::LinkFailures;

struct Configuration {
  workload::Model model;
  workload::Strategy strategy;
  /// The programs of the ranks, if they are given; then model and strategy have no effect.
  std::shared_ptr<const workload::GivenPrograms> programs;
  compute::Gpu gpu;                        // the GPU of all machines, or of machines of kind 0
  std::vector<compute::Gpu> other_gpus;    // the GPUs of machines of kinds 1 and up
  std::vector<std::uint32_t> kind_of_gpu;  // by GPU: the kind of its machine; empty: there is one kind
  std::shared_ptr<const network::Graph> graph;
  LinkFailures failures;  // of its cables, since the begin of the step
  std::int64_t gpus_per_node = 8;
  double memory_headroom = 0;  // the share of a GPU's memory to be left free
  network::Transport transport;
  collective::Library collectives;
  /// Of groups that have algorithms of their own; all else in them is as in `collectives`.
  std::map<workload::Role, collective::Library> group_libraries;
  Placement placement = Placement::tp_dp_pp;
  Composition composition = Composition::composed;
  std::int64_t tick_ns = 0;  // tick of the streams' clock; 0: one picosecond
  Limit limit;
  FluidSampling fluid;
  bool has_failures() const { return !failures.cables.empty(); }
  /// Returns the library of the groups of a role.
  const collective::Library& library_of(workload::Role role) const {
    const auto own = group_libraries.find(role);
    return own == group_libraries.end() ? collectives : own->second;
  }
  bool is_mixed() const { return !kind_of_gpu.empty(); }
  /// Returns the GPU that ranks of a class run on.
  const compute::Gpu& gpu_of(const workload::RankClass& rank_class) const {
    return rank_class.machine_kind == 0 ? gpu : other_gpus.at(rank_class.machine_kind - 1);
  }
  Time tick_ps() const { return tick_ns == 0 ? 1 : tick_ns * kNanosecond; }
};

}  // namespace manyworlds::core::step
