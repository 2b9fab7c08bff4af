// Reads a launch of Megatron-Bridge as the arguments of Megatron-LM that its overrides stand for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.hpp"
#include "experiments/bridge/bridge.hpp"
#include "experiments/bridge/fields.hpp"
#include "experiments/bridge/recipes.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/megatron/launch_size.hpp"
#include "experiments/shell/interpreter.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::string_view kProgram = "run_recipe.py";
constexpr const char* kLongRecipe = "vanilla_gpt_pretrain_1gpu_h100_bf16_config";
/// Sections whose fields change neither time nor memory of a step, unless Megatron-LM has an argument of their name.
constexpr std::array<std::string_view, 14> kHarmless{
    "train", "validation", "optimizer", "scheduler",           "dataset",   "logger",  "tokenizer", "checkpoint",
    "rng",   "dist",       "profiling", "rerun_state_machine", "straggler", "env_vars"};
/// Fields that follow from others, or that concern what is not simulated.
constexpr std::array<std::string_view, 4> kFollows{"model.seq_length", "model.batch_p2p_comm",
                                                   "model.use_te_rng_tracker", "model.should_pad_vocab"};
/// Fields of the section of pairs that change no step, that are told unless they are as here, and that have to be so.
constexpr std::string_view kPairsHarmless = "alpha dropout_position lora_A_init_method lora_B_init_method";
constexpr std::string_view kPairsNoted =
    "dropout=0 dropout=0.0 a2a_experimental=false a2a_experimental=False "
    "sequence_parallel_input_regather=false "
    "sequence_parallel_input_regather=False";
constexpr std::string_view kPairsFixed =
    "normalize_moe_lora=false experts_shared_outer_loras=false "
    "share_expert_adapters=true";
/// Options beside overrides: what run_recipe.py sets for them, "": nothing.
constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"-ms", "train.train_iters"},
    {"--max_steps", "train.train_iters"},
    {"-gb", "train.global_batch_size"},
    {"--global_batch_size", "train.global_batch_size"},
    {"-mb", "train.micro_batch_size"},
    {"--micro_batch_size", "train.micro_batch_size"},
    {"-sl", "dataset.seq_length"},
    {"--seq_length", "dataset.seq_length"},
    {"-tp", "model.tensor_model_parallel_size"},
    {"--tensor_model_parallel_size", "model.tensor_model_parallel_size"},
    {"-pp", "model.pipeline_model_parallel_size"},
    {"--pipeline_model_parallel_size", "model.pipeline_model_parallel_size"},
    {"-cp", "model.context_parallel_size"},
    {"--context_parallel_size", "model.context_parallel_size"},
    {"-vp", "model.virtual_pipeline_model_parallel_size"},
    {"--virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"},
    {"-ep", "model.expert_model_parallel_size"},
    {"--expert_model_parallel_size", "model.expert_model_parallel_size"},
    {"-etp", "model.expert_tensor_parallel_size"},
    {"--expert_tensor_parallel_size", "model.expert_tensor_parallel_size"},
    {"--recipe", ""},
    {"--model", ""},
    {"--mode", ""},
    {"--peft_scheme", ""},
    {"--pretrained-checkpoint", ""},
    {"--dataset", ""},
    {"--lr", ""},
    {"--min_lr", ""},
    {"--warmup_iters", ""},
    {"--pretrained_checkpoint", ""},
    {"--save_dir", ""},
    {"--load_dir", ""},
    {"--save_interval", ""}};

bool runs_recipe(const std::vector<Text>& words) {
  return std::any_of(words.begin(), words.end(), [](const Text& one) { return one.text.ends_with(kProgram); });
}

bool is_nothing(const std::string& value) {
  return value.empty() || value == "null" || value == "None" || value == "[]";
}

bool is_true(const std::string& value) {
  return value == "true" || value == "True" || value == "1";
}

/// Returns a value without the quotes of Hydra's notation.
std::string plain(std::string value) {
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
    value = value.substr(1, value.size() - 2);
  return value;
}

class BridgeReader {
 public:
  explicit BridgeReader(const JobFile& file) : file_(file) {}

