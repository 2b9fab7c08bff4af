#include "experiments/settings/calibration.hpp"

#include <algorithm>
#include <optional>

namespace manyworlds::experiments {
namespace {

constexpr const char* kGpu = "cluster.gpu.";
constexpr const char* kMark = "library_launch_us";  // who has it is calibrated
constexpr const char* kFrom = "library_from";

double figure_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(kGpu + name);
  return found == settings.end() ? 0 : std::get<double>(found->second);
}

double figure_of(const CatalogEntry& gpu, const std::string& name) {
  const auto found = gpu.figures.find(name);
  return found == gpu.figures.end() ? 0 : std::get<double>(found->second.value);
}

bool of_switches(const std::string& name) {
  return name.starts_with("library_in_switch_");
}

/// Figures that a calibrated GPU need not have.
bool may_lack(const std::string& name) {
  return of_switches(name) || name.starts_with("library_dispatch_");
}

struct Lender {
  std::string name;
  const CatalogEntry* gpu = nullptr;
  double speed_ratio = 1;  // of the borrower's link to its own
};

/// The calibrated GPU whose scale-up link is nearest in speed; the first by name of equal ones.
std::optional<Lender> nearest(const Catalog& catalog, double speed) {
  std::optional<Lender> best;
  const auto distance = [](double ratio) { return std::max(ratio, 1 / ratio); };
  for (const auto& [name, gpu] : catalog.of("gpus")) {
    const double its = figure_of(gpu, "scale_up_gb_per_s");
    if (figure_of(gpu, kMark) <= 0 || its <= 0) continue;
    const double ratio = speed > 0 ? speed / its : 1;
    if (!best || distance(ratio) < distance(best->speed_ratio)) best = Lender{name, &gpu, ratio};
  }
  return best;
}

}  // namespace

std::string lend_calibration(Settings& settings, const Catalog& catalog) {
  const auto protocol = settings.find("collectives.protocol");
  if (protocol == settings.end() || std::get<std::string>(protocol->second) != "calibrated") return {};
  const bool own = figure_of(settings, kMark) > 0;
  const auto lender = own ? std::nullopt : nearest(catalog, figure_of(settings, "scale_up_gb_per_s"));
  if (!own && !lender) return std::string(kGpu) + kMark;
  const auto shape = settings.find("cluster.gpu.scale_up");
  const bool switches = shape != settings.end() && std::get<std::string>(shape->second) == "nvswitch";
  for (const core::OptionInfo& info : core::collective::calibration_options().infos()) {
    if (info.kind != core::OptionInfo::Kind::real || figure_of(settings, info.name) > 0) continue;
    if (own && !may_lack(info.name)) return kGpu + info.name;
    if (own || (of_switches(info.name) && !switches)) continue;
    const double ratio = info.unit == "GB/s" ? lender->speed_ratio : 1;
    settings[kGpu + info.name] = figure_of(*lender->gpu, info.name) * ratio;
  }
  if (!own) settings[std::string(kGpu) + kFrom] = lender->name;
  return {};
}

bool is_library_figure(const std::string& option) {
  return option.starts_with("library_");
}

std::string describe_calibration(const core::collective::Library& library) {
  if (library.protocol != core::collective::Protocol::calibrated) return "no";
  return library.calibration.from.empty() ? "yes" : "as " + library.calibration.from + ", scaled by link speed";
}

}  // namespace manyworlds::experiments
