// Keys of configurations whose values are of another kind, or say nothing that is understood: refused by name in every
// family, whether or not they matter to a step.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/decoders/families.hpp"
#include "experiments/model_keys/activations.hpp"
#include "experiments/model_keys/key_kinds.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/config_refusals.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using experiments::testing::config_refusal;
using models::ModelConfig;
using Json = nlohmann::ordered_json;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/models/";

/// Keys that have no influence on cost and whose values may be of any kind. There are none: every key that is known has
/// a kind.
const std::vector<std::string> kOfAnyKind;

/// Returns a value of another kind: text for a number, an object for text, a list for true and false, a number for a
/// list or an object.
Json of_another_kind(const Json& value) {
  if (value.is_boolean()) return Json::array({true});
  if (value.is_number()) return "high";
  if (value.is_string()) return Json{{"a", 1}};
  return 0.5;
}

/// Checks that `document`, in which a value of `mapping` takes turns to be of another kind, is refused by its key.
/// Returns how many keys were tried.
int check_kinds(const Json& document, const std::string& member, const std::string& file) {
  int tried = 0;
  for (const auto& [key, value] : (member.empty() ? document : document.at(member)).items()) {
    if (value.is_null() || std::find(kOfAnyKind.begin(), kOfAnyKind.end(), key) != kOfAnyKind.end()) continue;
    Json changed = document;
    (member.empty() ? changed : changed.at(member))[key] = of_another_kind(value);
    INFO(file << " " << member << " " << key << " " << of_another_kind(value));
    const std::string said = config_refusal(changed.dump(0), file);
    CHECK(said.find(fmt::format("'{}'", key)) != std::string::npos);
    ++tried;
  }
  return tried;
}

/// Returns a text with null in place of Python's Infinity, which JSON does not have.
std::string without_infinity(std::string text) {
  constexpr std::string_view kInfinity = "Infinity";
  for (std::size_t at = text.find(kInfinity); at != std::string::npos; at = text.find(kInfinity, at))
    text.replace(at, kInfinity.size(), "null");
  return text;
}

std::string refusal(const std::string& keys) {
  return config_refusal("{\n" + keys + "}");
}

ModelConfig parsed(const std::string& keys) {
  return models::parse_model_config("{" + keys + "}", "config.json");
}

bool has_note(const ModelConfig& config, const std::string& key, const std::string& part) {
  return std::any_of(config.without_effect.begin(), config.without_effect.end(), [&](const models::ConfigNote& note) {
    return note.key == key && note.text.find(part) != std::string::npos;
  });
}

std::string carried(const ModelConfig& config, const std::string& name) {
  for (const models::CarriedArgument& one : config.carried)
    if (one.name == name && !one.values.empty()) return one.values.front();
  return "";
}

}  // namespace

TEST_CASE("a value of another kind is refused by its key, in every sample and whatever the key says") {
  int tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().filename().string();
    const Json document = Json::parse(without_infinity(import::read_text(entry.path().string(), 1u << 24)));
    tried += check_kinds(document, "", name);
    for (const char* member : {"text_config", "vision_config"})
      if (document.contains(member)) tried += check_kinds(document, member, name);
  }
  CHECK(tried > 500);
}

TEST_CASE("every family refuses keys that it does not need if their values are of another kind") {
  // What a file of these keys alone lacks is said first; sizes of Glm4MoeConfig go with a head_dim that it does not
  // have.
  for (const models::Family& family : models::families()) {
    if (family.defaults_of.empty() || family.type == "parakeet_ctc" || family.type == "clip_text_model" ||
        family.type == "glm4_moe")
      continue;
    for (const auto& [key, value] : {std::pair("rope_theta", "\"high\""),
                                     {"initializer_range", "[0.02]"},
                                     {"use_cache", "\"yes\""},
                                     {"torch_dtype", "16"},
                                     {"eos_token_id", "{}"},
                                     {"id2label", "false"}}) {
      INFO(family.type << " " << key);
      const std::string said = refusal(fmt::format("\"model_type\": \"{}\",\n\"{}\": {}", family.type, key, value));
      CHECK(
          (said.find(fmt::format("'{}'", key)) != std::string::npos || said.find(" is missing") != std::string::npos));
    }
  }
}

