// Ranks that are held to their recording.
#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"
#include "experiments/edits/make_edit.hpp"
#include "experiments/programs/names.hpp"

namespace manyworlds::experiments::edits {

using programs::RankProgram;
using programs::StreamOp;

RankProgram held(programs::StreamPrograms& all, const RankProgram& program, const std::vector<std::uint32_t>& ops) {
  constexpr const char* kStream = "recording";
  RankProgram result;
  result.name = program.name;
  result.streams = program.streams;
  for (const programs::StreamInfo& stream : result.streams)
    if (stream.name == kStream) throw core::InputError("holds ranks that an edit before it holds");
  const auto stream = static_cast<std::uint32_t>(result.streams.size());
  result.streams.push_back({kStream, programs::StreamKind::host});

  // First the thread that waits from one beginning to the next, then all operations, each after its own.
  std::vector<std::uint32_t> by_time = ops;
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return program.ops[a].began_us < program.ops[b].began_us; });
  const std::uint32_t name = programs::Names(all.names)(kStream);
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> wait_of(program.ops.size(), kNone);
  double now_us = 0;
  for (const std::uint32_t op : by_time) {
    StreamOp wait;
    wait.stream = stream;
    wait.name = name;
    wait.work = programs::HostWork{program.ops[op].began_us - now_us};
    now_us = program.ops[op].began_us;
    wait_of[op] = static_cast<std::uint32_t>(result.ops.size());
    result.ops.push_back(std::move(wait));
  }
  const auto first = static_cast<std::uint32_t>(result.ops.size());
  for (std::uint32_t number = 0; number < program.ops.size(); ++number) {
    StreamOp op = program.ops[number];
    for (std::uint32_t& before : op.after) before += first;
    if (wait_of[number] != kNone) op.after.insert(op.after.begin(), wait_of[number]);
    result.ops.push_back(std::move(op));
  }
  result.allocations = program.allocations;
  for (programs::Allocation& allocation : result.allocations) allocation.op += first;
  return result;
}

}  // namespace manyworlds::experiments::edits
