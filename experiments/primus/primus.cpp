#include "experiments/primus/primus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.hpp"
#include "experiments/megatron/megatron.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;
namespace fs = std::filesystem;

constexpr const char* kBaseModel = "language_model.yaml";  // which all others extend
constexpr int kMaxFiles = 16;                              // of a model that extends others

class PrimusReader {
 public:
  PrimusReader(const JobFile& file, const JobOptions& options, const Catalog& catalog)
      : file_(file), options_(options), catalog_(catalog), dialect_(primus_dialect()) {}

  Job read();

 private:
  const Node& trainer(const Node& root) const;
  std::string expanded(const Node& value);
  Node resolved(const Node& value);
  void assume_defaults(const Node& trainer);
  void read_model(const Node& trainer);
  void read_model_file(const fs::path& path);
  std::string model_path(const std::string& name) const;
  void add_all(const Node& mapping, const std::string& prefix = "");
  void finish(Job& job);
  void read_schedule(Job& job);
  void read_split(Job& job);
  std::string word(const std::string& name) const;
  void set(Job& job, const std::string& key, const std::string& value, const std::string& because) const;

  const JobFile& file_;
  const JobOptions& options_;
  const Catalog& catalog_;
  DialectReader dialect_;
  JobArguments result_;
  std::map<std::string, Node> values_;          // the last of each name
  std::map<std::string, std::string> assumed_;  // variables of the environment
  std::set<std::string> used_;
  std::vector<std::string> files_;
};

/// Returns the module that trains.
const Node& PrimusReader::trainer(const Node& root) const {
  const Node* modules = root.find("modules");
  if (modules == nullptr || modules->kind != Node::Kind::mapping || modules->entries.empty())
    root.fail("'modules' must be a mapping with pre_trainer");
  for (const char* name : {"pre_trainer", "post_trainer", "sft_trainer", "trainer"})
    if (const Node* found = modules->find(name); found != nullptr && found->kind == Node::Kind::mapping) return *found;
  modules->fail(fmt::format("no module of it trains: '{}'; known are pre_trainer, post_trainer, sft_trainer, trainer",
                            modules->entries.front().key));
}

/// Returns a text with its ${NAME} and ${NAME:default}: as --env gives them, or at their defaults.
std::string PrimusReader::expanded(const Node& value) {
  std::string text = value.text;
  for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at)) {
    const std::size_t end = text.find('}', at);
    if (end == std::string::npos) value.fail(fmt::format("'{}' has no closing brace", value.text));
    const std::string inside = text.substr(at + 2, end - at - 2);
    const std::size_t colon = inside.find(':');
    const std::string name = inside.substr(0, colon);
    const auto given = options_.environment.find(name);
    if (given == options_.environment.end() && colon == std::string::npos)
      value.fail(fmt::format("'{}' follows from ${}, a variable of the environment; give it with --env {}=VALUE",
                             value.text, name, name));
    const std::string meaning = given != options_.environment.end() ? given->second : inside.substr(colon + 1);
    if (given == options_.environment.end()) assumed_[name] = meaning;
    used_.insert(name);
    text.replace(at, end + 1 - at, meaning);
    at += meaning.size();
    if (text.size() > import::kMaxTextBytes) value.fail("its variables make too long a text");
  }
  return text;
}

Node PrimusReader::resolved(const Node& value) {
  Node result = value;
  if (value.kind == Node::Kind::scalar && value.text.find("${") != std::string::npos) result.text = expanded(value);
  return result;
}

void PrimusReader::add_all(const Node& mapping, const std::string& prefix) {
  visit_leaves(mapping, prefix, [&](const std::string& name, const Node& value) {
    if (name == "extends" || name == "bases") return;
    Node plain = resolved(value);
    dialect_.add(name, plain);
    values_[name] = std::move(plain);
  });
}

/// Defaults of Primus's modules that are not Megatron-LM's: language_model.yaml, trainer_base.yaml, and what the module
/// itself sets.
void PrimusReader::assume_defaults(const Node& trainer) {
  const Node* config = trainer.find("config");
  const std::string module = config == nullptr ? "pre_trainer.yaml" : config->text;
  if (module != "pre_trainer.yaml" && module != "trainer_base.yaml" && module != "sft_trainer.yaml")
    config->fail(
        fmt::format("the module {} is not known; known are pre_trainer.yaml, sft_trainer.yaml, "
                    "trainer_base.yaml",
                    module));
  for (const char* name : {"bf16", "swiglu", "disable-bias-linear", "untie-embeddings-and-output-weights",
                           "sequence-parallel", "use-flash-attn"})
    dialect_.assume(name);
  const bool base = module == "trainer_base.yaml", tuning = module == "sft_trainer.yaml";
  if (!base) dialect_.assume("use-distributed-optimizer");
  dialect_.assume("micro-batch-size", tuning ? "1" : "2");
  dialect_.assume("global-batch-size", base || tuning ? "128" : "16");
  dialect_.assume("seq-length", base ? "4096" : tuning ? "2048" : "1024");
}

