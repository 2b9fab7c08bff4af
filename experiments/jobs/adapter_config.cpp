// Keys of huggingface/peft v0.17.0, src/peft/tuners/lora/config.py and src/peft/config.py.
#include "experiments/jobs/adapter_config.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "experiments/jobs/given_keys.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/json_tree.hpp"

namespace manyworlds::experiments::jobs {
namespace {

namespace fs = std::filesystem;
using import::Node;

constexpr const char* kName = "adapter_config.json";

const KnownNames& adapter_keys() {
  static const KnownNames keys(
      "PEFT", NameKind::key,
      {{"r", "model.lora_rank"},
       {"target_modules", "model.lora_weights", "names of modules, or all-linear"},
       {"base_model_name_or_path", "model.name"}},
      {{Fate::irrelevant, "scales, initial values, and what is saved",
        "lora_alpha alpha_pattern use_rslora init_lora_weights loftq_config eva_config corda_config task_type "
        "inference_mode revision auto_mapping fan_in_fan_out megatron_config megatron_core layers_pattern "
        "qalora_group_size runtime_config peft_version"},
       {Fate::noted, "pairs of low rank drop no elements here", "lora_dropout=0/0.0"},
       {Fate::refused, "magnitudes of weights (DoRA) of projections are not modelled", "use_dora=false"},
       {Fate::refused, "only pairs of low rank (LORA) are modelled", "peft_type=LORA"},
       {Fate::refused, "pairs of one rank stand beside the modules of all layers, and nothing else is trained",
        "bias=none lora_bias=false modules_to_save layers_to_transform rank_pattern exclude_modules layer_replication "
        "target_parameters trainable_token_indices use_qalora=false alora_invocation_tokens arrow_config "
        "ensure_weight_tying=false use_bdlora kasa_config monteclora_config velora_config lora_ga_config"}});
  return keys;
}

bool is_empty(const Node& node) {
  const bool list = node.kind == Node::Kind::mapping || node.kind == Node::Kind::sequence;
  return list && node.entries.empty() && node.items.empty();
}

}  // namespace

bool is_adapter_config(const std::string& path) {
  return fs::path(path).filename() == kName;
}

AdapterConfig read_adapter_config(const std::string& path, Job& job) {
  const Node root = import::parse_json_tree(import::read_text(path), path);
  std::vector<GivenKey> given = flattened(root, adapter_keys());
  std::erase_if(given, [](const GivenKey& one) { return is_empty(one.value); });
  const GivenKeys keys(adapter_keys(), given);
  keys.check(job);
  for (const char* name : {"r", "target_modules"})
    if (!keys.given(name)) root.fail(fmt::format("it lacks '{}'", name));
  AdapterConfig adapter;
  adapter.pairs.rank = {std::to_string(keys.count("r", 0, 1)), keys.place("r")};
  if (const Node& modules = *keys.find("target_modules");
      modules.kind == Node::Kind::scalar && modules.text != "all-linear")
    keys.fail("target_modules", fmt::format(" '{}': regular expressions are not read; give a list", modules.text));
  adapter.pairs.modules = module_words("target_modules", *keys.find("target_modules"));
  std::error_code error;
  const fs::path beside = fs::path(path).parent_path() / "config.json";
  if (fs::is_regular_file(beside, error))
    adapter.base = {beside.string(), {}};
  else
    adapter.base = {keys.text("base_model_name_or_path"), keys.place("base_model_name_or_path")};
  if (adapter.base.name.empty())
    root.fail("it names no model (base_model_name_or_path), and no config.json is beside it");
  return adapter;
}

}  // namespace manyworlds::experiments::jobs
