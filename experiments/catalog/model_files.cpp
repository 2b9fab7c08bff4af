#include "experiments/catalog/model_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "experiments/models/read_model_config.hpp"

namespace manyworlds::experiments {

const std::pair<const std::string, CatalogEntry>& ModelFiles::read(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(path); found != entries_.end()) return found->second;
  const models::ModelConfig config = models::read_model_config(path);
  CatalogEntry entry;
  entry.help =
      fmt::format("{}, read from {}", config.architecture.empty() ? config.family : config.architecture, config.file);
  for (const models::ConfigValue& value : config.values)
    entry.values[value.option] = {value.value, fmt::format("{}: {}", config.file, value.key), "read", {}};
  if (const std::string carried = models::carried_over("", models::carried_text(config.carried)); !carried.empty())
    entry.values["carried"] = {carried, config.file, "read", {}};
  entry.assumed_sequence = config.sequence;
  entry.note = models::summary(config);
  return entries_.emplace(path, std::pair<const std::string, CatalogEntry>(config.name, std::move(entry)))
      .first->second;
}

std::string model_file(const std::string& name, const import::Node& at) {
  namespace fs = std::filesystem;
  if (name.empty()) return "";
  const bool typed = !at.file || at.file->starts_with("--");
  const std::string path = typed ? name : (fs::path(*at.file).parent_path() / name).string();
  const std::string file = models::file_of_path(path);
  std::error_code code;
  const bool exists = fs::exists(file, code);
  if (!exists && !models::is_config_path(name)) return "";
  if (!exists) at.fail(fmt::format("model '{}': {}: no such file or folder", name, file));
  if (fs::is_directory(file, code) && !fs::exists(fs::path(file) / "config.json", code))
    at.fail(fmt::format("model '{}': the folder {} has no config.json", name, file));
  return path;
}

}  // namespace manyworlds::experiments
