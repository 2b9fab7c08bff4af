#include "experiments/settings/calibration.hpp"

#include <algorithm>
#include <optional>

namespace manyworlds::experiments {
namespace {

constexpr const char* kGpu = "cluster.gpu.";
constexpr const char* kCalibrationMark = "library_launch_us";  // only calibrated GPUs have it
constexpr const char* kLibraryFrom = "library_from";

double value_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(kGpu + name);
  return found == settings.end() ? 0 : std::get<double>(found->second);
}

double value_of(const CatalogEntry& gpu, const std::string& name) {
  const auto found = gpu.values.find(name);
  return found == gpu.values.end() ? 0 : std::get<double>(found->second.value);
}

bool is_in_switch_constant(const std::string& name) {
  return name.starts_with("library_in_switch_");
}

/// Returns whether a calibrated GPU may lack this constant.
bool is_optional_constant(const std::string& name) {
  return is_in_switch_constant(name) || name.starts_with("library_dispatch_");
}

struct CalibratedGpu {
  std::string name;
  const CatalogEntry* gpu = nullptr;
  double speed_ratio = 1;  // link rate of the borrower over the lender's
};

/// Returns the calibrated GPU whose scale-up rate is nearest; the first by name if several are.
std::optional<CalibratedGpu> nearest_calibrated(const Catalog& catalog, double speed) {
  std::optional<CalibratedGpu> best;
  const auto distance = [](double ratio) { return std::max(ratio, 1 / ratio); };
  for (const auto& [name, gpu] : catalog.of("gpus")) {
    const double candidate_speed = value_of(gpu, "scale_up_gb_per_s");
    if (value_of(gpu, kCalibrationMark) <= 0 || candidate_speed <= 0) continue;
    const double ratio = speed > 0 ? speed / candidate_speed : 1;
    if (!best || distance(ratio) < distance(best->speed_ratio)) best = CalibratedGpu{name, &gpu, ratio};
  }
  return best;
}

}  // namespace

std::string borrow_calibration(Settings& settings, const Catalog& catalog) {
  const auto protocol = settings.find("collectives.protocol");
  if (protocol == settings.end() || std::get<std::string>(protocol->second) != "calibrated") return {};
  const bool is_calibrated = value_of(settings, kCalibrationMark) > 0;
  const auto lender =
      is_calibrated ? std::nullopt : nearest_calibrated(catalog, value_of(settings, "scale_up_gb_per_s"));
  if (!is_calibrated && !lender) return std::string(kGpu) + kCalibrationMark;
  const auto shape = settings.find("cluster.gpu.scale_up");
  const bool has_in_switch_reduction = shape != settings.end() && std::get<std::string>(shape->second) == "nvswitch";
  for (const core::OptionInfo& info : core::collective::calibration_options().infos()) {
    if (info.kind != core::OptionInfo::Kind::real || value_of(settings, info.name) > 0) continue;
    if (is_calibrated && !is_optional_constant(info.name)) return kGpu + info.name;
    if (is_calibrated || (is_in_switch_constant(info.name) && !has_in_switch_reduction)) continue;
    const double ratio = info.unit == "GB/s" ? lender->speed_ratio : 1;
    settings[kGpu + info.name] = value_of(*lender->gpu, info.name) * ratio;
  }
  if (!is_calibrated) settings[std::string(kGpu) + kLibraryFrom] = lender->name;
  return {};
}

bool is_library_constant(const std::string& option) {
  return option.starts_with("library_");
}

std::string describe_calibration(const core::collective::Library& library) {
  if (library.protocol != core::collective::Protocol::calibrated) return "no";
  return library.calibration.from.empty() ? "yes" : "as " + library.calibration.from + ", scaled by link speed";
}

}  // namespace manyworlds::experiments