  BridgeLaunch read(const JobOptions& options);

 private:
  void read_words(std::vector<Text> words);
  void read_recipe(const std::vector<Text>& words);
  void read_pairs();
  void convert_pairs(const std::string& name, const Text& value);
  void read_option(const std::vector<Text>& words, std::size_t& at);
  void set(const std::string& field, const std::string& value, const Place& place);
  void convert(const std::string& field, const Text& value);
  bool convert_special(const std::string& field, const Text& value);
  void convert_precision(const Text& value);
  void add(const std::string& argument, std::vector<std::string> values, const Place& place);
  void add_value(const KnownName& known, const Text& value);

  const JobFile& file_;
  std::map<std::string, Text> fields_;
  const BridgeRecipe* recipe_ = nullptr;  // null: the vanilla one
  Place recipe_place_;
  bool gated_ = false, fused_ = false;
  JobArguments result_;
  LowRankPairs pairs_;
};

BridgeLaunch BridgeReader::read(const JobOptions& options) {
  result_.kind = "a launch script of Megatron-Bridge";
  const auto sibling = [&](const std::string& name) { return import::read_text_beside(file_.path, name); };
  const shell::FollowedScript script =
      shell::follow({file_.text, file_.path, options.environment, batch_variables(file_.text), sibling, runs_recipe});
  if (script.launches.size() != 1)
    throw core::InputError(fmt::format("{} commands run {}; leave one", script.launches.size(), kProgram), file_.path);
  const auto& words = script.launches.front().words;
  const auto program =
      std::find_if(words.begin(), words.end(), [](const Text& one) { return one.text.ends_with(kProgram); });
  read_words({program + 1, words.end()});
  std::vector<std::string> texts{file_.text};
  for (const Text& one : script.texts) texts.push_back(one.text);
  read_launch_size({words.begin(), program}, texts, result_);
  BridgeLaunch launch{std::move(result_), "", "", std::move(pairs_)};
  if (recipe_ == nullptr) return launch;
  launch.model = recipe_->model;
  if (const Text& length = fields_["dataset.seq_length"]; !length.place.file) launch.sequence = length.text;
  return launch;
}

/// Finds the recipe: --recipe names it, or --model and --mode do, as run_recipe.py puts them together.
void BridgeReader::read_recipe(const std::vector<Text>& words) {
  std::map<std::string, Text> given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].text.find('=');
    const std::string name = words[i].text.substr(0, equals);
    if (name != "--recipe" && name != "--model" && name != "--mode" && name != "--peft_scheme") continue;
    if (equals != std::string::npos)
      given[name] = {words[i].text.substr(equals + 1), words[i].place};
    else if (i + 1 < words.size())
      given[name] = {words[i + 1].text, words[i].place};
  }
  const Text mode = given["--mode"];
  pairs_.magnitudes = mode.text == "dora" || given["--peft_scheme"].text == "dora";
  Text recipe = given["--recipe"];
  if (recipe.text.empty() && given.contains("--model")) {
    if (mode.text.empty()) fail_at(given["--model"].place, "--model needs --mode, which says the recipe of it");
    recipe = {given["--model"].text +
                  (mode.text == "lora" || mode.text == "dora" ? "_peft_config" : "_" + mode.text + "_config"),
              given["--model"].place};
  }
  if (recipe.text.empty())
    throw core::InputError(fmt::format("it names no recipe; read is --recipe {}", kBridgeRecipe), file_.path);
  recipe_ = find_recipe(recipe.text);
  recipe_place_ = recipe.place;
  if (recipe_ == nullptr && recipe.text != kBridgeRecipe && recipe.text != kLongRecipe)
    fail_at(recipe.place,
            fmt::format("--recipe {} is a program in Python, which is not run here; read is {} with overrides, or one "
                        "of {}",
                        recipe.text, kBridgeRecipe, recipe_names()));
}

/// Sets the recipe's pairs, unless overrides say otherwise.
void BridgeReader::read_pairs() {
  if (recipe_ == nullptr) return;
  if (pairs_.rank.text.empty()) pairs_.rank = {std::string(recipe_->rank), recipe_place_};
  if (!pairs_.modules.empty()) return;
  if (recipe_->modules.empty())
    pairs_.modules = megatron_modules(false, recipe_place_);
  else
    pairs_.modules = {{std::string(recipe_->modules), recipe_place_}};
}

