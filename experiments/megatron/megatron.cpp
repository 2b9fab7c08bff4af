#include "experiments/megatron/megatron.hpp"

#include <algorithm>
#include <array>

#include "experiments/megatron/reader.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::array<const char*, 4> kScriptEndings{".sh", ".bash", ".slurm", ".sbatch"};

bool has_argument(const JobArguments& arguments, const std::string& name) {
  return std::any_of(arguments.arguments.begin(), arguments.arguments.end(),
                     [&](const Argument& one) { return one.name == name; });
}

/// Returns the arguments of a model that others depend on: how its layers are divided, and whether it has experts. They
/// have no place: what follows from them is replaced by the model's own settings.
std::vector<Argument> arguments_of_model(const std::vector<JobSetting>& model) {
  constexpr std::pair<const char*, const char*> kSizes[] = {
      {"model.layers", "num-layers"},   {"model.hidden", "hidden-size"},  {"model.heads", "num-attention-heads"},
      {"model.sequence", "seq-length"}, {"model.experts", "num-experts"}, {"model.vocabulary", "padded-vocab-size"}};
  std::vector<Argument> arguments;
  for (const auto& [key, name] : kSizes)
    if (const std::string value = value_in(model, key); !value.empty() && value != "0")
      arguments.push_back({name, {{value, {}}}, {}});
  if (value_in(model, "model.activation") == "swiglu") arguments.push_back({"swiglu", {}, {}});
  if (value_in(model, "model.attention") == "latent") arguments.push_back({"multi-latent-attention", {}, {}});
  return arguments;
}

}  // namespace

bool is_script(const JobFile& file) {
  return file.text.starts_with("#!") ||
         std::find(kScriptEndings.begin(), kScriptEndings.end(), file.ending()) != kScriptEndings.end();
}

bool is_megatron_log(const JobFile& file) {
  return has_argument_dump(file.text);
}

bool is_megatron_config(const JobFile& file) {
  return (file.ending() == ".yaml" || file.ending() == ".yml") && file.text.find("MODEL_ARGS") != std::string::npos;
}

Job read_megatron_log(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_argument_dump(file.text, file.path), options, catalog);
}

Job read_megatron_config(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_model_config(file.text, file.path), options, catalog);
}

Job read_megatron_script(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return megatron_job(read_script(file.text, file.path, options.environment), options, catalog);
}

Job megatron_job(const JobArguments& arguments, const JobOptions& options, const Catalog& catalog) {
  if (arguments.model.empty()) return MegatronReader(arguments, options, catalog).read();
  JobArguments all = arguments;
  for (Argument& one : arguments_of_model(arguments.model))
    if (!has_argument(arguments, one.name)) all.arguments.push_back(std::move(one));
  Job job = MegatronReader(all, options, catalog).read();
  // Layers of experts alone follow from no argument, which are read without its place.
  if (has_argument(arguments, "moe-layer-freq") && value_in(job.settings, "model.dense_layers").empty())
    job.settings.push_back({"model.dense_layers", "0", arguments.arguments.front().place});
  put_model(job, arguments.model);
  return job;
}

}  // namespace manyworlds::experiments::jobs
