// Names are those of NVIDIA-NeMo/Megatron-Bridge @067f987, src/megatron/bridge/peft (lora.py, canonical_lora.py), of
// NVIDIA/NeMo @8cfedd7, nemo/collections/nlp/parts/peft_config.py, and of the classes of huggingface/transformers.
#include "experiments/jobs/low_rank_pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "core/workload/model/modules.hpp"
#include "experiments/jobs/named_model.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::int64_t kMaxRank = 100'000;

/// A linear layer as a framework calls it in a layer, and what model.lora_weights calls it.
struct Module {
  std::string_view name, weights;
  bool by_pattern = true;  // a pattern names it too
};

constexpr std::array<Module, 16> kMegatron{{{"self_attention.linear_qkv", "linear_qkv"},
                                            {"self_attention.linear_proj", "linear_proj"},
                                            {"mlp.linear_fc1", "linear_fc1"},
                                            {"mlp.linear_fc2", "linear_fc2"},
                                            {"self_attention.linear_q", "linear_q"},
                                            {"self_attention.linear_k", "linear_k"},
                                            {"self_attention.linear_v", "linear_v"},
                                            {"mlp.linear_fc1_gate", "linear_fc1_gate"},
                                            {"mlp.linear_fc1_up", "linear_fc1_up"},
                                            // NeMo's first version
                                            {"attention_qkv", "linear_qkv", false},
                                            {"attention_dense", "linear_proj", false},
                                            {"mlp_fc1", "linear_fc1", false},
                                            {"mlp_fc2", "linear_fc2", false},
                                            {"attention", "linear_qkv linear_proj", false},
                                            {"mlp", "linear_fc1 linear_fc2", false},
                                            {"all", "linear_qkv linear_proj linear_fc1 linear_fc2", false}}};

constexpr std::array<Module, 15> kHuggingFace{
    {{"self_attn.q_proj", "linear_q"},
     {"self_attn.k_proj", "linear_k"},
     {"self_attn.v_proj", "linear_v"},
     {"self_attn.o_proj", "linear_proj"},
     {"mlp.gate_proj", "linear_fc1_gate"},
     {"mlp.up_proj", "linear_fc1_up"},
     {"mlp.down_proj", "linear_fc2"},
     {"all-linear", "linear_q linear_k linear_v linear_proj linear_fc1_gate linear_fc1_up linear_fc2", false},
     // Phi-3, Baichuan, Falcon and GPT-NeoX
     {"self_attn.qkv_proj", "linear_qkv", false},
     {"self_attn.W_pack", "linear_qkv", false},
     {"self_attention.query_key_value", "linear_qkv", false},
     {"self_attention.dense", "linear_proj", false},
     {"mlp.gate_up_proj", "linear_fc1", false},
     {"mlp.dense_h_to_4h", "linear_fc1", false},
     {"mlp.dense_4h_to_h", "linear_fc2", false}}};

std::span<const Module> modules_of(ModuleNames names) {
  return names == ModuleNames::megatron ? std::span<const Module>(kMegatron) : kHuggingFace;
}

/// Whether `word` names a module: by its whole name, by the end of it behind a point, or, with * before, by any end.
bool names_module(std::string_view word, const Module& module) {
  if (word == module.name) return true;
  const std::string whole = "." + std::string(module.name);
  if (!word.starts_with('*')) return whole.ends_with("." + std::string(word));
  return module.by_pattern && whole.ends_with(word.substr(word.find_first_not_of('*')));
}

[[noreturn]] void fail_unknown(const Text& module, ModuleNames names) {
  const bool some_layers = module.text.find_first_of("0123456789", module.text.find("layers")) != std::string::npos &&
                           module.text.find("layers") != std::string::npos;
  if (some_layers || module.text.find('*', 1) != std::string::npos)
    fail_at(module.place,
            fmt::format("modules {}: pairs of low rank in some layers alone are not read; model.architecture has them",
                        module.text));
  std::vector<std::string_view> known;
  for (const Module& one : modules_of(names)) known.push_back(one.name.substr(one.name.rfind('.') + 1));
  fail_at(module.place, fmt::format("modules {}: pairs of low rank stand beside linear layers of attention and "
                                    "feed-forward networks; known are {}",
                                    module.text, fmt::join(known, ", ")));
}