/// Returns the path of a model's file: beside the experiment, or where a folder around it has Primus's models.
std::string PrimusReader::model_path(const std::string& name) const {
  std::error_code error;
  const fs::path folder = fs::absolute(file_.path).parent_path();
  if (fs::is_regular_file(folder / name, error)) return (folder / name).string();
  for (fs::path around = folder; around.has_relative_path(); around = around.parent_path())
    if (const fs::path path = around / "primus/configs/models/megatron" / name; fs::is_regular_file(path, error))
      return path.string();
  return "";
}

void PrimusReader::read_model_file(const fs::path& path) {
  if (files_.size() >= kMaxFiles) throw core::InputError("models extend one another too deep", path.string());
  files_.push_back(path.string());
  const Node root = import::parse_yaml(import::read_text(path.string()), path.string());
  if (root.kind != Node::Kind::mapping) root.fail("a model's file is a mapping");
  for (const char* key : {"extends", "bases"})
    if (const Node* bases = root.find(key); bases != nullptr)
      for (const Node& base : bases->items) {
        const fs::path file = path.parent_path() / base.text;
        std::error_code error;
        if (!fs::is_regular_file(file, error))
          base.fail(fmt::format("{} is not there, which the model extends; put it there, or give --model NAME",
                                file.string()));
        read_model_file(file);
      }
  add_all(root);
}

void PrimusReader::read_model(const Node& trainer) {
  const Node* model = trainer.find("model");
  if (!options_.model.empty()) {
    result_.model = settings_of_model({options_.model, {}}, catalog_);
    for (JobSetting& one : result_.model) one.place = {};
    return;
  }
  if (model == nullptr || model->kind != Node::Kind::scalar)
    trainer.fail("'model' must name a model, as in model: llama3.1_70B.yaml; or give --model NAME");
  const std::string name = expanded(*model);
  if (name == kBaseModel) return;  // its values are the defaults
  if (const std::string path = model_path(name); !path.empty()) return read_model_file(path);
  try {
    result_.model = settings_of_model(
        {fs::path(name).extension() == ".yaml" ? fs::path(name).stem().string() : name, {model->file, model->line}},
        catalog_);
  } catch (const core::InputError&) {
    model->fail(
        fmt::format("the model {} is neither beside the file nor in the catalog; put it there, or give "
                    "--model NAME or --model config.json",
                    name));
  }
  result_.notes.push_back(
      fmt::format("{} is not beside it: the model is the catalog's {}", name, value_in(result_.model, "model.name")));
}

std::string PrimusReader::word(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.kind != Node::Kind::scalar ? "" : found->second.text;
}

void PrimusReader::set(Job& job, const std::string& key, const std::string& value, const std::string& because) const {
  std::erase_if(job.settings, [&](const JobSetting& one) { return one.key == key; });
  const auto found = values_.find(because);
  job.settings.push_back(
      {key, value, found == values_.end() ? Place{} : Place{found->second.file, found->second.line}});
}

/// Primus's own schedules, and those of its zero-bubble patch, instead of Megatron-LM's.
void PrimusReader::read_schedule(Job& job) {
  const auto is_on = [&](const char* name) { return word(name) == "true" || word(name) == "True"; };
  if (value_in(job.settings, "strategy.pp") == "1") return;
  const bool own = is_on("patch_primus_pipeline"), patched = is_on("patch_zero_bubble");
  if (!own && !patched) return;
  const std::string because = own ? "pp_algorithm" : "patch_zero_bubble";
  std::string schedule;
  if (own) {
    const std::string given = word("pp_algorithm").empty() ? "1f1b-interleaved" : word("pp_algorithm");
    schedule = translated(
        "1f1b=1f1b 1f1b-interleaved=interleaved zero-bubble=zb_h1 zbv-formatted=zb_v v-half=v_half "
        "v-min=v_min",
        given);
    if (schedule.empty())
      values_.at(because).fail(
          fmt::format("'pp_algorithm' {} is not modelled; known are 1f1b, 1f1b-interleaved, "
                      "zero-bubble, zbv-formatted, v-half, v-min",
                      given));
  } else if (is_on("zero_bubble_v_schedule")) {
    schedule = translated("half=v_half min=v_min zb=zb_v", word("zero_bubble_v_schedule_mem_setup"));
    if (schedule.empty()) schedule = "v_half";
  } else {
    schedule = word("enable_zero_bubble") == "false" ? "1f1b" : "zb_h1";
  }
  const bool chunked = value_in(job.settings, "strategy.virtual_stages") != "1";
  if (schedule == "interleaved" && !chunked) schedule = "1f1b";
  if (schedule == "zb_v" || schedule == "v_half" || schedule == "v_min")
    set(job, "strategy.virtual_stages", "2", because);
  set(job, "strategy.schedule", schedule, because);
}

