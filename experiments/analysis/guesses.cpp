#include "experiments/analysis/guesses.hpp"

#include <string>

#include "experiments/config/config_schema.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionValue;

/// Whether the rate at `key` of a GPU is a guess. `gpus` are those of the catalog, one of which `name` may be.
bool is_guess(const OptionValue& value, const std::string& option, const std::string& name,
              const Catalog::Entries& gpus) {
  if (const auto entry = gpus.find(name); entry != gpus.end())
    if (const auto known = entry->second.values.find(option); known != entry->second.values.end())
      return known->second.certainty == "guess" && known->second.value == value;
  return value == find_option(catalog_section("gpus").options, option)->default_value;
}

}  // namespace

std::array<bool, core::compute::kKernelKinds> guessed_kinds(const Settings& settings, const Catalog& catalog) {
  std::array<bool, core::compute::kKernelKinds> guessed{};
  std::vector<std::string> paths{"cluster.gpu."};
  for (const std::string group : kNodeGroups) paths.push_back("cluster." + group + ".gpu.");
  for (const std::string& path : paths) {
    const auto named = settings.find(path + "name");
    const std::string name = named == settings.end() ? "" : std::get<std::string>(named->second);
    for (std::size_t kind = 0; kind < guessed.size(); ++kind) {
      const std::string option(core::compute::kRateOptions.at(kind));
      if (const auto value = settings.find(path + option); value != settings.end())
        guessed.at(kind) = guessed.at(kind) || is_guess(value->second, option, name, catalog.entries("gpus"));
    }
  }
  return guessed;
}

}  // namespace manyworlds::experiments
