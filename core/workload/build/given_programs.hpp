// Programs that are given instead of built from a model and a strategy: captured from a job, or read from its trace.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/sharing/key.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/program/program.hpp"

namespace manyworlds::core::workload {

/// A dimension of parallelism, as of PyTorch's DeviceMesh: communicators of one name. A rank is in at most one of them;
/// of pairs (sender, receiver) it is the sender of at most one and the receiver of at most one.
struct Dimension {
  std::string name;
  DimensionKind kind = DimensionKind::groups;
  StepPart exposed = StepPart::exposed_other;  // what waiting for its communication counts as
};
struct GivenGroup {
  std::uint32_t dimension = 0;
  std::vector<std::uint32_t> ranks;
};

/// Which program each rank runs, and the communicators of all.
struct GivenRanks {
  std::vector<std::uint32_t> program_of_rank;
  std::vector<std::uint32_t> gpu_of_rank;  // empty: rank r is on GPU r
  std::vector<Dimension> dimensions;       // their roles: role_in_dimension()
  std::vector<GivenGroup> groups;          // of transfers that tie on a link, those of an earlier group go first
};

/// How kernels are slowed while collectives run: as the GPU's catalog entry says; not at all, as where times were
/// measured beside collectives; or by the compute units that collectives take.
enum class SlowedKernels : std::uint8_t { calibrated, none, by_units };

/// Bytes that a rank has allocated from the issue of an operation on.
struct AllocatedFrom {
  std::uint32_t op = 0;
  std::int64_t bytes = 0;
};

struct GivenPrograms {
  std::shared_ptr<const GivenRanks> ranks;
  std::vector<Program> programs;
  std::vector<std::vector<KernelUse>> kernels;        // by program, distinct ones
  std::deque<std::string> kernel_names;               // which `kernels` refer to
  std::vector<std::vector<AllocatedFrom>> allocated;  // by program, ascending; empty if it is not known
  SlowedKernels slowed = SlowedKernels::calibrated;
  std::int64_t units_to_move = 0, units_to_reduce = 0;  // of the GPU's compute units, by a collective
  double tokens_per_step = 0;                           // of all ranks together; 0: not known
  bool is_synchronised = true;  // whether ranks wait for each other between steps; else each has its own step
  sharing::Key key;             // of all of this

  /// Sets the key, from all else.
  void set_key();
  /// Returns the most that a rank of a program has allocated, in bytes; 0 if it is not known.
  std::int64_t peak_bytes(std::uint32_t program) const;
};

/// Throws InputError unless every rank runs a program and every program is run, every communicator has two or more
/// ranks, each of them once, and no rank is in two communicators of one dimension in the same role; `what` is the name
/// of the programs in messages.
void check_ranks(const GivenRanks& ranks, std::size_t programs, const std::string& what);

}  // namespace manyworlds::core::workload
