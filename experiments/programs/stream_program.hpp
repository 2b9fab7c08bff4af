// Programs of ranks as they come from outside: operations on streams, with the work that each does. Kernels have a time
// that was measured, or a shape, or both; nothing is timed on a GPU yet (timed_programs.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/collective/dag/kind.hpp"
#include "core/collective/dag/split.hpp"
#include "core/compute/kernel.hpp"
#include "core/workload/build/given_programs.hpp"

namespace manyworlds::experiments::programs {

/// The shape of a matrix product C[m,n] = A[m,k] B[k,n], `batch` times.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  core::compute::Dtype dtype = core::compute::Dtype::bf16;
  bool operator==(const GemmShape&) const = default;
};

/// Fused attention of `batch` samples times heads: that many times `queries` times `keys` of heads of `width`; keys and
/// values are shared where key_batch, samples times heads of keys, is less. A causal one leaves half of the pairs.
struct AttentionShape {
  core::compute::KernelClass kernel_class = core::compute::KernelClass::flash2_forward;  // one of attention
  std::int64_t queries = 0, keys = 0, width = 0, batch = 0, key_batch = 0;
  bool is_causal = true;
  core::compute::Dtype dtype = core::compute::Dtype::bf16;
  bool operator==(const AttentionShape&) const = default;
};

/// What a kernel works on, as far as it is known: a matrix product, attention or neither, and the bytes that it reads
/// and writes in device memory (0: not known).
struct KernelShape {
  std::optional<GemmShape> gemm = {};
  std::optional<AttentionShape> attention = {};
  std::int64_t bytes = 0;
  bool is_known() const { return gemm || attention || bytes > 0; }
  bool operator==(const KernelShape&) const = default;
};

/// What the time of a kernel of no known shape follows from one GPU to another, as who made the program assumed.
enum class ScalesWith : std::uint8_t { memory, matrix };

/// A kernel: what is known of it. Its time is measured_us, on the GPU that the programs name, if that is known; that of
/// another shape where measured_at has one. One of which nothing is known can be read and written, and is refused where
/// it is timed.
struct KernelWork {
  std::optional<double> measured_us = {};
  std::optional<KernelShape> measured_at = {};
  KernelShape shape = {};
  std::int64_t flops = 0;  // of matrix products; 0: not known
  std::optional<ScalesWith> scales_with = {};
  core::workload::StepPart part = core::workload::StepPart::kernels;
  bool operator==(const KernelWork&) const = default;
};

enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device, peer, set };

/// A copy by an engine of its own, or a memset. Without a measured time it takes its bytes over the rate of its path.
struct CopyWork {
  CopyDirection direction = CopyDirection::device_to_device;
  std::int64_t bytes = 0;
  std::optional<double> measured_us;
  bool operator==(const CopyWork&) const = default;
};

/// What a thread of the host does: a launch, or what is between two of them.
struct HostWork {
  double us = 0;
  bool operator==(const HostWork&) const = default;
};

/// A collective of the group in which the rank is, or one end of a transfer: the pair of a dimension in which it sends
/// or receives. The n-th operation of each member of a group in its dimension is the same one.
struct Communication {
  std::uint32_t dimension = 0;
  bool receives = false;
  core::collective::Kind kind = core::collective::Kind::all_reduce;
  std::int64_t bytes = 0;  // see core::collective::Kind
  core::collective::Split split;
  bool operator==(const Communication&) const = default;
};

struct StreamOp {
  std::uint32_t stream = 0;          // index in RankProgram::streams
  std::uint32_t name = 0;            // index in StreamPrograms::names
  std::vector<std::uint32_t> after;  // earlier operations that must have ended, besides those before it on its stream
  double began_us = -1;              // in the recording, since all ranks began; below 0: not known (see edits::Hold)
  std::variant<KernelWork, CopyWork, HostWork, Communication> work;
  bool operator==(const StreamOp&) const = default;
};

enum class StreamKind : std::uint8_t { device, host };
struct StreamInfo {
  std::string name;
  StreamKind kind = StreamKind::device;
  bool operator==(const StreamInfo&) const = default;
};

/// Device memory that is allocated (above 0) or freed (below) before an operation is issued; before the end, if that is
/// ops.size().
struct Allocation {
  std::uint32_t op = 0;
  std::int64_t bytes = 0;
  bool operator==(const Allocation&) const = default;
};

struct RankProgram {
  std::string name;
  std::vector<StreamInfo> streams;
  std::vector<StreamOp> ops;  // in an order in which every operation comes after those that it waits for
  std::vector<Allocation> allocations;
  bool operator==(const RankProgram&) const = default;
};

struct StreamPrograms {
  std::string name, origin;
  std::string gpu;                 // catalog name of the GPU on which times were measured; empty: none were, or unknown
  std::vector<std::string> notes;  // what whoever made them assumed, one sentence each
  std::vector<std::string> names;  // of operations
  std::vector<RankProgram> programs;
  core::workload::GivenRanks ranks;
  core::workload::SlowedKernels slowed = core::workload::SlowedKernels::calibrated;
  std::int64_t units_to_move = 0, units_to_reduce = 0;
  bool is_synchronised = true;
  double tokens_per_step = 0;  // of all ranks together; 0: not known
};

}  // namespace manyworlds::experiments::programs