/// Returns the weights that a word names; "all" of nothing is refused.
std::set<std::string> weights_of(const Text& module, ModuleNames names) {
  std::set<std::string> weights;
  const bool is_pattern = module.text.find_first_not_of('*') != std::string::npos;
  if (is_pattern && module.text.find("layers.") == std::string::npos)
    for (const Module& one : modules_of(names))
      if (names_module(module.text, one))
        for (const std::string_view word : import::words_of(one.weights, " ")) weights.emplace(word);
  if (weights.empty()) fail_unknown(module, names);
  return weights;
}

/// A layer without a gate is one projection, whose pair is that of the layer.
void without_gate(std::set<std::string>& weights) {
  weights.erase("linear_fc1_gate");
  if (weights.erase("linear_fc1_up") > 0) weights.insert("linear_fc1");
}

bool has_projection(const std::set<std::string>& weights) {
  return std::any_of(weights.begin(), weights.end(), [](const std::string& one) {
    return one == "linear_q" || one == "linear_k" || one == "linear_v" || one.starts_with("linear_fc1_");
  });
}

}  // namespace

std::vector<Text> module_words(const std::string& name, const import::Node& node) {
  std::vector<Text> words;
  for (const import::Node& item : node.items) {
    if (item.kind != import::Node::Kind::scalar) item.fail(fmt::format("'{}' must be a list of names", name));
    words.push_back({item.text, {item.file, item.line}});
  }
  if (node.kind == import::Node::Kind::mapping) node.fail(fmt::format("'{}' must be a list of names", name));
  if (node.kind == import::Node::Kind::scalar)
    for (const std::string_view word : import::words_of(node.text, ", []'\""))
      words.push_back({std::string(word), {node.file, node.line}});
  return words;
}

std::vector<Text> megatron_modules(bool canonical, const Place& place) {
  std::vector<Text> modules;
  for (const char* name : {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"})
    if (!canonical || std::string_view(name) == "linear_proj" || std::string_view(name) == "linear_fc2")
      modules.push_back({name, place});
  if (canonical)
    for (const char* name : {"linear_q", "linear_k", "linear_v", "linear_fc1_up", "linear_fc1_gate"})
      modules.push_back({name, place});
  return modules;
}

void put_pairs(Job& job, const LowRankPairs& pairs, ModuleNames names) {
  if (pairs.rank.text.empty()) return;
  const auto rank = shell::integer_of(pairs.rank.text);
  if (!rank || *rank < 1 || *rank > kMaxRank)
    fail_at(pairs.rank.place, fmt::format("the rank of pairs must be a whole number from 1 to {}, not '{}'", kMaxRank,
                                          shell::shown(pairs.rank.text)));
  std::set<std::string> weights;
  for (const Text& one : pairs.modules) weights.merge(weights_of(one, names));
  const std::string activation = value_in(job.settings, "model.activation");
  if (activation != "swiglu" && activation != "geglu") without_gate(weights);
  if (weights.empty()) fail_at(pairs.rank.place, "no module has a pair of low rank");
  std::vector<std::string> listed;
  for (const std::string& name : core::workload::lora_weight_names())
    if (weights.contains(name)) listed.push_back(name);
  const Place& place = pairs.modules.front().place;
  job.settings.push_back({"model.lora_rank", pairs.rank.text, pairs.rank.place});
  job.settings.push_back({"model.lora_weights", fmt::format("{}", fmt::join(listed, "+")), place});
  if (pairs.magnitudes) job.settings.push_back({"model.lora_magnitudes", "true", place});
  if (names != ModuleNames::hugging_face) return;
  if (has_projection(weights)) job.settings.push_back({"strategy.stack.projection_fusion", "false", place});
  const bool by_pattern = std::any_of(pairs.modules.begin(), pairs.modules.end(),
                                      [](const Text& one) { return one.text.starts_with('*'); });
  if (by_pattern)
    job.notes.emplace_back(
        "assumed: linear layers have the names of Llama's: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and "
        "down_proj");
}

}  // namespace manyworlds::experiments::jobs
