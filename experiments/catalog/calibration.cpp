#include "experiments/catalog/calibration.hpp"

#include <algorithm>
#include <optional>

namespace manyworlds::experiments {
namespace {

constexpr const char* kGpu = "cluster.gpu.";
constexpr const char* kVersion = "collectives.version";
constexpr const char* kDispatcher = "strategy.stack.dispatcher";
constexpr const char* kCalibrationMark = "library_launch_us";  // every entry of NCCL has it

double value_of(const Settings& settings, const std::string& name) {
  const auto found = settings.find(kGpu + name);
  return found == settings.end() ? 0 : std::get<double>(found->second);
}

double value_of(const CatalogEntry& entry, const std::string& name) {
  const auto found = entry.values.find(name);
  return found == entry.values.end() ? 0 : std::get<double>(found->second.value);
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the chip whose GPUs lend each other constants; nothing if there is no other GPU of it.
std::string same_chip_as(const Catalog& catalog, const std::string& gpu) {
  const auto known = catalog.entries("gpus").find(gpu);
  return known != catalog.entries("gpus").end() && known->second.same_chip ? known->second.constants_of : std::string();
}

/// Returns how the GPUs of an entry's node are joined (`scale_up`); by switches where it does not say.
std::string shape_of(const CatalogEntry& gpu) {
  const auto found = gpu.values.find("scale_up");
  return found == gpu.values.end() ? "nvswitch" : std::get<std::string>(found->second.value);
}

struct Lender {
  std::string gpu;  // on which the constants were measured
  const CatalogEntry* library = nullptr;
  double speed_ratio = 1;   // link rate of the borrower over the lender's
  bool borrowed = true;     // false: they were measured on this GPU
  bool same_shape = false;  // the GPUs of a node are joined in the same way

  double distance() const { return std::max(speed_ratio, 1 / speed_ratio); }
  bool is_nearer_than(const Lender& other) const {
    return same_shape != other.same_shape ? same_shape : distance() < other.distance();
  }
};

/// Returns the library's constants for a GPU: those measured on it, with this version if possible; otherwise on the
/// same chip; otherwise on the GPU whose scale-up rate is nearest, the first by name if several are. GPUs that are
/// joined in the same way, by switches or by a mesh, come before all others.
std::optional<Lender> find_lender(const Catalog& catalog, const std::string& version, const std::string& gpu,
                                  double speed, const std::string& shape) {
  const std::string same_chip = same_chip_as(catalog, gpu);
  std::optional<Lender> own, chip, nearest, own_of_another_version;
  for (const auto& [name, library] : catalog.entries("libraries")) {
    if (value_of(library, kCalibrationMark) <= 0) continue;
    if (!contains(library.versions, version)) {
      if (contains(library.gpus, gpu)) own_of_another_version = Lender{gpu, &library, 1, false};
      continue;
    }
    for (const std::string& owner : library.gpus) {
      const CatalogEntry& entry = catalog.entries("gpus").at(owner);
      const double lender_speed = value_of(entry, "scale_up_gb_per_s");
      const double ratio = speed > 0 && lender_speed > 0 ? speed / lender_speed : 1;
      const Lender lender{owner, &library, ratio, true, shape_of(entry) == shape};
      if (owner == gpu) own = Lender{owner, &library, 1, false};
      if (owner == same_chip) chip = lender;
      if (!nearest || lender.is_nearer_than(*nearest)) nearest = lender;
    }
  }
  for (const auto& found : {own, chip, own_of_another_version})
    if (found) return found;
  return nearest;
}

bool is_token_figure(const core::OptionInfo& info) {
  return info.name.starts_with(core::collective::kTokenPrefix);
}

/// Fills in what is absent, but for the exchange of tokens; returns whether anything was.
bool fill_in(Settings& settings, const Lender& lender) {
  const std::string shape = settings.text(std::string(kGpu) + "scale_up");
  bool filled = false;
  for (const auto& row : core::collective::calibration_options().rows()) {
    const core::OptionInfo& info = row.info;
    const auto lent = lender.library->values.find(info.name);
    if (lent == lender.library->values.end() || is_token_figure(info)) continue;
    if (info.kind != core::OptionInfo::Kind::real) {
      if (settings.text(kGpu + info.name) == std::get<std::string>(info.default_value) ||
          settings.count(kGpu + info.name) == 0)
        settings.set(kGpu + info.name, lent->second.value);
      continue;
    }
    if (value_of(settings, info.name) > 0) continue;
    if (lender.borrowed && info.name.starts_with("library_in_switch_") && shape != "nvswitch") continue;
    const double ratio = info.unit == "GB/s" ? lender.speed_ratio : 1;
    settings.set(kGpu + info.name, std::get<double>(lent->second.value) * ratio);
    filled = true;
  }
  return filled;
}

/// Returns the figures of a set of kernels, which do not depend on NCCL's version: those measured on this GPU, on the
/// same chip, or on the GPU whose scale-up rate is nearest.
std::optional<Lender> find_token_lender(const Catalog& catalog, const std::string& mark, const std::string& gpu,
                                        double speed) {
  std::optional<Lender> nearest;
  const std::string same_chip = same_chip_as(catalog, gpu);
  const auto rank = [&](const Lender& lender) {
    if (lender.gpu == gpu) return 0.0;
    if (lender.gpu == same_chip) return 0.5;
    return std::max(lender.speed_ratio, 1 / lender.speed_ratio);
  };
  for (const auto& [name, library] : catalog.entries("libraries")) {
    if (value_of(library, mark) <= 0) continue;
    for (const std::string& owner : library.gpus) {
      const double owner_speed = value_of(catalog.entries("gpus").at(owner), "scale_up_gb_per_s");
      const Lender lender{owner, &library, speed > 0 && owner_speed > 0 ? speed / owner_speed : 1, owner != gpu};
      if (!nearest || rank(lender) < rank(*nearest)) nearest = lender;
    }
  }
  return nearest;
}

/// Fills in the figures of one set of kernels as they were measured: they are those of compute units, which do not
/// change with the links. Only rates in GB/s are a share of these.
void fill_in_tokens(Settings& settings, const Catalog& catalog, const core::collective::TokenSetInfo& set) {
  const std::string mark = core::collective::figure_name(set, false, set.figures.front());
  const auto lender = find_token_lender(catalog, mark, settings.text(std::string(kGpu) + "name"),
                                        value_of(settings, "scale_up_gb_per_s"));
  if (!lender) return;
  for (const bool combine : {false, true})
    for (const core::collective::TokenFigureInfo& figure : set.figures) {
      const std::string name = core::collective::figure_name(set, combine, figure);
      const double ratio = std::string_view(figure.unit) == "GB/s" ? lender->speed_ratio : 1;
      const double lent = value_of(*lender->library, name);
      if (lent > 0 && value_of(settings, name) <= 0) settings.set(kGpu + name, lent * ratio);
    }
  if (lender->borrowed) settings.set(kGpu + core::collective::from_name(set), lender->gpu);
}

}  // namespace

void borrow_token_figures(Settings& settings, const Catalog& catalog, core::collective::TokenKernels kernels,
                          bool over_nodes) {
  for (const core::collective::TokenSet set : core::collective::token_sets_of(kernels, over_nodes))
    fill_in_tokens(settings, catalog, core::collective::token_sets().at(static_cast<std::size_t>(set)));
}

std::string borrow_calibration(Settings& settings, const Catalog& catalog) {
  if (settings.text("collectives.protocol") != "calibrated") return {};
  const std::string version =
      settings.count(kVersion) > 0 ? settings.text(kVersion) : core::collective::version_names().back();
  const auto lender =
      find_lender(catalog, version, settings.text(std::string(kGpu) + "name"), value_of(settings, "scale_up_gb_per_s"),
                  settings.text(std::string(kGpu) + "scale_up"));
  if (!lender) return value_of(settings, kCalibrationMark) > 0 ? std::string() : std::string(kGpu) + kCalibrationMark;
  if (fill_in(settings, *lender) && lender->borrowed) settings.set(std::string(kGpu) + "library_from", lender->gpu);
  if (settings.text(kDispatcher) == "deepep")
    borrow_token_figures(settings, catalog, core::collective::TokenKernels::deepep, true);
  return {};
}

std::string CalibrationBorrower::borrow(Settings& settings, const Catalog& catalog) {
  const auto known = [&] {
    return settings.same_below(kGpu, before_) && settings.same_below("collectives.", before_) &&
           settings.text(kDispatcher) == before_.text(kDispatcher);
  };
  if (is_known_ && known()) {
    settings.copy_below(kGpu, after_);
    return {};
  }
  before_ = settings;
  std::string missing = borrow_calibration(settings, catalog);
  after_ = settings;
  is_known_ = missing.empty();
  return missing;
}

std::string describe_calibration(const core::collective::Library& library) {
  if (library.protocol != core::collective::Protocol::calibrated) return "no";
  const core::collective::Calibration& calibration = library.calibration;
  std::string text = calibration.from.empty() ? "yes" : "as " + calibration.from + ", scaled by link speed";
  for (std::size_t set = 0; set < calibration.tokens.size(); ++set)
    if (const std::string& from = calibration.tokens.at(set).from; !from.empty())
      text += fmt::format("; {} as on {}, a guess", core::collective::token_sets().at(set).help, from);
  return text;
}

}  // namespace manyworlds::experiments
