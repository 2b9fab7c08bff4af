// Programs on GPUs of several kinds: those of one program that stand on different kinds run programs of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/compute/gpu.hpp"
#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// The GPUs of a cluster: those of each kind are alike, their speed factor (faults.slow_gpus) among it.
struct ClusterGpus {
  std::vector<core::compute::Gpu> of_kind;  // at least one
  std::vector<std::uint32_t> kind_of_gpu;   // by GPU of the cluster; empty: all are of the first kind
};

/// Programs of which each is of ranks on GPUs of one kind, in the order of the programs and then of kinds. A rank on a
/// GPU that the cluster does not have is of the first kind.
struct ProgramsByKind {
  std::vector<std::uint32_t> program;  // the one that it is a copy of
  std::vector<std::uint32_t> kind;
  std::vector<std::uint32_t> program_of_rank;
  std::vector<double> ranks;  // how many run it
};
ProgramsByKind programs_by_kind(const StreamPrograms& programs, const ClusterGpus& gpus);

}  // namespace manyworlds::experiments::programs
