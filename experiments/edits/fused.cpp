// Kernels that follow each other on a stream become one.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/edits/make_edit.hpp"
#include "experiments/edits/rewriting.hpp"

namespace manyworlds::experiments::edits {
namespace {

using programs::KernelWork;
using programs::RankProgram;
using programs::StreamOp;

/// Returns the runs of operations that can be one kernel: each follows the one before it on their stream, and waits for
/// nothing that comes after the first.
std::vector<std::vector<std::uint32_t>> runs_of(const RankProgram& program, const std::vector<std::uint32_t>& ops) {
  std::vector<std::vector<std::uint32_t>> runs;
  std::vector<std::uint32_t> last(program.streams.size(), UINT32_MAX);
  std::vector<std::size_t> open(program.streams.size());  // by stream: the run of its last operation
  auto next = ops.begin();
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const StreamOp& op = program.ops[i];
    const std::uint32_t before = last[op.stream];
    last[op.stream] = i;
    if (next == ops.end() || *next != i) continue;
    ++next;
    const bool follows = before != UINT32_MAX && !runs.empty() && !runs[open[op.stream]].empty() &&
                         runs[open[op.stream]].back() == before &&
                         (op.after.empty() || op.after.back() <= runs[open[op.stream]].front());
    if (!follows) {
      open[op.stream] = runs.size();
      runs.emplace_back();
    }
    runs[open[op.stream]].push_back(i);
  }
  return runs;
}

/// Returns the only one of the run's kernels that has a measured time, a matrix product or neither.
KernelWork one_of(const programs::StreamPrograms& all, const RankProgram& program,
                  const std::vector<std::uint32_t>& run, const Fuse& how) {
  KernelWork sum;
  double us = 0, bytes = 0;
  std::size_t timed = 0;
  bool are_bytes_known = true;
  for (const std::uint32_t op : run) {
    const auto& work = std::get<KernelWork>(program.ops[op].work);
    if (op == run.front()) sum.part = work.part;
    timed += work.measured_us ? 1 : 0;
    us += work.measured_us.value_or(0);
    bytes += static_cast<double>(work.shape.bytes);
    are_bytes_known = are_bytes_known && work.shape.is_known();
    sum.flops += work.flops;
    if (!work.shape.gemm && !work.shape.attention) continue;
    if (sum.shape.gemm || sum.shape.attention)
      throw core::InputError(
          fmt::format("'{}' of program '{}' would join another matrix product or attention; a kernel has one",
                      all.names[program.ops[op].name], program.name));
    sum.shape.gemm = work.shape.gemm, sum.shape.attention = work.shape.attention;
  }
  if (timed > 0 && timed < run.size())
    throw core::InputError(fmt::format("'{}' of program '{}' and those after it have measured times, but for {}",
                                       all.names[program.ops[run.front()].name], program.name, run.size() - timed));
  if (timed > 0) sum.measured_us = us * how.time;
  if (timed == 0 && how.time != 1)
    throw core::InputError(
        fmt::format("'{}' of program '{}' has no measured time that a factor could be of; 'bytes' "
                    "has one",
                    all.names[program.ops[run.front()].name], program.name));
  if (are_bytes_known && bytes > 0) sum.shape.bytes = std::max<std::int64_t>(1, std::llround(bytes * how.bytes));
  return sum;
}

}  // namespace

RankProgram fused(const programs::StreamPrograms& all, const RankProgram& program,
                  const std::vector<std::uint32_t>& ops, const Fuse& how) {
  RankProgram changed = program;
  Rewriting rewriting(changed);
  for (const std::vector<std::uint32_t>& run : runs_of(program, ops)) {
    if (run.size() < 2) continue;
    changed.ops[run.front()].work = one_of(all, program, run, how);
    rewriting.join(run, run.front());
  }
  return rewriting.finish();
}

}  // namespace manyworlds::experiments::edits
