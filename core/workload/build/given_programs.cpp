#include "core/workload/build/given_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/error.hpp"

namespace manyworlds::core::workload {

namespace {

void write(sharing::KeyWriter& writer, const GivenRanks& ranks) {
  writer.integer(std::ssize(ranks.program_of_rank));
  for (const std::uint32_t program : ranks.program_of_rank) writer.integer(program);
  for (const std::uint32_t gpu : ranks.gpu_of_rank) writer.integer(gpu);
  writer.integer(std::ssize(ranks.dimensions));
  for (const Dimension& dimension : ranks.dimensions) {
    writer.text(dimension.name).integer(static_cast<std::int64_t>(dimension.kind));
    writer.integer(static_cast<std::int64_t>(dimension.exposed));
  }
  writer.integer(std::ssize(ranks.groups));
  for (const GivenGroup& group : ranks.groups) {
    writer.integer(group.dimension).integer(std::ssize(group.ranks));
    for (const std::uint32_t rank : group.ranks) writer.integer(rank);
  }
}

/// Writes an operation; `number` is its own.
void write(sharing::KeyWriter& writer, const Program& program, std::uint32_t number) {
  const Op& op = program.ops[number];
  writer.integer(static_cast<std::int64_t>(op.stream)).integer(op.waits_end - op.waits_begin);
  for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) writer.integer(number - program.waits[i]);
  if (const KernelOp* kernel = op.kernel()) {
    writer.integer(static_cast<std::int64_t>(kernel->category)).integer(kernel->duration_ps);
    return;
  }
  const CollectiveCall& call = *op.collective();
  writer.integer(-1).integer(static_cast<std::int64_t>(call.role)).integer(static_cast<std::int64_t>(call.kind));
  writer.integer(call.bytes).integer(call.split);
}

void write(sharing::KeyWriter& writer, const Program& program) {
  writer.integer(std::ssize(program.ops));
  for (std::uint32_t op = 0; op < program.ops.size(); ++op) write(writer, program, op);
  for (const collective::Split& split : program.splits) {
    writer.integer(std::ssize(split.bytes)).integer(split.by_source);
    for (const std::int64_t bytes : split.bytes) writer.integer(bytes);
  }
  for (const std::string& name : program.own_streams) writer.text(name);
}

}  // namespace

void GivenPrograms::set_key() {
  sharing::KeyWriter writer("given programs");
  write(writer, *ranks);
  for (const Program& program : programs) write(writer, program);
  for (const std::vector<KernelUse>& of_program : kernels) {
    writer.integer(std::ssize(of_program));
    for (const KernelUse& use : of_program) {
      writer.text(use.kernel.name)
          .integer(use.cost_ps)
          .integer(use.times)
          .integer(static_cast<std::int64_t>(use.level));
      writer.integer(static_cast<std::int64_t>(use.basis)).integer(use.kernel.flops).integer(use.kernel.bytes);
      for (const std::int64_t extent : {use.kernel.m, use.kernel.n, use.kernel.k, use.kernel.batch})
        writer.integer(extent);
    }
  }
  for (const std::vector<AllocatedFrom>& of_program : allocated) {
    writer.integer(std::ssize(of_program));
    for (const AllocatedFrom& one : of_program) writer.integer(one.op).integer(one.bytes);
  }
  writer.integer(static_cast<std::int64_t>(slowed)).integer(units_to_move).integer(units_to_reduce);
  key = writer.integer(is_synchronised).finish();
}

std::int64_t GivenPrograms::peak_bytes(std::uint32_t program) const {
  std::int64_t peak = 0;
  for (const AllocatedFrom& one : allocated.at(program)) peak = std::max(peak, one.bytes);
  return peak;
}

namespace {

/// Checks communicators one by one.
class GroupChecks {
 public:
  GroupChecks(const GivenRanks& ranks, const std::string& what) : ranks_(ranks), what_(what) {}

  void check(const GivenGroup& group) {
    const Dimension& dimension = ranks_.dimensions.at(group.dimension);
    const bool is_pair = dimension.kind != DimensionKind::groups;
    if (is_pair ? group.ranks.size() != 2 : group.ranks.size() < 2)
      fail(dimension, fmt::format("have one of {} ranks; {}", group.ranks.size(),
                                  is_pair ? "a pair is a sender and a receiver" : "it takes two to communicate"));
    for (std::size_t i = 0; i < group.ranks.size(); ++i) check(group, dimension, is_pair ? i : 0, group.ranks[i]);
    if (is_pair && group.ranks[0] == group.ranks[1])
      fail(dimension, fmt::format("have rank {} sending to itself", group.ranks[0]));
  }

 private:
  void check(const GivenGroup& group, const Dimension& dimension, std::size_t end, std::uint32_t rank) {
    const std::size_t ranks = ranks_.program_of_rank.size();
    if (rank >= ranks) fail(dimension, fmt::format("have rank {} of {}, which are numbered from 0", rank, ranks));
    if (known_.emplace(group.dimension, end, rank).second) return;
    const char* as = dimension.kind == DimensionKind::groups ? "" : end == 0 ? " as sender" : " as receiver";
    fail(dimension, fmt::format("have rank {} twice{}; a rank may be in one of them", rank, as));
  }
  [[noreturn]] void fail(const Dimension& dimension, const std::string& why) const {
    throw InputError(fmt::format("communicators '{}' {}", dimension.name, why), what_);
  }

  const GivenRanks& ranks_;
  const std::string& what_;
  std::set<std::tuple<std::uint32_t, std::size_t, std::uint32_t>> known_;  // dimension, end of a pair, rank
};

}  // namespace

void check_ranks(const GivenRanks& ranks, std::size_t programs, const std::string& what) {
  std::vector<bool> runs(programs);
  for (std::size_t rank = 0; rank < ranks.program_of_rank.size(); ++rank) {
    const std::uint32_t program = ranks.program_of_rank[rank];
    if (program >= programs) throw InputError(fmt::format("rank {} has no program", rank), what);
    runs[program] = true;
  }
  if (const auto idle = std::find(runs.begin(), runs.end(), false); idle != runs.end())
    throw InputError(fmt::format("no rank runs program {}", idle - runs.begin()), what);
  GroupChecks checks(ranks, what);
  for (const GivenGroup& group : ranks.groups) checks.check(group);
}

}  // namespace manyworlds::core::workload
