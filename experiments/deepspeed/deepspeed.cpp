// A DeepSpeed configuration with a model named beside it, as the trainers of other libraries use it: data parallelism
// alone, over all GPUs.
#include "experiments/deepspeed/deepspeed.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "experiments/deepspeed/ds_config.hpp"
#include "experiments/jobs/adapter_config.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Adds the settings of a model of the catalog, of a config.json, or of an adapter_config.json and its model; returns
/// its width.
std::int64_t add_model(Job& job, const JobOptions& options, const Catalog& catalog) {
  if (options.model.empty())
    throw core::InputError("a DeepSpeed configuration has no model; give --model NAME or config.json", job.file);
  AdapterConfig adapter{{options.model, {}}, {}};
  if (is_adapter_config(options.model)) adapter = read_adapter_config(options.model, job);
  import::Node at;
  at.file = adapter.base.place.file ? adapter.base.place.file : std::make_shared<const std::string>("--model");
  at.line = adapter.base.place.line;
  const auto& [name, entry] = catalog.find_named("models", adapter.base.name, at);
  std::int64_t hidden = 0;
  for (const auto& [option, value] : entry.values) {
    job.settings.push_back({"model." + option, import::value_text(value.value), {}});
    if (option == "hidden") hidden = std::get<std::int64_t>(value.value);
  }
  if (entry.values.count("sequence") == 0 && entry.assumed_sequence > 0) {
    job.settings.push_back({"model.sequence", std::to_string(entry.assumed_sequence), {}});
    job.notes.push_back(fmt::format("assumed: samples of {} tokens; --set model.sequence=N", entry.assumed_sequence));
  }
  if (!entry.note.empty()) job.notes.push_back(fmt::format("{}: {}", name, entry.note));
  if (const auto experts = entry.values.find("experts");
      experts != entry.values.end() && std::get<std::int64_t>(experts->second.value) > 0)
    throw core::InputError(fmt::format("{} has experts, which are not modelled under DeepSpeed", name), "--model");
  put_pairs(job, adapter.pairs, ModuleNames::hugging_face);
  return hidden;
}

}  // namespace

bool is_deepspeed_config(const JobFile& file) {
  if (file.ending() != ".json") return false;
  for (const char* key : {"\"train_batch_size\"", "\"train_micro_batch_size_per_gpu\"", "\"zero_optimization\""})
    if (file.text.find(key) != std::string::npos) return true;
  return false;
}

Job read_deepspeed_config(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  Job job;
  job.kind = "a configuration of DeepSpeed";
  job.file = file.path;
  job.stack = "deepspeed-2023";
  job.gpus = options.gpus;
  const deepspeed::DsConfig config(file.text, file.path, 1, job);
  const deepspeed::Batch batch = config.batch_of(options.gpus);
  const std::int64_t hidden = add_model(job, options, catalog);
  const auto set = [&](const std::string& key, std::int64_t value, const char* because) {
    job.settings.push_back({key, std::to_string(value), config.keys().place(because)});
  };
  for (const char* size : {"strategy.tp", "strategy.pp", "strategy.cp"}) set(size, 1, "");
  if (batch.micro > 0) set("strategy.micro_batch", batch.micro, "train_micro_batch_size_per_gpu");
  if (batch.global > 0) set("strategy.global_batch", batch.global, "train_batch_size");
  config.add_settings(job, options.gpus, hidden);
  job.settings.push_back({"strategy.recompute", "none", {}});
  job.notes.push_back(
      "assumed: every rank has the whole model, attention is FlashAttention 2, and nothing is "
      "recomputed, as the file does not say; --set strategy.recompute=full");
  job.settings.push_back({"strategy.stack.attention", "flash2", {}});
  return job;
}

}  // namespace manyworlds::experiments::jobs
