// Sizes are those of pytorch/torchtitan v0.2.2, torchtitan/models/*/__init__.py and model/args.py; of Llama 2
// @0413364, torchtitan/models/llama/__init__.py; of Llama 3 1B and 3B @b5bcd76. tests/experiments/torchtitan.cpp
// compares them with what those files say.
#include "experiments/torchtitan/flavors.hpp"

#include <algorithm>

#include "experiments/model_keys/carried.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::jobs::torchtitan {
namespace {

using core::workload::Model;

/// What all of them have: RMS norms, SwiGLU, rotary positions, no biases, no dropout.
Model decoder(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads, std::int64_t ffn,
              std::int64_t vocabulary) {
  Model model;
  model.layers = layers, model.hidden = hidden, model.heads = heads, model.kv_heads = kv_heads;
  model.ffn_hidden = ffn, model.vocabulary = vocabulary;
  model.norm = core::workload::Norm::rms_norm;
  model.activation = core::workload::Activation::swiglu;
  model.position = core::workload::Position::rotary;
  model.tied_embeddings = model.biases = model.dropout = false;
  return model;
}

Model with_experts(Model model, std::int64_t experts, std::int64_t per_token, std::int64_t width, std::int64_t shared) {
  model.experts = experts, model.experts_per_token = per_token;
  model.expert_ffn_hidden = width, model.shared_ffn_hidden = shared;
  return model;
}

Model with_groups(Model model, std::int64_t groups, std::int64_t per_token) {
  model.expert_groups = groups, model.groups_per_token = per_token;
  return model;
}

Model tied(Model model) {
  model.tied_embeddings = true;
  return model;
}

Model deepseek(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t ffn, std::int64_t vocabulary,
               std::int64_t dense, std::int64_t query_rank) {
  Model model = decoder(layers, hidden, heads, 0, ffn, vocabulary);
  model.attention = core::workload::Attention::latent;
  model.query_rank = query_rank, model.kv_rank = 512;
  model.head_dim = 128, model.rotary_dim = 64, model.value_dim = 128;
  model.dense_layers = dense;
  return model;
}

Model qwen3(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads, std::int64_t ffn,
            std::int64_t vocabulary = 151'936) {
  Model model = decoder(layers, hidden, heads, kv_heads, ffn, vocabulary);
  model.head_dim = 128;
  model.query_key_norm = true;
  return model;
}

Model gpt_oss(std::int64_t layers, std::int64_t hidden, std::int64_t experts) {
  Model model = with_experts(decoder(layers, hidden, 64, 8, 2'880, 201'088), experts, 4, 2'880, 0);
  model.head_dim = 64, model.biases = true;
  model.window = 128, model.window_every = 2;
  return model;
}

/// The list, while flavors are added.
class Flavors {
 public:
  void add(const char* model, const char* name, const Model& sizes, bool flexible = false) {
    Flavor one;
    one.model = model, one.name = name, one.sizes = sizes, one.flexible = flexible;
    all_.push_back(std::move(one));
  }
  void refuse(const char* model, const char* name, const char* why) {
    add(model, name, Model());
    all_.back().refused = why;
  }
  /// Gives what is carried to all flavors of a model, or to one of them.
  void carry(const std::string& model, const std::string& carried, const std::string& name = "") {
    for (Flavor& one : all_)
      if (one.model == model && (name.empty() || one.name == name))
        one.carried = models::carried_over(one.carried, carried);
  }
  std::vector<Flavor> take() { return std::move(all_); }

 private:
  std::vector<Flavor> all_;
};

void add_llamas(Flavors& all) {
  const std::int64_t old = 32'000, now = 128'256;
  const Model small = decoder(6, 256, 16, 16, 768, 2'048), eight = decoder(32, 4'096, 32, 8, 14'336, now);
  all.add("llama3", "debugmodel", small);
  all.add("llama3", "debugmodel_flex_attn", small, true);
  all.add("llama3", "debugmodel_varlen_attn", small, true);
  all.add("llama3", "1B", tied(decoder(16, 2'048, 32, 8, 8'192, now)));
  all.add("llama3", "3B", tied(decoder(28, 3'072, 24, 8, 8'192, now)));
  all.add("llama3", "8B", eight);
  all.add("llama3", "8B_flex", eight, true);
  all.add("llama3", "8B_varlen", eight, true);
  all.add("llama3", "70B", decoder(80, 8'192, 64, 8, 28'672, now));
  all.add("llama3", "405B", decoder(126, 16'384, 128, 8, 53'248, now));
  all.add("llama2", "271M", decoder(16, 1'024, 8, 8, 2'816, old));
  all.add("llama2", "1B", decoder(18, 2'048, 16, 16, 5'632, old));
  all.add("llama2", "7B", decoder(32, 4'096, 32, 32, 11'008, old));
  all.add("llama2", "13B", decoder(40, 5'120, 40, 40, 13'824, old));
  all.add("llama2", "26B", decoder(80, 5'120, 40, 40, 13'824, old));
  all.add("llama2", "70B", decoder(80, 8'192, 64, 8, 28'672, old));
  all.add("llama4", "17bx16e", with_experts(decoder(48, 5'120, 40, 8, 16'384, 202'048), 16, 1, 8'192, 8'192));
  for (const char* name : {"debugmodel", "17bx128e", "17bx128e_irope", "debugmodel_irope"})
    all.refuse("llama4", name, "experts in every other layer are not modelled");
  all.refuse("llama4", "17bx16e_irope", "attention in chunks of the sample is not modelled");
}

void add_others(Flavors& all) {
  const Model small = with_experts(deepseek(6, 256, 16, 1'024, 2'048, 1, 0), 8, 3, 256, 512);
  const Model v2 = deepseek(60, 5'120, 128, 12'288, 102'400, 1, 1'536);
  const Model v3 = deepseek(61, 7'168, 128, 18'432, 129'280, 3, 1'536);
  all.add("deepseek_v3", "debugmodel", small);
  all.add("deepseek_v3", "debugmodel_flex_attn", small, true);
  all.add("deepseek_v3", "16B", with_experts(deepseek(27, 2'048, 16, 10'944, 102'400, 1, 0), 64, 6, 1'408, 2'816),
          true);
  all.add("deepseek_v3", "236B", with_groups(with_experts(v2, 160, 6, 1'536, 3'072), 8, 3), true);
  all.add("deepseek_v3", "671B", with_groups(with_experts(v3, 256, 8, 2'048, 2'048), 8, 4), true);
  all.add("qwen3", "debugmodel", tied(qwen3(8, 256, 16, 8, 3'072, 2'048)));
  all.add("qwen3", "0.6B", tied(qwen3(28, 1'024, 16, 8, 3'072)));
  all.add("qwen3", "1.7B", tied(qwen3(28, 2'048, 16, 8, 6'144)));
  all.add("qwen3", "4B", tied(qwen3(36, 2'560, 32, 8, 9'728)));
  all.add("qwen3", "8B", qwen3(36, 4'096, 32, 8, 12'288));
  all.add("qwen3", "14B", qwen3(40, 5'120, 40, 8, 17'408));
  all.add("qwen3", "32B", qwen3(64, 5'120, 64, 8, 25'600));
  all.add("qwen3", "debugmodel_moe", with_experts(qwen3(8, 256, 16, 8, 3'072, 2'048), 64, 8, 768, 0));
  all.add("qwen3", "30B-A3B", with_experts(qwen3(48, 2'048, 32, 4, 6'144), 128, 8, 768, 0));
  all.add("qwen3", "235B-A22B", with_experts(qwen3(94, 4'096, 64, 4, 12'288), 128, 8, 1'536, 0));
  all.add("gpt_oss", "debugmodel", gpt_oss(4, 256, 8), true);
  all.add("gpt_oss", "20b", gpt_oss(24, 2'880, 32), true);
  all.add("gpt_oss", "120b", gpt_oss(36, 2'880, 128), true);
}

/// Bases of rotations, epsilons, longer positions and routers.
void add_carried(Flavors& all) {
  all.carry("llama3", "rotary-base=500000 norm-epsilon=1e-05 use-rope-scaling rope-scaling-factor=8.0");
  all.carry("llama2", "rotary-base=10000 norm-epsilon=1e-05");
  all.carry("llama4", "rotary-base=500000 norm-epsilon=1e-05");
  all.carry("qwen3", "rotary-base=1000000 norm-epsilon=1e-06");
  all.carry("qwen3", "rotary-base=5000000", "235B-A22B");
  all.carry("gpt_oss", "rotary-base=150000 norm-epsilon=1e-05");
  all.carry("deepseek_v3", "rotary-base=10000 norm-epsilon=1e-05 rope-type=yarn rotary-scaling-factor=40");
  all.carry("deepseek_v3", "moe-router-topk-scaling-factor=16.0", "236B");
  all.carry("deepseek_v3", "moe-router-score-function=sigmoid moe-router-topk-scaling-factor=2.5", "671B");
}

}  // namespace

const std::vector<Flavor>& flavors() {
  static const std::vector<Flavor> all = [] {
    Flavors list;
    add_llamas(list);
    add_others(list);
    add_carried(list);
    return list.take();
  }();
  return all;
}

const Flavor* find_flavor(const std::string& model, const std::string& name) {
  for (const Flavor& one : flavors())
    if (one.model == model && one.name == name) return &one;
  return nullptr;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Flavor& one : flavors())
    if (std::find(names.begin(), names.end(), one.model) == names.end()) names.push_back(one.model);
  return names;
}

std::vector<std::string> flavor_names(const std::string& model) {
  std::vector<std::string> names;
  for (const Flavor& one : flavors())
    if (one.model == model) names.push_back(one.name);
  return names;
}

std::vector<std::pair<std::string, std::string>> settings_of(const Flavor& flavor) {
  const Model none;
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& row : core::workload::model_options().rows()) {
    const core::OptionValue value = row.get(flavor.sizes);
    // Norms, activations and what a model has besides are said of every model; sizes that it lacks of none.
    const bool said = row.info.kind != core::OptionInfo::Kind::integer || value != row.get(none);
    const bool of_flavors = row.info.name != "sequence" && row.info.name != "architecture" &&
                            !row.info.name.starts_with("frozen") && row.info.name != "teacher" &&
                            row.info.name != "inference" && !row.info.name.starts_with("lora_");
    if (said && of_flavors) settings.emplace_back(row.info.name, import::value_text(value));
  }
  return settings;
}

}  // namespace manyworlds::experiments::jobs::torchtitan
