// One world, fully resolved: everything a training step depends on, and nothing it does not.
#pragma once

#include <memory>

#include "core/collective/library.hpp"
#include "core/compute/gpu.hpp"
#include "core/network/graph.hpp"
#include "core/network/transport.hpp"
#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

namespace manyworlds::core::step {

enum class Composition : std::uint8_t { composed, coupled };

/// The order in which ranks fill GPUs, fastest first. Megatron's default is tp-cp-ep-dp-pp.
enum class Placement : std::uint8_t { tp_dp_pp, tp_pp_dp };

/// Counted limits; beyond them a world is `too_large`. They are part of the answer.
struct Limit {
  std::int64_t link_hops = 1'000'000'000'000;
  std::int64_t events = 1'000'000'000'000;
};

struct Configuration {
  workload::Model model;
  workload::Strategy strategy;
  compute::Gpu gpu;
  std::shared_ptr<const network::Graph> graph;
  std::int64_t gpus_per_node = 8;
  network::Transport transport;
  collective::Library collectives;
  Placement placement = Placement::tp_dp_pp;
  Composition composition = Composition::composed;
  std::int64_t tick_ns = 0;  // of the streams' clock; 0: a picosecond
  Limit limit;
  Time tick_ps() const { return tick_ns == 0 ? 1 : tick_ns * kNanosecond; }
};

}  // namespace manyworlds::core::step