TEST_CASE("what a value must be is said with its key and line") {
  const std::string llama = "\"model_type\": \"llama\",\n";
  CHECK(refusal(llama + "\"rope_theta\": \"high\"") ==
        "config.json:3: 'rope_theta' must be a number above 0 or a list of numbers, not the text \"high\"");
  CHECK(refusal(llama + "\"rope_theta\": -1") ==
        "config.json:3: 'rope_theta' must be a number above 0 or a list of numbers, not '-1'");
  CHECK(refusal(llama + "\"max_position_embeddings\": 2.5") ==
        "config.json:3: 'max_position_embeddings' must be an integer of 0 or more, not '2.5'");
  CHECK(refusal(llama + "\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": \"two\"}") ==
        "config.json:3: 'rope_scaling': 'factor' must be a number above 0, not the text \"two\"");
  CHECK(refusal(llama + "\"attention_dropout\": 2").find("'attention_dropout' must be a number from 0 to 1, not '2'") !=
        std::string::npos);
  CHECK(refusal(llama + "\"layer_types\": \"full_attention\"").find("'layer_types'") != std::string::npos);
  CHECK(refusal("\"model_type\": \"dbrx\", \"attn_config\": {\"clip_qkv\": \"8\"}") ==
        "config.json:2: 'attn_config': 'clip_qkv' must be a number, not the text \"8\"");
  CHECK(refusal("\"model_type\": \"gptj\", \"rotary_dim\": 512") ==
        "config.json:2: 'rotary_dim' is 512, more than a head is wide, 256");
  CHECK(refusal("\"model_type\": \"modernbert\", \"local_attention\": 0").find("'local_attention' is 0") !=
        std::string::npos);
  CHECK(refusal("\"model_type\": \"gemma2\", \"sliding_window\": 0").find("'sliding_window' is 0") !=
        std::string::npos);
}

TEST_CASE("an unknown key is told or refused whatever its value") {
  for (const char* value : {"false", "null", "0", "[]", "\"\"", "\"x\""}) {
    INFO(value);
    CHECK(has_note(parsed(fmt::format(R"("model_type": "llama", "our_tag": {})", value)), "our_tag", "not known"));
    CHECK(has_note(parsed(fmt::format(R"("model_type": "llama", "rope_scaling": {{"our_tag": {}}})", value)),
                   "rope_scaling.our_tag", "not known"));
  }
  CHECK(has_note(parsed(R"("model_type": "llama", "our_sparse_gate": false)"), "our_sparse_gate", "not known"));
  CHECK(refusal("\"model_type\": \"llama\", \"our_sparse_gate\": true").find("may change its layers") !=
        std::string::npos);
  CHECK(has_note(parsed(R"("model_type": "mpt", "attn_config": {"our_gate": false})"), "attn_config.our_gate",
                 "not known"));
}

TEST_CASE("activations are names of one table, and what they mean is the network's") {
  using models::Function;
  CHECK(models::function_named("gelu_new") == Function::gelu);
  CHECK(models::function_named("swish") == Function::silu);
  CHECK(models::function_named("relu2") == Function::squared_relu);
  CHECK(models::function_named("tanh") == Function::other);
  CHECK_FALSE(models::function_named("gelu_banana"));
  for (const auto& [family, key] : {std::pair("gptj", "activation_function"),
                                    {"codegen", "activation_function"},
                                    {"gpt2", "activation_function"},
                                    {"gpt_neo", "activation_function"},
                                    {"opt", "activation_function"},
                                    {"bart", "activation_function"},
                                    {"falcon", "activation"},
                                    {"distilbert", "activation"},
                                    {"llama", "hidden_act"},
                                    {"bert", "hidden_act"},
                                    {"mamba2", "hidden_act"}}) {
    INFO(family);
    const std::string file = fmt::format(R"("model_type": "{}", "{}": )", family, key);
    CHECK(refusal(file + "\"gelu_banana\"").find(fmt::format("'{}'", key)) != std::string::npos);
    CHECK(refusal(file + "\"gelu_new\"") == "(no error)");
  }
  CHECK(parsed(R"("model_type": "falcon", "activation": "relu")").model().activation ==
        core::workload::Activation::relu);
  CHECK(parsed(R"("model_type": "gptj", "activation_function": "relu")").model().activation ==
        core::workload::Activation::relu);
  CHECK(has_note(parsed(R"("model_type": "falcon", "activation": "silu")"), "activation", "the same bytes as GELU"));
  CHECK(refusal("\"model_type\": \"gpt2\", \"activation_function\": \"tanh\"").find("not modelled") !=
        std::string::npos);
}

TEST_CASE("which layers of a Cohere2 have windows is what its older keys say, or they are refused") {
  const std::string cohere = "\"model_type\": \"cohere2\", \"num_hidden_layers\": 4,\n";
  CHECK(refusal(cohere + R"("order_of_interleaved_layers": "local_attn_first", "layer_switch": 4)") == "(no error)");
  CHECK(refusal(cohere + R"("order_of_interleaved_layers": "global_attn_first")")
            .find("config.json:3: 'order_of_interleaved_layers' is 'global_attn_first'") == 0);
  CHECK(refusal(cohere + R"("layer_switch": 2)").find("config.json:3: 'layer_switch' is 2") == 0);
  CHECK(refusal(cohere + R"("sliding_window_pattern": 2, "layer_switch": 2)") == "(no error)");
  CHECK(refusal(cohere + R"("position_embedding_type": "learned")").find("'position_embedding_type' is 'learned'") !=
        std::string::npos);
}

