// Reads the config_*.sh of MLPerf Training: the variables that they and the files that they source leave behind.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/megatron/megatron.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/nemo/settings.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/shell/interpreter.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr std::int64_t kMaxRanks = 1 << 20;

/// Files that configurations source, as far as they decide the step: what they set in NVIDIA's entries of v5.1, where
/// they are the same for each system.
struct WellKnownFile {
  std::string_view name, text;
};
constexpr std::array<WellKnownFile, 6> kWellKnown{{
    {"config_common_405b.sh", "export MODEL_SIZE=405b\n"},
    {"config_common_8b.sh",
     "export MODEL_SIZE=8b\nexport OVERWRITTEN_NUM_LAYERS=32\nexport OVERLAP_PARAM_GATHER_WITH_OPTIM_STEP=False\n"
     "export DEFER_EMBEDDING_WGRAD_COMPUTE=False\nexport USE_TE_OPS=True\nexport FUSED_QKV_ROPE=True\n"
     "export FP8_HYBRID=True\nexport BUCKET_SIZE=768000000\n"},
    {"config_common_cg.sh",
     "export FULL_CUDA_GRAPH=1\nexport MCORE_CUDA_GRAPH=1\nexport OVERLAP_PARAM_GATHER_WITH_OPTIM_STEP=False\n"
     "export DEFER_EMBEDDING_WGRAD_COMPUTE=False\n"},
    {"config_common_fp4.sh",
     "export FP4=True\nexport FP8=False\nexport FP8_PARAM_GATHER=False\nexport TP_COMM_OVERLAP=False\n"},
    {"config_common_fp8attn.sh", "export FP8_DPA=True\n"},
    {"config_mounts.sh", ""},
}};

/// Reads one configuration.
class MlperfReader {
 public:
  MlperfReader(const JobFile& file, const JobOptions& options, const Catalog& catalog)
      : file_(file), options_(options), catalog_(catalog), dialect_(mlperf_dialect()) {}

  Job read();

 private:
  std::optional<std::string> sibling(const std::string& name);
  void follow();
  void check_missing() const;
  Text variable(const std::string& name) const;
  std::int64_t count(const std::string& name, std::int64_t otherwise) const;
  void assume_defaults();
  void read_variables();
  void read_gpus();
  void read_batch();
  std::string folders() const;
  bool has_pairs() const;
  LowRankPairs pairs() const;
  ModelName model() const;
  bool is_amd() const { return !variable("GBS").text.empty() && variable("MINIBS").text.empty(); }
  Node node(const Text& text) const;

  const JobFile& file_;
  const JobOptions& options_;
  const Catalog& catalog_;
  DialectReader dialect_;
  shell::FollowedScript script_;
  std::vector<std::string> unknown_, assumed_files_, missing_;
  JobArguments result_;
};

/// Returns the text of a file that is sourced: of one beside the configuration, or what is known of it.
std::optional<std::string> MlperfReader::sibling(const std::string& name) {
  if (const auto text = import::read_text_beside(file_.path, name)) return text;
  for (const WellKnownFile& known : kWellKnown) {
    if (known.name != name) continue;
    std::string shown(known.text);
    for (std::size_t at; (at = shown.find("export ")) != std::string::npos;) shown.erase(at, 7);
    std::replace(shown.begin(), shown.end(), '\n', ' ');
    if (!known.text.empty()) assumed_files_.push_back(fmt::format("{} ({})", name, import::trimmed(shown, " ")));
    return std::string(known.text);
  }
  missing_.push_back(name);
  if (options_.environment.empty()) return std::nullopt;
  return "";
}

void MlperfReader::follow() {
  shell::ScriptInput input{file_.text,
                           file_.path,
                           options_.environment,
                           {},
                           [this](const std::string& name) { return sibling(name); },
                           [](const std::vector<Text>&) { return false; }};
  input.given_may_be_unread = true;
  script_ = shell::follow(input);
  for (const auto& [name, value] : options_.environment)
    if (!dialect_.knows(name) && file_.text.find(name) == std::string::npos)
      dialect_.fail_unknown(name, {std::make_shared<const std::string>("--env " + name), 0});
}

/// Refuses a configuration one of whose files is not there, unless --env takes its place.
void MlperfReader::check_missing() const {
  if (script_.handovers.empty()) return;
  std::vector<std::string> open;
  for (const char* name :
       {"MODEL_SIZE", "MINIBS", "FP8", "FP4", "TENSOR_MODEL_PARALLEL", "PIPELINE_MODEL_PARALLEL", "CONTEXT_PARALLEL",
        "MICRO_BATCH_SIZE", "TP_COMM_OVERLAP", "OVERLAP_GRAD_REDUCE", "MCORE_CUDA_GRAPH", "DGXNNODES", "DGXNGPU"})
    if (const Text value = variable(name); value.text.empty() || !shell::is_known(value.text)) open.emplace_back(name);
  if (open.empty()) return;
  fail_at(script_.handovers.front().place,
          fmt::format("{} is not beside it, and may set {}; put it there, or give what it sets with --env NAME=VALUE",
                      fmt::join(missing_, ", "), fmt::join(open, ", ")));
}

