// Reads the YAML of NeMo, of its first version and of later ones, and of Megatron-Bridge: model, trainer and optimizer
// in sections of one file.
#include "experiments/nemo/nemo.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/megatron/megatron.hpp"
#include "experiments/nemo/interpolation.hpp"
#include "experiments/nemo/settings.hpp"
#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr std::int64_t kMaxRanks = 1 << 20;

class NemoReader {
 public:
  NemoReader(const JobFile& file, const JobOptions& options, const Catalog& catalog)
      : options_(options),
        catalog_(catalog),
        root_(import::parse_yaml(file.text, file.path)),
        dialect_(nemo_dialect()) {}

  Job read();

 private:
  Node value_of(const std::string& name) const;
  void add(const std::string& name, const Node& value);
  void add_argument(const std::string& name, const std::string& value, const Node& at);
  void read_activation();
  void read_precision();
  void read_tokenizer();
  void read_gpus();
  LowRankPairs pairs() const;
  LowRankPairs pairs_of_first() const;
  LowRankPairs listed_pairs(const std::string& rank, const std::string& modules, bool canonical) const;
  bool is_first() const { return section_ == &root_ && root_.find("trainer") != nullptr; }

  const JobOptions& options_;
  const Catalog& catalog_;
  const Node root_;
  const Node* section_ = &root_;  // below `training:`, as a launcher has it, or the whole
  DialectReader dialect_;
  std::map<std::string, Node> values_;
  JobArguments result_;
};

/// Returns a value of the file, with what it refers to; of kind null if it is not there.
Node NemoReader::value_of(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? Node{} : found->second;
}

void NemoReader::add_argument(const std::string& name, const std::string& value, const Node& at) {
  Argument one{name, {}, {at.file, at.line}};
  if (!value.empty()) one.values.push_back({value, one.place});
  result_.arguments.push_back(std::move(one));
}

void NemoReader::read_activation() {
  Node how = value_of("model.activation");
  if (how.kind == Node::Kind::null) how = value_of("model.activation_func");
  if (how.kind != Node::Kind::scalar) return;
  std::string name = how.text;
  for (const char* prefix : {"fast-", "torch.nn.functional."})
    if (name.starts_with(prefix)) name.erase(0, std::string(prefix).size());
  const bool gated = name == "swiglu" || name == "silu";
  if (!gated && dialect_.has("no-bias-swiglu-fusion")) add_argument("no-bias-gelu-fusion", "", how);
  if (gated)
    add_argument("swiglu", "", how);
  else if (name == "squared-relu" || name == "squared_relu")
    add_argument("squared-relu", "", how);
  else if (name != "gelu" && name != "openai_gelu" && name != "gelu_tanh")
    how.fail(
        fmt::format("'activation' {} is not modelled; known are gelu, squared-relu, swiglu and fast-swiglu", name));
}

void NemoReader::read_precision() {
  for (const char* name : {"trainer.precision", "trainer.plugins.precision", "mixed_precision", "model.precision"}) {
    const Node how = value_of(name);
    if (how.kind != Node::Kind::scalar) continue;
    const std::string& word = how.text;
    const bool half = word == "16" || word.starts_with("16-") || word == "fp16" || word == "fp16_mixed";
    if (!half && word != "bf16" && !word.starts_with("bf16"))
      how.fail(fmt::format("'{}' {} is not modelled; known are bf16 and 16 and what begins with them", name, word));
    add_argument(half ? "fp16" : "bf16", "", how);
    // Megatron-Bridge's names of recipes: bf16_with_mxfp8_mixed, bf16_with_fp8_current_scaling_mixed.
    if (word.find("mxfp8") != std::string::npos)
      add_argument("fp8-recipe", "mxfp8", how);
    else if (word.find("current_scaling") != std::string::npos)
      add_argument("fp8-recipe", "tensorwise", how);
    else if (word.find("subchannel") != std::string::npos)
      add_argument("fp8-recipe", "blockwise", how);
    if (word.find("fp8") != std::string::npos) add_argument("fp8-format", "hybrid", how);
    if (word.find("nvfp4") != std::string::npos) add_argument("fp4-format", "e2m1", how);
    return;
  }
  if (dialect_.has("bf16") || dialect_.has("fp16")) return;
  dialect_.assume("bf16");
  result_.notes.emplace_back("assumed: bf16, as the file names no precision");
}

void NemoReader::read_tokenizer() {
  const Node library = value_of("model.tokenizer.library"), type = value_of("model.tokenizer.type");
  if (type.kind != Node::Kind::scalar) {
    if (library.kind == Node::Kind::scalar) add_argument("tokenizer-type", library.text, library);
    return;
  }
  if (library.text == "huggingface") add_argument("tokenizer-model", type.text, type);
  add_argument("tokenizer-type", type.text, type);
}

void NemoReader::read_gpus() {
  const auto count = [&](const std::string& name) {
    const Node value = value_of(name);
    if (value.kind != Node::Kind::scalar || !shell::is_known(value.text)) return std::int64_t{0};
    const auto number = shell::integer_of(value.text);
    if (!number || *number < 1 || *number > kMaxRanks)
      value.fail(fmt::format("'{}' must be a whole number from 1 to {}, not '{}'", name, kMaxRanks, value.text));
    return *number;
  };
  result_.nodes = count("trainer.num_nodes");
  result_.gpus_per_node = count("trainer.devices");
}