TEST_CASE("files without positions have those of their family's class") {
  // transformers, models/*/configuration_*.py: the defaults of max_position_embeddings, or n_positions.
  for (const auto& [family, positions] : {std::pair<const char*, std::int64_t>("falcon", 2'048),
                                          {"llama", 2'048},
                                          {"gpt_neox", 2'048},
                                          {"phi", 2'048},
                                          {"granite", 2'048},
                                          {"olmo2", 2'048},
                                          {"deepseek_v3", 4'096},
                                          {"gptj", 2'048},
                                          {"gpt2", 1'024},
                                          {"gemma", 8'192},
                                          {"mistral", 131'072},
                                          {"qwen3", 32'768}}) {
    INFO(family);
    const ModelConfig config = parsed(fmt::format(R"("model_type": "{}")", family));
    CHECK(config.max_positions == positions);
    CHECK(config.sequence == std::min<std::int64_t>(positions, 4'096));
    CHECK(carried(config, "max-position-embeddings") == std::to_string(positions));
    CHECK(std::any_of(config.carried_defaults.begin(), config.carried_defaults.end(),
                      [&](const models::ConfigNote& note) { return note.text == std::to_string(positions); }));
  }
  CHECK(parsed(R"("model_type": "deepseek_v2", "num_experts_per_tok": 6)").sequence == 2'048);
  CHECK(parsed(R"("model_type": "dbrx")").sequence == 2'048);
  CHECK(parsed(R"("model_type": "whisper")").max_positions == 448);
  // Positions of RoBERTa begin behind the row of padding, whose number is 1.
  const ModelConfig roberta = parsed(R"("model_type": "roberta", "num_hidden_layers": 12, "hidden_size": 768,
      "num_attention_heads": 12, "intermediate_size": 3072, "vocab_size": 50265, "max_position_embeddings": 514)");
  CHECK(roberta.max_positions == 512);
  CHECK(carried(parsed(R"("model_type": "gptj")"), "rotary-percent") == "0.25");  // 64 of 256
  CHECK(carried(parsed(R"("model_type": "apertus")"), "rope-scaling-factor") == "8.0");
}

TEST_CASE("heads that divide no width are refused in the same words in every family") {
  for (const auto& [keys, width, heads] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {R"("model_type": "llama", "num_attention_heads": 33)", "'hidden_size' is 4096",
            "'num_attention_heads', 33"},
           {R"("model_type": "gpt2", "n_head": 7)", "'n_embd' is 768", "'n_head', 7"},
           {R"("model_type": "falcon", "num_attention_heads": 70)", "'hidden_size' is 4544",
            "'num_attention_heads', 70"},
           {R"("model_type": "bloom", "n_head": 7)", "'hidden_size' is 64", "'n_head', 7"},
           {R"("model_type": "mpt", "n_heads": 15)", "'d_model' is 2048", "'n_heads', 15"},
           {R"("model_type": "gpt_neo", "num_heads": 15)", "'hidden_size' is 2048", "'num_heads', 15"},
           {R"("model_type": "distilbert", "n_heads": 7)", "'dim' is 768", "'n_heads', 7"},
           {R"("model_type": "bart", "encoder_attention_heads": 7)", "'d_model' is 1024",
            "'encoder_attention_heads', 7"},
           {R"("model_type": "bart", "decoder_attention_heads": 7)", "'d_model' is 1024",
            "'decoder_attention_heads', 7"},
           {R"("model_type": "whisper", "decoder_attention_heads": 7)", "'d_model' is 384",
            "'decoder_attention_heads', 7"},
           {R"("model_type": "bert", "num_attention_heads": 7)", "'hidden_size' is 768", "'num_attention_heads', 7"}}) {
    INFO(keys);
    CHECK(refusal(keys).find(fmt::format("{}, no multiple of {}", width, heads)) != std::string::npos);
  }
  for (const auto& [keys, said] : {std::pair(R"("model_type": "llama", "num_key_value_heads": 5)",
                                             "'num_key_value_heads' is 5, which does not divide 'num_attention_heads'"),
                                   {R"("model_type": "llama", "num_key_value_heads": 0)",
                                    "'num_key_value_heads' is 0, which does not divide 'num_attention_heads'"},
                                   {R"("model_type": "dbrx", "attn_config": {"kv_n_heads": 3})",
                                    "'kv_n_heads' is 3, which does not divide 'n_heads', 16"},
                                   {R"("model_type": "falcon", "new_decoder_architecture": true, "num_kv_heads": 3)",
                                    "'num_kv_heads' is 3, which does not divide 'num_attention_heads', 71"}}) {
    INFO(keys);
    CHECK(refusal(keys).find(said) != std::string::npos);
  }
}

TEST_CASE("a misspelt key is told before what its default contradicts") {
  const std::string said = refusal(R"("model_type": "qwen2", "num_attention_heads": 28, "num_key_value_head": 4)");
  CHECK(said.find("'num_key_value_head' is not known of a qwen2; did you mean 'num_key_value_heads'?") !=
        std::string::npos);
  CHECK(said.find("does not divide") == std::string::npos);
}