/// Returns a variable's value: what --env gives counts most. Empty if nothing sets it.
Text MlperfReader::variable(const std::string& name) const {
  const auto place = std::make_shared<const std::string>("--env " + name);
  if (const auto given = options_.environment.find(name); given != options_.environment.end())
    return {given->second, {place, 0}};
  const auto found = script_.state.variables.find(name);
  if (found == script_.state.variables.end() || found->second.items.empty()) return {};
  return found->second.items.front();
}

std::int64_t MlperfReader::count(const std::string& name, std::int64_t otherwise) const {
  const Text value = variable(name);
  if (value.text.empty()) return otherwise;
  const auto number = shell::integer_of(value.text);
  if (!shell::is_known(value.text))
    fail_at(value.place,
            fmt::format("{} follows from {}; give it with --env {}=VALUE", name, shell::why_unknown(value.text), name));
  if (!number || *number < 1 || *number > kMaxRanks)
    fail_at(value.place, fmt::format("{} must be a whole number from 1 to {}, not '{}'", name, kMaxRanks, value.text));
  return *number;
}

Node MlperfReader::node(const Text& text) const {
  Node result;
  result.kind = Node::Kind::scalar;
  result.text = text.text;
  result.file = text.place.file;
  result.line = text.place.line;
  return result;
}

/// What the training programs do where no variable says otherwise: custom.yaml and pretrain.py of NVIDIA, train.py of
/// AMD.
void MlperfReader::assume_defaults() {
  for (const char* name : {"bf16", "grad-reduce-in-bf16", "use-distributed-optimizer"}) dialect_.assume(name);
  if (is_amd()) {
    dialect_.assume("fp8-format", "hybrid");
    dialect_.assume("fp8-recipe", "delayed");
    return;
  }
  if (has_pairs()) {  // megatron_gpt_peft_tuning_config.yaml
    dialect_.assume("fp8-recipe", "delayed");
    dialect_.assume("cp-comm-type", "a2a");
    return;
  }
  for (const char* name :
       {"overlap-grad-reduce", "overlap-param-gather", "sequence-parallel", "cross-entropy-loss-fusion"})
    dialect_.assume(name);
  dialect_.assume("ddp-bucket-size", "134217728");
  dialect_.assume("fp8-recipe", "tensorwise");
}

void MlperfReader::read_variables() {
  for (const auto& [name, variable] : script_.state.variables) {
    if (name == "*" || name.empty() || variable.items.empty()) continue;
    if (!dialect_.knows(name)) {
      unknown_.push_back(name);
      continue;
    }
    if (!options_.environment.contains(name) && !variable.items.front().text.empty())
      dialect_.add(name, node(variable.items.front()));
  }
  for (const auto& [name, value] : options_.environment)
    if (dialect_.knows(name)) dialect_.add(name, node(this->variable(name)));
}

void MlperfReader::read_gpus() {
  const bool nvidia = !variable("DGXNNODES").text.empty() || variable("NNODES").text.empty();
  result_.nodes = count(nvidia ? "DGXNNODES" : "NNODES", 0);
  result_.gpus_per_node = count(nvidia ? "DGXNGPU" : "GPUS_PER_NODE", 0);
}

/// custom.yaml: the samples of a replica's step are MINIBS.
void MlperfReader::read_batch() {
  if (dialect_.has("global-batch-size")) return;
  const std::int64_t samples = count("MINIBS", 0);
  if (samples == 0) throw core::InputError("it sets neither MINIBS nor GLOBAL_BATCH_SIZE", file_.path);
  const auto size = [&](const char* argument) {
    return std::max<std::int64_t>(shell::integer_of(dialect_.text(argument)).value_or(1), 1);
  };
  const std::int64_t gpus = options_.gpus > 0 ? options_.gpus : result_.nodes * result_.gpus_per_node;
  if (gpus == 0) throw core::InputError("it sets no DGXNNODES and DGXNGPU; give --gpus N", file_.path);
  const std::int64_t replicas =
      gpus / size("tensor-model-parallel-size") / size("pipeline-model-parallel-size") / size("context-parallel-size");
  Node value = node(variable("MINIBS"));
  value.text = std::to_string(samples * std::max<std::int64_t>(replicas, 1));
  dialect_.add("GLOBAL_BATCH_SIZE", value);
}

std::string MlperfReader::folders() const {
  std::string folders;
  for (const auto& part : std::filesystem::absolute(file_.path).parent_path()) folders += part.string() + "/";
  return folders;
}

/// The benchmark of fine-tuning with pairs of low rank is told by its folder, or by the variables that only it has.
bool MlperfReader::has_pairs() const {
  const auto has = [](const std::string& name) { return name.starts_with("LORA_") || name.starts_with("NEMO_LORA_"); };
  for (const auto& [name, variable] : script_.state.variables)
    if (has(name)) return true;
  for (const auto& [name, value] : options_.environment)
    if (has(name)) return true;
  return folders().find("_lora/") != std::string::npos || folders().find("/lora/") != std::string::npos;
}