/// Returns pairs whose rank and modules stand under these names; unless given, what NeMo 2 and Megatron-Bridge take.
LowRankPairs NemoReader::listed_pairs(const std::string& rank, const std::string& modules, bool canonical) const {
  const Node dim = value_of(rank), listed = value_of(modules);
  const auto place = [](const Node& node) { return Place{node.file, node.line}; };
  LowRankPairs pairs;
  pairs.rank = dim.kind == Node::Kind::scalar ? Text{dim.text, place(dim)} : Text{"32", {}};
  pairs.modules =
      listed.kind == Node::Kind::null ? megatron_modules(canonical, pairs.rank.place) : module_words(modules, listed);
  return pairs;
}

/// The first version has pairs beside linear_qkv, unless it names modules, and one of each projection as a variant.
LowRankPairs NemoReader::pairs_of_first() const {
  const Node scheme = value_of("model.peft.peft_scheme");
  if (scheme.kind != Node::Kind::scalar || scheme.text == "null" || scheme.text == "none" || scheme.text == "None")
    return {};
  if (scheme.text != "lora")
    scheme.fail(fmt::format("'model.peft.peft_scheme' {} is not modelled; known is lora", scheme.text));
  const std::string section = "model.peft.lora_tuning.";
  if (value_of(section + "adapter_dim").kind != Node::Kind::scalar)
    scheme.fail("'model.peft.peft_scheme' lora needs model.peft.lora_tuning.adapter_dim");
  LowRankPairs pairs = listed_pairs(section + "adapter_dim", section + "target_modules", false);
  if (value_of(section + "target_modules").kind == Node::Kind::null)
    pairs.modules = {{"attention_qkv", {scheme.file, scheme.line}}};
  if (value_of(section + "variant").text != "canonical") return pairs;
  std::vector<Text> each;
  for (const Text& module : pairs.modules) {
    const bool attention = module.text == "attention", all = module.text == "all", network = module.text == "mlp";
    const auto add = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) each.push_back({name, module.place});
    };
    if (attention || all || module.text == "attention_qkv") add({"linear_q", "linear_k", "linear_v"});
    if (attention || all) add({"linear_proj"});
    if (network || all || module.text == "mlp_fc1") add({"linear_fc1_gate", "linear_fc1_up"});
    if (network || all) add({"linear_fc2"});
    if (module.text == "attention_dense" || module.text == "mlp_fc2") each.push_back(module);
  }
  pairs.modules = each;
  return pairs;
}

/// Returns the pairs of a `peft` section: that of NeMo 2 and Megatron-Bridge names the class, or says lora.
LowRankPairs NemoReader::pairs() const {
  const Node scheme = value_of("peft"), target = value_of("peft._target_");
  const bool is_word = scheme.kind == Node::Kind::scalar && scheme.text != "None" && scheme.text != "none";
  if (!is_word && target.kind != Node::Kind::scalar && value_of("peft.dim").kind == Node::Kind::null)
    return pairs_of_first();
  const Node& named = is_word ? scheme : target;
  const std::string name = named.text.substr(named.text.rfind('.') + 1);
  const bool canonical = name == "CanonicalLoRA" || name == "canonical_lora";
  const bool magnitudes = name == "DoRA" || name == "dora";
  if (!name.empty() && !canonical && !magnitudes && name != "LoRA" && name != "lora")
    named.fail(fmt::format("'peft' {} is not modelled; known are LoRA, CanonicalLoRA, DoRA", named.text));
  LowRankPairs pairs = listed_pairs("peft.dim", "peft.target_modules", canonical);
  pairs.magnitudes = magnitudes;
  return pairs;
}

Job NemoReader::read() {
  if (const Node* below = root_.find("training"); below != nullptr && below->find("model") != nullptr) section_ = below;
  if (section_->kind != Node::Kind::mapping) root_.fail("a job's file is a mapping");
  visit_leaves(*section_, "", [&](const std::string& name, const Node& value) {
    Node& kept = values_.emplace(name, value).first->second;
    if (value.kind == Node::Kind::scalar && value.text.find("${") != std::string::npos)
      kept.text = interpolated(root_, name, value, options_.environment);
  });
  const bool first = value_of("model.optim.name").kind != Node::Kind::null ||
                     value_of("model.encoder_seq_length").kind != Node::Kind::null;
  result_.kind = first ? "a YAML file of NeMo" : "a YAML file of NeMo or Megatron-Bridge";
  if (first) {
    dialect_.assume("no-rope-fusion");
    dialect_.assume("attention-backend", "flash");  // as NeMo's stack of the catalog says
  }
  for (const auto& [name, value] : values_) dialect_.add(name, value);
  // TransformerConfig: attention is grouped where there are groups.
  if (dialect_.has("num-query-groups")) dialect_.assume("group-query-attention");
  if (!options_.model.empty()) result_.model = settings_of_model({options_.model, {}}, catalog_);
  for (JobSetting& one : result_.model) one.place = {};
  read_precision();
  dialect_.finish(result_);
  read_activation();
  read_tokenizer();
  read_gpus();
  const bool named = !options_.model.empty();
  const bool described = dialect_.has("num-layers") && dialect_.has("hidden-size");
  if (!named && !described)
    section_->fail("it does not describe its model (model.num_layers, model.hidden_size, …); give --model NAME");
  Job job = megatron_job(result_, options_, catalog_);
  dialect_.count(job);
  put_pairs(job, pairs(), ModuleNames::megatron);
  job.stack = first ? "nemo" : "megatron-core";
  return job;
}

}  // namespace

bool is_nemo(const JobFile& file) {
  const auto has = [&](const char* what) { return file.text.find(what) != std::string::npos; };
  return (file.ending() == ".yaml" || file.ending() == ".yml") && has("model:") && has("tensor_model_parallel_size") &&
         !has("MODEL_ARGS");
}

Job read_nemo(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return NemoReader(file, options, catalog).read();
}

}  // namespace manyworlds::experiments::jobs
