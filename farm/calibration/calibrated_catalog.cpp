#include "farm/calibration/calibrated_catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/catalog/calibration.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::farm {
namespace {

using experiments::SourcedValue;
using Values = std::map<std::string, SourcedValue>;

/// Returns a text in the double quotes of YAML and JSON, of at most as many bytes as a catalog's line may have.
std::string quoted(std::string text) {
  constexpr std::size_t kMaxBytes = 900;
  if (text.size() > kMaxBytes) {
    text.resize(kMaxBytes);
    text.resize(experiments::import::valid_text_length(text));
    text += " …";
  }
  return nlohmann::json(text).dump();
}

std::string value_text(const core::OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  return experiments::import::value_text(value);
}

std::string values_text(const Values& values) {
  std::string text;
  for (const auto& [key, sourced] : values)
    text += fmt::format("      {}: {{value: {}, {}certainty: {}, source: {}}}\n", key, value_text(sourced.value),
                        sourced.range ? fmt::format("range: [{}, {}], ", sourced.range->low, sourced.range->high) : "",
                        sourced.certainty, quoted(sourced.source));
  return text;
}

void replace(Values& values, const CalibratedPart& part, const std::vector<std::string>& files) {
  for (const CalibratedConstant& one : part.changes())
    values[one.key] = {
        one.after,
        fmt::format("fitted by manyworlds calibrate to {} rows of {}", part.fitted_rows(), fmt::join(files, ", ")),
        "fitted",
        {}};
}

/// Returns the library's values with which the rows were predicted, each with its source.
Values library_values(const CalibratedMachine& machine, const experiments::Catalog& catalog) {
  const auto row = std::find_if(machine.files.collectives.begin(), machine.files.collectives.end(),
                                [](const auto& one) { return one.unsupported.empty(); });
  const experiments::Settings& settings = row->settings;
  const auto from = settings.find("cluster.gpu.library_from");
  std::string lender = from == settings.end() ? std::string() : std::get<std::string>(from->second);
  if (lender.empty()) lender = machine.base;
  const std::string version = std::get<std::string>(settings.at("collectives.version"));
  const experiments::CatalogEntry* library = nullptr;
  for (const auto& [name, entry] : catalog.entries("libraries"))
    if (std::count(entry.gpus.begin(), entry.gpus.end(), lender) > 0 && entry.values.count("library_launch_us") > 0 &&
        (library == nullptr || std::count(entry.versions.begin(), entry.versions.end(), version) > 0))
      library = &entry;
  Values values;
  for (const core::OptionInfo& info : core::collective::calibration_options().infos()) {
    const auto set = settings.find("cluster.gpu." + info.name);
    if (info.name == "library_from" || set == settings.end() || set->second == info.default_value) continue;
    values[info.name] = {set->second, fmt::format("as {}, by the rate of its links", lender), "guess", {}};
    if (library == nullptr) continue;
    const auto known = library->values.find(info.name);
    if (known != library->values.end() && known->second.value == set->second) values[info.name] = known->second;
  }
  return values;
}

std::string version_of(const CalibratedMachine& machine) {
  for (const auto& row : machine.files.collectives)
    if (row.unsupported.empty()) return std::get<std::string>(row.settings.at("collectives.version"));
  return {};
}

}  // namespace

std::string library_name(const CalibratedMachine& machine) {
  return "nccl-" + machine.name;
}

std::string catalog_file(const CalibratedMachine& machine, const experiments::Catalog& catalog) {
  const experiments::CatalogEntry& base = catalog.entries("gpus").at(machine.base);
  Values values = base.values;
  replace(values, machine.kernels, machine.files.kernel_files);
  replace(values, machine.steps, machine.files.step_files);
  std::string text =
      fmt::format("# Written by manyworlds calibrate --gpu {}; read with --catalog.\ngpus:\n  {}:\n    help: {}\n",
                  machine.base, machine.name, quoted(base.help + ", calibrated"));
  text += fmt::format("    constants_of: {}\n    same_chip: true\n    values:\n{}", machine.base, values_text(values));
  if (machine.collectives.rows.empty()) return text;
  Values library = library_values(machine, catalog);
  replace(library, machine.collectives, machine.files.collective_files);
  text += fmt::format("libraries:\n  {}:\n    help: {}\n    versions: [{}]\n    gpus: [{}]\n    values:\n{}",
                      library_name(machine), quoted("NCCL on " + machine.name), quoted(version_of(machine)),
                      machine.name, values_text(library));
  return text;
}

}  // namespace manyworlds::farm
