#include "experiments/programs/written_account.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace manyworlds::experiments::programs {
namespace {

constexpr double kHalfPicosecond_us = 0.5e-6;

/// Returns whether any operation of any program is of a kind.
template <class Is>
bool has_any(const StreamPrograms& all, const Is& is) {
  return std::any_of(all.programs.begin(), all.programs.end(), [&](const RankProgram& program) {
    return std::any_of(program.ops.begin(), program.ops.end(), is);
  });
}

/// The same of kernels.
template <class Is>
bool has_kernel(const StreamPrograms& all, const Is& is) {
  return has_any(all, [&](const StreamOp& op) {
    const auto* kernel = std::get_if<KernelWork>(&op.work);
    return kernel != nullptr && is(*kernel);
  });
}

}  // namespace

void Rounding::add(double exact_us, double written_us) {
  if (std::abs(written_us - exact_us) < kHalfPicosecond_us) return;
  ++durations;
  us += written_us - exact_us;
}

std::string rounding_text(const std::vector<Rounding>& of_ranks, const std::string& what) {
  Rounding most;
  for (const Rounding& one : of_ranks) {
    most.durations = std::max(most.durations, one.durations);
    most.us = std::max(most.us, std::abs(one.us));
  }
  if (most.durations == 0) return "";
  return fmt::format("up to {} durations of a rank are rounded to {}, which changes their sum by up to {:.4g} us",
                     most.durations, what, most.us);
}

std::string left_out_text(const StreamPrograms& programs) {
  std::vector<std::string> all;
  const auto add = [&](bool is_said, std::string what) {
    if (is_said) all.push_back(std::move(what));
  };
  add(!programs.gpu.empty(), fmt::format("the GPU of the times ({})", programs.gpu));
  add(programs.tokens_per_step > 0, "tokens of a step");
  add(programs.slowed != core::workload::SlowedKernels::calibrated, "how collectives slow kernels");
  add(!programs.is_synchronised, "that ranks do not wait for each other between steps");
  add(!programs.ranks.gpu_of_rank.empty(), "the GPUs of ranks");
  add(std::any_of(programs.programs.begin(), programs.programs.end(),
                  [](const RankProgram& program) { return !program.allocations.empty(); }),
      "allocations");
  add(has_kernel(programs, [](const KernelWork& kernel) { return kernel.shape.gemm || kernel.shape.attention; }),
      "shapes of kernels");
  add(has_kernel(programs, [](const KernelWork& kernel) { return kernel.part != core::workload::StepPart::kernels; }),
      "parts of the step");
  add(has_any(programs, [](const StreamOp& op) { return op.began_us >= 0; }), "when operations began");
  return all.empty() ? "" : fmt::format("left out: {}", fmt::join(all, ", "));
}

}  // namespace manyworlds::experiments::programs
