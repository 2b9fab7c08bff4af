#include "experiments/frameworks/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/bridge/bridge.hpp"
#include "experiments/calculon/calculon.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/megatron/megatron.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/primus/primus.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/torchtitan.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Files with these endings are no scripts, whatever stands in them.
constexpr std::array<const char*, 5> kDataEndings{".yaml", ".yml", ".json", ".toml", ".py"};

/// Returns every kind of files by framework, for messages.
std::string known_files() {
  std::vector<std::pair<std::string, std::string>> by_framework;
  for (const JobKind& one : job_kinds()) {
    const auto found = std::find_if(by_framework.begin(), by_framework.end(),
                                    [&](const auto& other) { return other.first == one.framework; });
    if (found == by_framework.end())
      by_framework.emplace_back(one.framework, one.files);
    else
      found->second += ", " + one.files;
  }
  std::string text;
  for (const auto& [framework, files] : by_framework)
    text += fmt::format("{}of {}: {}", text.empty() ? "" : "; ", framework, files);
  return text;
}

/// Reads a file of which nothing is known as a launch script; an error says what is read.
Job read_unknown(const JobFile& file, const JobOptions& options, const Catalog& catalog) try {
  return read_megatron_script(file, options, catalog);
} catch (const core::InputError& error) {
  throw core::InputError(
      fmt::format("no job is known of its kind ({}); read as a script: {}", known_files(), error.what()), file.path);
}

Job read_by_kind(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  const auto& kinds = job_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const JobKind& one) { return one.is_one(file); });
  if (kind == kinds.end()) {
    const std::string ending = file.ending();
    if (std::find(kDataEndings.begin(), kDataEndings.end(), ending) == kDataEndings.end())
      return read_unknown(file, options, catalog);
    throw core::InputError(fmt::format("no job is known of its kind; read are {}", known_files()), file.path);
  }
  if (!options.environment.empty() && !kind->reads_environment)
    throw core::InputError("the file is no script, which alone reads --env", file.path);
  if (!options.model.empty() && !kind->names_model)
    throw core::InputError("the file describes its model; leave --model out", file.path);
  Job job = kind->read(file, options, catalog);
  job.framework = kind->framework;
  return job;
}

}  // namespace

const std::vector<JobKind>& job_kinds() {
  static const std::vector<JobKind> kinds{
      {"Megatron-LM", "a log with its arguments", is_megatron_log, read_megatron_log},
      {"Megatron-LM", "a model_config.yaml with MODEL_ARGS", is_megatron_config, read_megatron_config},
      {"Megatron-Bridge", "a launch script of run_recipe.py", is_bridge_script, read_bridge_script, true},
      {"Primus", "an experiment's YAML file", is_primus, read_primus, true, true},
      {"NeMo", "a config_*.sh of MLPerf Training", is_mlperf_config, read_mlperf_config, true, true},
      {"NeMo", "a system of MLPerf", is_mlperf_system, read_mlperf_system, false, true},
      {"NeMo", "a YAML file of NeMo Automodel", is_automodel, read_automodel, false, true},
      {"NeMo", "a YAML file of NeMo or Megatron-Bridge", is_nemo, read_nemo, true, true},
      {"torchtitan", "a .toml", is_torchtitan_toml, read_torchtitan_toml},
      {"torchtitan", "a function of config_registry.py (FILE.py:NAME)", is_torchtitan_registry,
       read_torchtitan_registry},
      {"Calculon", "an execution's JSON with --model", is_calculon_execution, read_calculon_execution, false, true},
      {"DeepSpeed", "a ds_config.json with --model", is_deepspeed_config, read_deepspeed_config, false, true},
      {"DeepSpeed", "a launch script of Megatron-DeepSpeed", is_deepspeed_script, read_deepspeed_script, true},
      {"Megatron-LM", "a launch script", is_script, read_megatron_script, true},
  };
  return kinds;
}

Job read_job(const std::string& path, const JobOptions& options, const Catalog& catalog) {
  // Behind FILE.py:NAME stands which function of a configuration it is.
  const std::size_t colon = path.rfind(".py:");
  const std::string name = colon == std::string::npos ? path : path.substr(0, colon + 3);
  const std::string member = colon == std::string::npos ? "" : path.substr(colon + 4);
  return read_job(JobFile{name, import::read_text(name), member}, options, catalog);
}

Job read_job(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  import::check_text(file.text, file.path);
  Job job = read_by_kind(file, options, catalog);
  job.file = file.path;
  job.name = file.member.empty() ? std::filesystem::path(file.path).stem().string() : file.member;
  return job;
}

}  // namespace manyworlds::experiments::jobs
