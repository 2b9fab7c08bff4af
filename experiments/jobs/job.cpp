#include "experiments/jobs/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Reads a file as a script; where its first line and its name say nothing of one, an error says what is read.
JobArguments read_named_script(const std::string& text, const std::string& path,
                               const std::map<std::string, std::string>& environment) try {
  return read_script(text, path, environment);
} catch (const core::InputError& error) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (text.starts_with("#!") || ending == ".sh" || ending == ".bash" || ending == ".slurm" || ending == ".sbatch")
    throw;
  throw core::InputError(
      fmt::format("no launch script, log or model_config.yaml of Megatron-LM; read as a script: {}", error.what()),
      path);
}

JobArguments read_arguments(const std::string& text, const std::string& path, const JobOptions& options) {
  const std::string ending = std::filesystem::path(path).extension().string();
  const bool yaml = ending == ".yaml" || ending == ".yml";
  JobArguments arguments;
  if (has_argument_dump(text))
    arguments = read_argument_dump(text, path);
  else if (yaml && text.find("MODEL_ARGS") != std::string::npos)
    arguments = read_model_config(text, path);
  else if (yaml || ending == ".json" || ending == ".toml" || ending == ".py")
    throw core::InputError(
        "read are Megatron-LM's arguments only: a launch script, the arguments that a log prints, or a "
        "model_config.yaml with MODEL_ARGS",
        path);
  else
    return read_named_script(text, path, options.environment);
  if (!options.environment.empty()) throw core::InputError("the file is no script, which alone reads --env", path);
  return arguments;
}

/// Returns a value as YAML: lists as they are, others quoted if they are no plain words.
std::string yaml_value(const std::string& value) {
  const bool plain = value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+") ==
                     std::string::npos;
  if (plain || value.starts_with('[')) return value;
  std::string quoted = "'";
  for (const char c : value) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Job read_job(const std::string& path, const JobOptions& options, const Catalog& catalog) {
  const std::string text = import::read_text(path);
  import::check_text(text, path);
  Job job = megatron_job(read_arguments(text, path, options), options, catalog);
  job.file = path;
  job.name = std::filesystem::path(path).stem().string();
  return job;
}

std::string document_of(const Job& job, const std::string& cluster) {
  std::vector<std::string> lines(1);
  std::string last;
  for (const JobSetting& one : job.settings) {
    const std::string entry = fmt::format("{}: {}, ", one.key, yaml_value(one.value));
    if (!one.place.file || *one.place.file != job.file || one.place.line < 1) {
      last += entry;
      continue;
    }
    const auto line = static_cast<std::size_t>(one.place.line);
    lines.resize(std::max(lines.size(), line));
    lines[line - 1] += entry;
  }
  std::string text = fmt::format("{{name: {}, base: {{cluster: {}, strategy: {{stack: {{like: {}}}}}, ",
                                 yaml_value(job.name), cluster, job.stack);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
  return text + last + "}}\n";
}

std::vector<std::string> explanation(const Job& job) {
  std::vector<std::string> lines{fmt::format("{}: {}; {} of its arguments mapped, {} without effect on time and memory",
                                             job.file, job.kind, job.mapped, job.irrelevant)};
  for (const std::string& note : job.notes) lines.push_back(note);
  return lines;
}

}  // namespace manyworlds::experiments::jobs
