// Given programs of a step as stream programs.
#include <algorithm>
#include <map>

#include "experiments/programs/names.hpp"
#include "experiments/programs/timed_programs.hpp"

namespace manyworlds::experiments::programs {
namespace {

using core::workload::Op;
using core::workload::Program;
using core::workload::Stream;

/// The streams of a program, numbered by first use.
class Streams {
 public:
  explicit Streams(const Program& program) : program_(program) {}

  std::uint32_t operator()(Stream stream) {
    const auto [known, is_new] = numbers_.emplace(stream, static_cast<std::uint32_t>(infos_.size()));
    if (is_new)
      infos_.push_back({program_.name_of(stream), stream == Stream::host ? StreamKind::host : StreamKind::device});
    return known->second;
  }
  const std::vector<StreamInfo>& infos() const { return infos_; }

 private:
  const Program& program_;
  std::map<Stream, std::uint32_t> numbers_;
  std::vector<StreamInfo> infos_;
};

StreamOp stream_op(const Program& program, const Op& op, Streams& streams, Names& names) {
  StreamOp result;
  result.stream = streams(op.stream);
  result.name = names(op.label < program.labels.size() ? program.labels[op.label] : "operation");
  for (std::uint32_t i = op.waits_begin; i < op.waits_end; ++i) result.after.push_back(program.waits[i]);
  std::sort(result.after.begin(), result.after.end());
  result.after.erase(std::unique(result.after.begin(), result.after.end()), result.after.end());
  if (const core::workload::KernelOp* kernel = op.kernel()) {
    const double us = static_cast<double>(kernel->duration_ps) * 1e-6;
    if (op.stream == Stream::host)
      result.work = HostWork{us};
    else
      result.work = KernelWork{.measured_us = us, .part = kernel->category};
    return result;
  }
  const core::workload::CollectiveCall& call = *op.collective();
  Communication work;
  work.dimension = static_cast<std::uint32_t>(core::workload::dimension_of(call.role));
  const std::size_t end = core::workload::end_in_dimension(call.role);
  work.receives = end > 0 && end % 2 == 0;
  work.kind = call.kind;
  work.bytes = call.bytes;
  work.split = program.split_of(call);
  result.work = std::move(work);
  return result;
}

}  // namespace

StreamPrograms as_stream_programs(const core::workload::GivenPrograms& given, const std::string& name) {
  StreamPrograms result;
  result.name = name;
  result.ranks = *given.ranks;
  result.slowed = given.slowed;
  result.units_to_move = given.units_to_move, result.units_to_reduce = given.units_to_reduce;
  result.is_synchronised = given.is_synchronised;
  result.tokens_per_step = given.tokens_per_step;
  Names names(result.names);
  for (const Program& program : given.programs) {
    RankProgram& to = result.programs.emplace_back();
    to.name = std::to_string(result.programs.size() - 1);
    Streams streams(program);
    for (const Op& op : program.ops) to.ops.push_back(stream_op(program, op, streams, names));
    to.streams = streams.infos();
  }
  return result;
}

}  // namespace manyworlds::experiments::programs