/// train.py: LoRA(dim=16, target_modules=["linear_proj", "linear_qkv"]), as rounds before have it by their own names.
LowRankPairs MlperfReader::pairs() const {
  if (!has_pairs()) return {};
  const Text rank = variable("LORA_DIM");
  return {rank.text.empty() ? Text{"16", {}} : rank, {{"linear_qkv", rank.place}, {"linear_proj", rank.place}}};
}

/// The model is what --model says, or what the file says by MODEL_SIZE or the name of the benchmark's folder.
ModelName MlperfReader::model() const {
  const auto whole = std::make_shared<const std::string>(file_.path);
  if (!options_.model.empty()) return {options_.model, {}};
  for (const char* name : {"MODEL_SIZE", "SIZE"})
    if (const Text size = variable(name); !size.text.empty() && shell::is_known(size.text))
      return {"llama3-" + size.text, size.place};
  constexpr std::pair<const char*, const char*> kFolders[] = {
      {"llama2_70b", "llama2-70b"}, {"llama31_405b", "llama3-405b"}, {"llama31_8b", "llama3-8b"},
      {"llama3_8b", "llama3-8b"},   {"/gpt3/", "gpt3-175b"},         {"large_language_model", "gpt3-175b"}};
  for (const auto& [folder, known] : kFolders)
    if (folders().find(folder) != std::string::npos) return {known, {whole, 0}};
  throw core::InputError("it does not say which model it trains; give --model NAME, as in --model llama3-405b",
                         file_.path);
}

Job MlperfReader::read() {
  follow();
  check_missing();
  result_.kind = is_amd() ? "an MLPerf configuration of AMD" : "an MLPerf configuration of NeMo";
  const ModelName name = model();
  result_.model = settings_of_model(name, catalog_);
  if (name.place.file == nullptr) {
    for (JobSetting& one : result_.model) one.place = {};
  }
  assume_defaults();
  read_variables();
  read_gpus();
  read_batch();
  // Every benchmark of Llama 3.1 trains on samples of 8,192 tokens, GPT-3 on 2,048.
  if (!dialect_.has("seq-length"))
    dialect_.assume("seq-length", value_in(result_.model, "model.name").starts_with("gpt3") ? "2048" : "8192");
  for (JobSetting& one : result_.model)
    if (one.key == "model.sequence") one.value = dialect_.text("seq-length");
  dialect_.finish(result_);
  if (!assumed_files_.empty())
    result_.notes.push_back(
        fmt::format("not beside it, taken as in NVIDIA's entries of v5.1: {}", fmt::join(assumed_files_, ", ")));
  if (!missing_.empty())
    result_.notes.push_back(
        fmt::format("not beside it, taken to set nothing but what --env gives: {}", fmt::join(missing_, ", ")));
  if (!unknown_.empty())
    result_.notes.push_back(fmt::format("not known here, taken as without effect: {}", fmt::join(unknown_, ", ")));
  Job job = megatron_job(result_, options_, catalog_);
  dialect_.count(job);
  if (has_pairs())
    job.notes.emplace_back(
        "of the benchmark: pairs beside linear_qkv and linear_proj, of rank 16 unless LORA_DIM says "
        "otherwise; a tenth of their inputs is dropped, which is not modelled");
  put_pairs(job, pairs(), ModuleNames::megatron);
  job.stack = is_amd() ? "megatron-core" : "nemo";
  return job;
}

}  // namespace

bool is_mlperf_config(const JobFile& file) {
  const std::string name = std::filesystem::path(file.path).filename().string();
  const bool variables = file.text.find("export DGXNNODES") != std::string::npos ||
                         file.text.find("export MINIBS") != std::string::npos ||
                         file.text.find("export TENSOR_MODEL_PARALLEL") != std::string::npos ||
                         (file.text.find("export GBS") != std::string::npos &&
                          file.text.find("export GPUS_PER_NODE") != std::string::npos) ||
                         file.text.find("/config_common") != std::string::npos ||
                         (name.starts_with("config_") && file.text.find("/config_") != std::string::npos);
  return file.ending() == ".sh" && variables && file.text.find("--num-layers") == std::string::npos &&
         (name.starts_with("config") || file.text.find("MLPERF") != std::string::npos);
}

bool is_mlperf_system(const JobFile& file) {
  return file.ending() == ".json" && file.text.find("\"accelerators_per_node\"") != std::string::npos;
}

Job read_mlperf_config(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return MlperfReader(file, options, catalog).read();
}

Job read_mlperf_system(const JobFile& file, const JobOptions&, const Catalog&) {
  throw core::InputError(
      "it describes a system of MLPerf, a cluster and no job; the job is a config_*.sh beside its benchmark",
      file.path);
}

}  // namespace manyworlds::experiments::jobs