void BridgeReader::convert_pairs(const std::string& name, const Text& value) {
  const auto listed = [](std::string_view list, const std::string& word) {
    const auto words = import::words_of(list, " ");
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view one) { return one.substr(0, one.find('=')) == word; });
  };
  const auto as_given = [&](std::string_view list) {
    const auto words = import::words_of(list, " ");
    return std::find(words.begin(), words.end(), name + "=" + value.text) != words.end();
  };
  if (recipe_ == nullptr)
    fail_at(value.place, fmt::format("peft.{}: the recipe {} has no pairs of low rank", name, kBridgeRecipe));
  if (name == "dim") return void(pairs_.rank = value);
  if (name == "target_modules") {
    for (const std::string_view word : import::words_of(value.text, ", []'\""))
      pairs_.modules.push_back({std::string(word), value.place});
    return;
  }
  if (listed(kPairsHarmless, name) || is_nothing(value.text) || as_given(kPairsFixed) || as_given(kPairsNoted)) return;
  if (!listed(kPairsNoted, name))
    fail_at(value.place, fmt::format("peft.{}={}: pairs of low rank of this form are not modelled", name, value.text));
  result_.notes.push_back(fmt::format("not modelled: peft.{} of pairs of low rank", name));
}

void BridgeReader::read_words(std::vector<Text> words) {
  for (const BridgeField& one : bridge_fields())
    if (*one.otherwise != '\0' || one.inverted) set(one.field, *one.otherwise != '\0' ? one.otherwise : "false", {});
  set("mixed_precision", "bf16_mixed", {});
  read_recipe(words);
  if (recipe_ != nullptr)
    for (const auto& [field, value] : recipe_fields(*recipe_)) set(field, value, {});
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Text& word = words[i];
    if (!shell::is_known(word.text))
      fail_at(word.place, fmt::format("'{}' follows from {}; give it with --env NAME=VALUE", shell::shown(word.text),
                                      shell::why_unknown(word.text)));
    const std::size_t equals = word.text.find('=');
    if (word.text.starts_with('-'))
      read_option(words, i);
    else if (equals == std::string::npos)
      fail_at(word.place, fmt::format("'{}' stands where KEY=VALUE would", word.text));
    else
      set(word.text.substr(word.text.find_first_not_of('+'), equals - word.text.find_first_not_of('+')),
          plain(word.text.substr(equals + 1)), word.place);
  }
  gated_ = fields_.count("model.gated_linear_unit") > 0 && is_true(fields_["model.gated_linear_unit"].text);
  for (const auto& [field, value] : fields_) convert(field, value);
  read_pairs();
  if (!fused_) add(gated_ ? "no-bias-swiglu-fusion" : "no-bias-gelu-fusion", {}, {});
}

void BridgeReader::read_option(const std::vector<Text>& words, std::size_t& at) {
  const Text& word = words[at];
  const std::size_t equals = word.text.find('=');
  const std::string name = word.text.substr(0, equals);
  const auto known =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const auto& one) { return one.first == name; });
  if (known == std::end(kOptions))
    fail_at(word.place, fmt::format("{} is no option of {} that is known here", name, kProgram));
  if (equals == std::string::npos && at + 1 == words.size()) fail_at(word.place, name + " lacks its value");
  const std::string value = equals == std::string::npos ? words[++at].text : word.text.substr(equals + 1);
  if (!known->second.empty()) set(std::string(known->second), value, word.place);
}

void BridgeReader::set(const std::string& field, const std::string& value, const Place& place) {
  fields_[field] = {value, place};
}

void BridgeReader::add(const std::string& argument, std::vector<std::string> values, const Place& place) {
  Argument one{argument, {}, place};
  for (std::string& value : values) one.values.push_back({std::move(value), place});
  result_.arguments.push_back(std::move(one));
}