/// The layers of each stage, one by one.
void PrimusReader::read_split(Job& job) {
  const auto found = values_.find("decoder_pipeline_manual_split_list");
  if (found == values_.end() || found->second.kind == Node::Kind::null) return;
  std::vector<std::string> layers;
  for (const Node& one : found->second.items) layers.push_back(one.text);
  if (layers.empty() || std::any_of(layers.begin(), layers.end(),
                                    [](const std::string& one) { return !shell::integer_of(one).has_value(); }))
    found->second.fail("'decoder_pipeline_manual_split_list' must be a list of numbers of layers");
  set(job, "strategy.stage_layers", fmt::format("[{}]", fmt::join(layers, ", ")), "decoder_pipeline_manual_split_list");
}

Job PrimusReader::read() {
  const Node root = import::parse_yaml(file_.text, file_.path);
  for (const char* name : {"hardware_config", "target_cluster"})
    if (root.find(name) != nullptr)
      root.fail(
          fmt::format("'{}' describes machines, a cluster and no job; a job has 'modules' with pre_trainer", name));
  const Node& module = trainer(root);
  const Node* framework = module.find("framework");
  const std::string name = framework == nullptr ? "megatron" : expanded(*framework);
  if (name != "megatron")
    framework->fail(
        fmt::format("the framework {} is not read; known is megatron, whose arguments overrides are", name));
  result_.kind = "an experiment of Primus";
  assume_defaults(module);
  read_model(module);
  if (const Node* overrides = module.find("overrides"); overrides != nullptr) {
    if (overrides->kind == Node::Kind::mapping)
      add_all(*overrides);
    else if (overrides->kind != Node::Kind::null)
      overrides->fail("'overrides' must be a mapping");
  }
  if (!result_.model.empty() && value_in(result_.model, "model.experts") > "0") {
    for (const char* argument : {"moe-grouped-gemm"})
      if (!dialect_.has(argument)) dialect_.assume(argument);  // as Primus's own models of experts have it
    if (!dialect_.has("moe-token-dispatcher-type")) dialect_.assume("moe-token-dispatcher-type", "alltoall");
  }
  if (dialect_.has("moe-enable-deepep")) dialect_.assume("moe-token-dispatcher-type", "flex");
  for (JobSetting& one : result_.model)
    if (one.key == "model.sequence") one.value = dialect_.text("seq-length");
  dialect_.finish(result_);
  for (const auto& [variable, value] : options_.environment)
    if (used_.count(variable) == 0)
      throw core::InputError(fmt::format("the file does not read '{}' from the environment", variable), file_.path);
  std::vector<std::string> taken;
  for (const auto& [variable, value] : assumed_) taken.push_back(fmt::format("{}={}", variable, value));
  if (!taken.empty())
    result_.notes.push_back(fmt::format("assumed of the environment (--env NAME=VALUE): {}", fmt::join(taken, ", ")));
  Job job = megatron_job(result_, options_, catalog_);
  dialect_.count(job);
  read_schedule(job);
  read_split(job);
  job.stack = "primus";
  return job;
}

}  // namespace

bool is_primus(const JobFile& file) {
  if (file.ending() != ".yaml" && file.ending() != ".yml") return false;
  const auto begins = [&](const std::string& key) {
    return file.text.starts_with(key + ":") || file.text.find("\n" + key + ":") != std::string::npos;
  };
  return begins("modules") || begins("hardware_config") || begins("target_cluster");
}

Job read_primus(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return PrimusReader(file, options, catalog).read();
}

}  // namespace manyworlds::experiments::jobs
