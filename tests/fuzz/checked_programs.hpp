// What must hold of programs of any file that a reader took.
#pragma once

#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "experiments/programs/program_file.hpp"
#include "tests/fuzz/work_folder.hpp"

namespace manyworlds::fuzz {

/// Every operation comes after what it waits for, its time is one where it is known, communication has bytes and ranks,
/// and threads of the host do what hosts do.
inline void require_programs(const experiments::programs::StreamPrograms& all) {
  using namespace experiments::programs;
  core::workload::check_ranks(all.ranks, all.programs.size(), "programs");
  for (const RankProgram& program : all.programs) {
    for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
      const StreamOp& op = program.ops[i];
      require(op.stream < program.streams.size() && op.name < all.names.size());
      for (const std::uint32_t before : op.after) require(before < i);
      const auto is_time = [](double us) { return us >= 0 && std::isfinite(us); };
      const auto* host = std::get_if<HostWork>(&op.work);
      require((program.streams[op.stream].kind == StreamKind::host) == (host != nullptr));
      if (host != nullptr) require(is_time(host->us));
      if (const auto* kernel = std::get_if<KernelWork>(&op.work))
        require(kernel->shape.bytes >= 0 && is_time(kernel->measured_us.value_or(0)));
      if (const auto* copy = std::get_if<CopyWork>(&op.work)) require(copy->bytes > 0 || is_time(*copy->measured_us));
      if (const auto* call = std::get_if<Communication>(&op.work))
        require(call->dimension < all.ranks.dimensions.size() && call->bytes > 0);
    }
    for (const Allocation& one : program.allocations) require(one.op <= program.ops.size());
  }
}

/// The same, of a trace: every rank did something, and every kernel was measured.
inline void require_measured_programs(const experiments::programs::StreamPrograms& all) {
  using namespace experiments::programs;
  require_programs(all);
  for (const RankProgram& program : all.programs) {
    require(!program.ops.empty());
    for (const StreamOp& op : program.ops)
      if (const auto* kernel = std::get_if<KernelWork>(&op.work)) require(kernel->measured_us.has_value());
  }
}

/// A refusal is one line that begins with the name of the file.
inline void require_refusal(const core::InputError& error, const std::string& name) {
  const std::string said = error.what();
  require(said.rfind(name, 0) == 0 && said.find('\n') == std::string::npos);
}

}  // namespace manyworlds::fuzz
