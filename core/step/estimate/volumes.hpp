// What a training step computes and sends, in FLOPs and bytes, and an order of layouts by it that knows no hardware
// (symbolic cost model of SMSG: Wang et al., "SMSG: profiling-free parallelism modeling for distributed training of
// DNN", IJPP 51, 2023). docs/decisions.md has the rule, and how it orders layouts beside simulations.
#pragma once

#include <cstdint>

#include "core/collective/dag/kind.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::step {

/// What bytes and launches weigh, in 16-bit FLOPs: all that the order assumes of machines. Defaults are the geometric
/// means of two generations by their datasheets, DGX A100 and DGX H100: 312 and 989.4 TFLOP/s; over 2.039 and 3.35 TB/s
/// of memory, 153 and 295; over 300 and 450 GB/s of NVLink in one direction, 1040 and 2199; over 25 and 50 GB/s of a
/// NIC, 12 and 9 times as much.
struct Balance {
  double flops_per_memory_byte = 212;
  double flops_per_byte = 1510;  // sent inside a node
  double node_factor = 10.4;     // bytes between nodes weigh so many times as much
  double flops_per_us = 556e6;   // of a microsecond that the software's host takes to launch kernels
};

/// Bytes that one rank sends to ranks of its node, and through its share of the node's NICs.
struct SentBytes {
  double inside = 0, between = 0;
  SentBytes& operator+=(const SentBytes& other) {
    inside += other.inside, between += other.between;
    return *this;
  }
  SentBytes operator*(double times) const { return {inside * times, between * times}; }
};

/// One step of the rank with the most work.
struct StepVolumes {
  double flops = 0;         // of kernels with their recomputation
  double memory_bytes = 0;  // read and written by kernels
  double launches = 0;      // of kernels by the host, without those of CUDA graphs and of the optimizer
  SentBytes tensor;         // to ranks that share layers: tensor parallelism
  SentBytes context;        // to ranks that share samples
  SentBytes experts;        // to ranks that share experts
  SentBytes replicas;       // gradients, and parameters under ZeRO
  SentBytes stages;         // between pipeline stages
  double bubble_share = 0;  // of the pipeline's time
  double weight = 0;        // all of it in FLOPs, by which layouts are ordered: less is better
};

/// Returns the volumes of a step whose ranks fill nodes of `gpus_per_node` GPUs in the order tensor, context, data,
/// pipeline. Sizes must be valid (experiments/validity/validity.hpp).
StepVolumes step_volumes(const workload::Model& model, const workload::Strategy& strategy, std::int64_t gpus_per_node,
                         const Balance& balance);

/// Returns what one of `members` ranks at distance `stride` sends in a collective of the size that collective::Kind
/// defines, with an algorithm that sends least: rings, whose channels share the node's NICs, or one message a pair.
SentBytes sent_bytes(collective::Kind kind, double bytes, std::int64_t members, std::int64_t stride,
                     std::int64_t gpus_per_node);

}  // namespace manyworlds::core::step
