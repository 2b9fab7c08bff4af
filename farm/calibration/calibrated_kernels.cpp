#include "farm/calibration/calibrated_kernels.hpp"

#include <algorithm>
#include <set>

#include "core/compute/measured.hpp"
#include "experiments/keys/section.hpp"

namespace manyworlds::farm {
namespace {

using namespace core::compute;
using experiments::fitting::Candidate;
using experiments::fitting::SelectionProblem;
using experiments::import::KernelSample;

/// What one number format of GEMMs has: few of its rates, each of which a shape of its own tells.
constexpr const char* kGemmConstants[] = {"gemm_efficiency", "gemm_memory_efficiency", "gemm_epilogue_clocks",
                                          "gemm_throttle"};

/// Returns the keys of the constants that these kernels depend on and that benchmarks of kernels can tell.
std::vector<std::string> keys_of(const std::vector<KernelSample>& samples) {
  std::vector<std::string> keys;
  std::set<std::string> known;
  // A rate in steps alone is told by the power limit rather than by the kernels, which have benchmarks of their own.
  if (std::any_of(samples.begin(), samples.end(), [](const KernelSample& sample) {
        return sample.kernel.kernel_class == KernelClass::gemm && sample.power == PowerState::sustained;
      }))
    keys.emplace_back("sustained_rate");
  const auto add = [&](const std::string& key) {
    if (known.insert(key).second) keys.push_back(key);
  };
  bool launches = false;
  for (const KernelSample& sample : samples) {
    const Kernel& kernel = sample.kernel;
    launches |= sample.with_launch;
    if (kernel.kernel_class == KernelClass::memory_bound) {
      add("memory_efficiency");
    } else if (kernel.kernel_class == KernelClass::gemm) {
      const std::string prefix = kernel.dtype == Dtype::fp8 ? "fp8_" : kernel.dtype == Dtype::fp4 ? "fp4_" : "";
      for (const char* constant : kGemmConstants) add(prefix + constant);
    } else if (kernel.flops > 0) {  // a scan that only moves bytes has no constant
      add(std::string(kKernelClassNames.at(static_cast<std::size_t>(kernel.kernel_class))) + "_efficiency");
    }
  }
  if (launches) add("launch_us");
  return keys;
}

std::vector<Candidate> candidates_of(const std::vector<KernelSample>& samples, const Gpu& start) {
  const core::OptionSet values = gpu_options().read(start);
  const std::vector<core::OptionInfo> infos = gpu_options().infos();
  std::vector<Candidate> candidates;
  for (const std::string& key : keys_of(samples)) {
    const core::OptionInfo* info = experiments::find_option(infos, key);
    MANYWORLDS_CHECK(info != nullptr, "no option '{}' of a GPU", key);
    if (const double value = std::get<double>(values.at(key)); value > 0)
      candidates.push_back({key, value, info->minimum, info->maximum});
  }
  return candidates;
}

}  // namespace

Gpu with_constants(const Gpu& gpu, const std::vector<CalibratedConstant>& constants) {
  core::OptionSet values = gpu_options().read(gpu);
  for (const CalibratedConstant& one : constants) values[one.key] = one.after;
  Gpu result = gpu_options().make(values);
  result.shapes = gpu.shapes;  // no option has the table itself
  return result;
}

CalibratedPart calibrate_kernels(const std::vector<KernelSample>& samples, const Gpu& start) {
  CalibratedPart part;
  part.title = "kernels";
  std::vector<KernelSample> used;
  SelectionProblem problem;
  for (const KernelSample& sample : samples) {
    if (!sample.unsupported.empty()) {
      part.omitted.push_back({sample.id, "kernels", sample.unsupported, sample.detail});
      continue;
    }
    const double before = experiments::import::predicted_us(sample, start);
    part.rows.push_back({sample.id, sample.kind, sample.measured_us, before, before, before});
    problem.measured.push_back(sample.measured_us);
    used.push_back(sample);
  }
  if (used.empty()) return part;
  problem.candidates = candidates_of(used, start);
  problem.weights = weights_by_kind(part.rows);
  for (std::size_t i = 0; i < part.rows.size(); ++i) part.rows[i].weight = problem.weights[i];
  problem.predict = [&](const std::vector<double>& values) {
    std::vector<CalibratedConstant> constants;
    for (std::size_t i = 0; i < values.size(); ++i)
      constants.push_back({problem.candidates[i].key, problem.candidates[i].start, values[i]});
    const Gpu gpu = with_constants(start, constants);
    std::vector<double> predicted;
    for (const KernelSample& sample : used) predicted.push_back(experiments::import::predicted_us(sample, gpu));
    return predicted;
  };
  const experiments::fitting::SelectedFit fit = select_and_fit(problem);
  const std::vector<double> left_out = predict_left_out(problem);
  for (std::size_t i = 0; i < used.size(); ++i) part.rows[i].left_out = left_out[i];
  take_fit(part, problem, fit);
  const Gpu calibrated = with_constants(start, part.changes());
  for (std::size_t i = 0; i < used.size(); ++i)
    part.rows[i].after = experiments::import::predicted_us(used[i], calibrated);
  return part;
}

}  // namespace manyworlds::farm