void BridgeReader::add_value(const KnownName& known, const Text& value) {
  if (is_nothing(value.text)) return;
  if (known.takes == Takes::nothing) {
    if (is_true(value.text)) add(known.name, {}, value.place);
    return;
  }
  std::string text = value.text;
  const bool list = text.starts_with('[') && text.ends_with(']');
  if (list && known.name == "window-size") text = text.substr(1, text.size() - 2);
  add(known.name, {text}, value.place);
}

void BridgeReader::convert_precision(const Text& value) {
  const std::string& name = value.text;
  add(name.starts_with("fp16") ? "fp16" : "bf16", {}, value.place);
  if (name == "bf16_mixed" || name == "bf16-mixed") return;
  if (name == "fp16_mixed" || name == "fp16-mixed") return;  // reduces in 16 bits, as Megatron-LM does with --fp16
  const std::string recipe = translated(
      "bf16_with_fp8_delayed_scaling_mixed=delayed bf16_with_fp8_current_scaling_mixed=tensorwise "
      "bf16_with_mxfp8_mixed=mxfp8 bf16_with_nvfp4_mixed=nvfp4",
      name);
  if (recipe.empty()) fail_at(value.place, fmt::format("mixed_precision={} is not modelled", name));
  if (recipe == "nvfp4") return add("fp4-format", {"e2m1"}, value.place);
  add("fp8-format", {"hybrid"}, value.place);
  add("fp8-recipe", {recipe}, value.place);
}

/// Converts a field that is not one argument; returns whether it is one of those.
bool BridgeReader::convert_special(const std::string& field, const Text& value) {
  if (field == "mixed_precision") return convert_precision(value), true;
  if (field.starts_with("peft.")) return convert_pairs(field.substr(5), value), true;
  if (field == "model.bias_activation_fusion") return fused_ = is_true(value.text), true;
  if (field == "model.num_query_groups" && !is_nothing(value.text)) {
    add("group-query-attention", {}, value.place);
    add("num-query-groups", {value.text}, value.place);
    return true;
  }
  if (field == "model.gated_linear_unit") {
    if (gated_) add("swiglu", {}, value.place);
    return true;
  }
  if (field == "model.activation_func") {
    const char* expected = gated_ ? "silu" : "gelu";
    if (value.text != expected && (gated_ || value.text != "squared_relu"))
      fail_at(value.place, fmt::format("{}={} is not modelled here; known is {}", field, value.text, expected));
    return true;
  }
  return std::find(kFollows.begin(), kFollows.end(), field) != kFollows.end();
}

void BridgeReader::convert(const std::string& field, const Text& value) {
  if (convert_special(field, value)) return;
  for (const BridgeField& one : bridge_fields()) {
    if (one.field != field) continue;
    const KnownName* known = find_argument(one.argument);
    MANYWORLDS_CHECK(known != nullptr, "no argument '{}'", one.argument);
    return add_value(*known, one.inverted ? Text{is_true(value.text) ? "false" : "true", value.place} : value);
  }
  const std::size_t point = field.rfind('.');
  std::string name = point == std::string::npos ? field : field.substr(point + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  if (const KnownName* known = find_argument(name)) return add_value(*known, value);
  for (const char* prefix : {"no-", "disable-"})
    if (const KnownName* known = find_argument(prefix + name))
      return add_value(*known, {is_true(value.text) ? "false" : "true", value.place});
  if (is_nothing(value.text)) return;
  if (std::find(kHarmless.begin(), kHarmless.end(), field.substr(0, field.find('.'))) == kHarmless.end())
    fail_at(value.place, fmt::format("{} is no field of Megatron-Bridge that is known here", field));
}

}  // namespace

bool is_bridge_script(const JobFile& file) {
  return file.text.find(kProgram) != std::string::npos &&
         (file.text.find("--recipe") != std::string::npos || file.text.find("--model ") != std::string::npos);
}

BridgeLaunch bridge_launch(const JobFile& file, const JobOptions& options) {
  return BridgeReader(file).read(options);
}

JobArguments bridge_arguments(const JobFile& file, const JobOptions& options) {
  return bridge_launch(file, options).arguments;
}

}  // namespace manyworlds::experiments::jobs
