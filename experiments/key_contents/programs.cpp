#include "experiments/key_contents/programs.hpp"

#include <fmt/ranges.h>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/edits/edited.hpp"
#include "experiments/edits/replicas.hpp"
#include "experiments/programs/program_file.hpp"

namespace manyworlds::experiments {
namespace {

std::string key_of(const core::compute::Gpu& gpu) {
  std::string key;
  for (const auto& row : core::compute::gpu_options().rows())
    std::visit([&](const auto& value) { key += fmt::format("{} ", value); }, row.get(gpu));
  return key + fmt::format("{}", gpu.speed_factor);
}

std::string key_of(const programs::ClusterGpus& gpus) {
  std::string key;
  for (const core::compute::Gpu& gpu : gpus.of_kind) key += key_of(gpu) + ";";
  return key + fmt::format("{}", fmt::join(gpus.kind_of_gpu, ","));
}

std::string key_of(const ProgramCache::Source& source) {
  return fmt::format("{}\n{}\n{}", source.path, source.replicas, source.edits_path);
}

/// Returns what the settings name, without texts.
ProgramCache::Source source_of(const Settings& settings) {
  return {settings.text(kProgramFile), settings.text(kProgramEdits),
          std::get<std::int64_t>(settings.at(kProgramReplicas))};
}

/// Returns the GPU on which times were measured; nothing if it is not given.
std::optional<core::compute::Gpu> measured_on(const Settings& settings) {
  if (!settings.has_below(kMeasuredOn)) return std::nullopt;
  core::compute::Gpu gpu;
  for (const auto& row : core::compute::gpu_options().rows())
    if (const core::OptionValue* value = settings.value(fmt::format("{}.{}", kMeasuredOn, row.info.name)))
      row.set(gpu, *value);
  return gpu;
}

}  // namespace

std::shared_ptr<const programs::TimedPrograms> ProgramCache::get(const Source& source,
                                                                 const programs::ClusterGpus& gpus,
                                                                 const core::compute::Gpu* measured_on) {
  const std::lock_guard lock(mutex_);
  const std::string what = key_of(source);
  auto& timed = timed_[fmt::format("{}\n{}\n{}", what, key_of(gpus), measured_on ? key_of(*measured_on) : "")];
  if (timed) return timed;
  auto& read = read_[source.path];
  if (!read)
    read = std::make_shared<const programs::StreamPrograms>(programs::parse_program_file(*source.text, source.path));
  auto& changed = changed_[what];
  if (!changed) {
    Changed all{*read, {}};
    for (const std::string& note : read->notes) all.account.push_back(core::line_text(note));
    for (std::string& line : edits::add_replicas(all.programs, source.replicas, source.path))
      all.account.push_back(std::move(line));
    if (source.edits_text != nullptr) {
      const edits::Edits edits = edits::parse_edits(*source.edits_text, source.edits_path);
      for (std::string& line : edits::make_edits(all.programs, edits)) all.account.push_back(std::move(line));
    }
    changed = std::make_shared<const Changed>(std::move(all));
  }
  timed = std::make_shared<const programs::TimedPrograms>(
      programs::timed_on(changed->programs, gpus, measured_on, source.path));
  return timed;
}

std::vector<std::string> ProgramCache::account(const Source& source) const {
  const std::lock_guard lock(mutex_);
  const auto changed = changed_.find(key_of(source));
  return changed == changed_.end() ? std::vector<std::string>() : changed->second->account;
}

bool ProgramCache::is_empty() const {
  const std::lock_guard lock(mutex_);
  return read_.empty();
}

const core::OptionTable<ProgramChoice>& program_options() {
  static const core::OptionTable<ProgramChoice> table{
      core::option("file", &ProgramChoice::file,
                   "programs of the ranks, as operations on streams (docs/programs.md), in place of model and strategy",
                   {}, "file"),
      core::option("replicas", &ProgramChoice::replicas,
                   "how often all ranks of the programs run: groups of data parallelism grow, others are copied",
                   {1, 1'048'576}),
      core::option("edits", &ProgramChoice::edits, "what is changed in the programs before they run (docs/edits.md)",
                   {}, "file"),
  };
  return table;
}

bool has_programs(const Settings& settings) {
  return !settings.text(kProgramFile).empty();
}

std::shared_ptr<const programs::TimedPrograms> timed_programs(const Settings& settings, const Inputs& inputs,
                                                              const programs::ClusterGpus& gpus) {
  ProgramCache::Source source = source_of(settings);
  if (source.path.empty()) return nullptr;
  const auto text_of = [&](const std::string& path) {
    const auto text = inputs.find(path);
    MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
    return &text->second;
  };
  source.text = text_of(source.path);
  if (!source.edits_path.empty()) source.edits_text = text_of(source.edits_path);
  const std::optional<core::compute::Gpu> measured = measured_on(settings);
  return inputs.programs->get(source, gpus, measured ? &*measured : nullptr);
}

std::vector<std::string> program_notes(const Settings& settings, const Inputs& inputs) {
  return has_programs(settings) ? inputs.programs->account(source_of(settings)) : std::vector<std::string>();
}

}  // namespace manyworlds::experiments
