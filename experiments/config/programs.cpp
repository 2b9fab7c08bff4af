#include "experiments/config/programs.hpp"

#include "core/base/error.hpp"
#include "experiments/programs/program_file.hpp"

namespace manyworlds::experiments {
namespace {

std::string key_of(const core::compute::Gpu& gpu) {
  std::string key;
  for (const auto& row : core::compute::gpu_options().rows())
    std::visit([&](const auto& value) { key += fmt::format("{} ", value); }, row.get(gpu));
  return key;
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

std::shared_ptr<const programs::TimedPrograms> ProgramCache::get(const std::string& path, const std::string& text,
                                                                 const core::compute::Gpu& gpu,
                                                                 const core::compute::Gpu* measured_on) {
  const std::lock_guard lock(mutex_);
  auto& timed = timed_[fmt::format("{}\n{}\n{}", path, key_of(gpu), measured_on ? key_of(*measured_on) : "")];
  if (timed) return timed;
  auto& read = read_[path];
  if (!read) read = std::make_shared<const programs::StreamPrograms>(programs::parse_program_file(text, path));
  timed = std::make_shared<const programs::TimedPrograms>(programs::timed_on(*read, gpu, measured_on, path));
  return timed;
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
  };
  return table;
}

bool has_programs(const Settings& settings) {
  return !settings.text(kProgramFile).empty();
}

std::shared_ptr<const programs::TimedPrograms> timed_programs(const Settings& settings, const Inputs& inputs,
                                                              const core::compute::Gpu& gpu) {
  const std::string path = settings.text(kProgramFile);
  if (path.empty()) return nullptr;
  const auto text = inputs.find(path);
  MANYWORLDS_CHECK(text != inputs.end(), "the sweep does not hold '{}'", path);
  const std::optional<core::compute::Gpu> source = measured_on(settings);
  return inputs.programs->get(path, text->second, gpu, source ? &*source : nullptr);
}

}  // namespace manyworlds::experiments
