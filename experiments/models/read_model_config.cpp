#include "experiments/models/read_model_config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/workload/layer/layer_parameters.hpp"
#include "experiments/decoders/families.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/model_keys/carried_keys.hpp"
#include "experiments/model_keys/config_reader.hpp"
#include "experiments/model_keys/expert_groups.hpp"
#include "experiments/model_keys/key_kinds.hpp"
#include "experiments/model_keys/known_keys.hpp"
#include "experiments/model_keys/layer_kinds.hpp"
#include "experiments/text/listed_error.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/text/text.hpp"
#include "experiments/towers/towers.hpp"
#include "experiments/tree/json_tree.hpp"
#include "experiments/tree/scalar.hpp"

namespace manyworlds::experiments::models {
namespace {

namespace fs = std::filesystem;
using core::InputError;
using import::Node;

constexpr std::size_t kMaxConfigBytes = 1u << 24;  // quantised checkpoints list their layers
constexpr std::int64_t kUsualSequence = 4'096;     // tokens of a sample in which most of these models are trained
constexpr double kMaxParameters = 1e16;

/// Splits "config.json#text_config".
std::pair<std::string, std::string> split_member(const std::string& path) {
  const std::size_t hash = path.rfind('#');
  if (hash == std::string::npos) return {path, ""};
  return {path.substr(0, hash), path.substr(hash + 1)};
}

/// Returns the folder's name; in the cache of huggingface_hub that of the model, in models--NAME/snapshots/REVISION.
std::string folder_name(const fs::path& folder) {
  constexpr std::string_view kCached = "models--";
  const fs::path snapshots = folder.parent_path();
  const std::string cached = snapshots.parent_path().filename().string();
  return snapshots.filename() == "snapshots" && cached.starts_with(kCached) ? cached.substr(kCached.size())
                                                                            : folder.filename().string();
}

/// Returns the name of the folder of a config.json, otherwise the file's name without endings. It becomes part of the
/// names of runs, so it has letters, digits and -._+ alone.
std::string name_of(const std::string& file) {
  constexpr std::size_t kMaxName = 80;
  std::string name = fs::path(file).stem().string();
  for (const std::string_view ending : {"_config", "-config", ".config"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  std::error_code code;
  if (name == "config") name = folder_name(fs::absolute(file, code).lexically_normal().parent_path());
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::string_view("-._+").find(c) == std::string_view::npos)
      c = '-';
  if (name.size() > kMaxName) name.resize(kMaxName);
  return name.empty() || name.front() == '.' ? "model" + name : name;
}

/// The part of a document that describes the language model.
struct LanguageModel {
  const Node* config = nullptr;
  std::string member;  // where it stands; empty: the document itself
};

LanguageModel language_model(const Node& document, const std::string& file, const std::string& member) {
  if (document.kind != Node::Kind::mapping)
    throw InputError(fmt::format("a configuration must be a JSON object, not {}", import::describe(document)), file, 1);
  const std::string wanted = member.empty() ? "text_config" : member;
  const Node* inner = document.find(wanted);
  if (inner == nullptr && member.empty()) return {&document, ""};
  if (inner == nullptr) throw InputError(fmt::format("has no '{}'", wanted), file);
  if (inner->kind != Node::Kind::mapping)
    inner->fail(fmt::format("'{}' must be an object, not {}", wanted, import::describe(*inner)));
  return {inner, wanted};
}

std::string text_member(const Node& config, std::string_view key) {
  const Node* found = config.find(key);
  if (found != nullptr && found->kind == Node::Kind::sequence && !found->items.empty()) found = &found->items.front();
  return found != nullptr && found->kind == Node::Kind::scalar ? found->text : "";
}

const Family* family_named(const std::string& type) {
  for (const Family& family : families())
    if (family.type == type) return &family;
  return nullptr;
}

/// Refuses everything that was found at once, in the order of the file.
[[noreturn]] void fail_refused(const ConfigReader& reader) {
  std::vector<Refusal> all = reader.refusals();
  std::stable_sort(all.begin(), all.end(), [](const Refusal& a, const Refusal& b) { return a.line < b.line; });
  const Refusal& first = all.front();
  if (all.size() == 1) throw InputError(first.text, reader.file(), first.line);
  std::vector<std::string> items;
  for (const Refusal& one : all) items.push_back(fmt::format("line {}: {}", one.line, one.text));
  throw ListedError(fmt::format("{} of its settings cannot be modelled", all.size()), reader.file(), first.line,
                    std::move(items));
}

std::vector<std::string> family_names() {
  std::vector<std::string> known;
  for (const Family& family : families()) known.emplace_back(family.type);
  return known;
}

/// Refuses a document whose family is not said, or whose language model is missing. What its other keys mean depends on
/// both.
void require_family(const Node& document, const LanguageModel& part, const std::string& file) {
  const Node* type = part.config->find("model_type");
  const std::string of_member = part.member.empty() ? "" : fmt::format(" of '{}'", part.member);
  if (type == nullptr || type->kind == Node::Kind::null)
    throw InputError(fmt::format("'model_type'{} is missing: which family of models this is; known are {}", of_member,
                                 fmt::join(family_names(), ", ")),
                     file, part.member.empty() ? 0 : part.config->line);
  if (const std::string wrong = wrong_kind("model_type", *type); !wrong.empty()) type->fail(wrong);
  if (part.member.empty() && document.find("vision_config") != nullptr && has_text_member(type->text))
    throw InputError(fmt::format("'text_config' is missing: the language model of a {}", type->text), file, type->line);
}

[[noreturn]] void fail_unknown_family(const std::string& type, const Node& config, const std::string& file) {
  const std::vector<std::string> known = family_names();
  const Node* found = config.find("model_type");
  throw InputError(fmt::format("'model_type' is '{}', a family that is not known{}; its dimensions can be given as "
                               "model: {{layers: …, hidden: …}}",
                               type.substr(0, 60), suggestion(type, known)),
                   file, found == nullptr ? 0 : found->line);
}

/// Returns the model. What its architecture cannot be is said of the file.
core::workload::Model checked_model(const ModelConfig& config) {
  try {
    return config.model();
  } catch (const InputError& error) {
    throw InputError(fmt::format("its layers cannot be modelled: {}", error.what()), config.file);
  }
}

/// Returns the parameters of the parts of all layers, without routed experts.
double parameters_of_parts(const core::workload::Architecture& architecture) {
  std::vector<double> of_block;
  for (const core::workload::Block& block : architecture.blocks) {
    of_block.push_back(0);
    for (const core::workload::Branch& branch : block.branches) {
      const core::workload::PartParameters part = branch.part->parameters(*branch.model);
      of_block.back() += static_cast<double>(part.sharded) + static_cast<double>(part.replicated);
    }
  }
  double sum = 0;
  for (const std::uint32_t block : architecture.block_by_layer) sum += of_block[block];
  return sum;
}

/// Checks in floating point that counts fit: widths up to their limits multiply to more than 64 bits hold.
void check_size(const core::workload::Model& model, const std::string& file) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width = real(model.hidden), heads = real(model.heads);
  const double attention = heads * (real(model.key_width()) + real(model.value_width())) *
                           (2 * width + real(model.kv_rank) + real(model.query_rank));
  const double experts = std::max(real(model.experts), 1.0) * real(model.expert_ffn());
  const double networks = 3 * width * (real(model.ffn()) + experts + real(model.shared_ffn_hidden));
  const double ranks = width * (real(model.kv_rank) + real(model.query_rank) + real(model.experts));
  const double tables = width * (2 * real(model.vocabulary) + real(model.sequence));
  const double parts = model.architecture == nullptr ? 0 : parameters_of_parts(*model.architecture);
  if (real(model.layers) * (attention + networks + ranks) + tables + parts > kMaxParameters)
    throw InputError(fmt::format("its dimensions make more than {:g} parameters", kMaxParameters), file);
}

void add_sequence(ConfigReader& reader, ModelConfig& config) {
  const bool learned =
      config.find("position") != nullptr && checked_model(config).position == core::workload::Position::learned;
  const std::int64_t limit = reader.integer(kPositionKeys, 0);
  const FoundKey found = reader.find(kPositionKeys);
  if (learned && found.is_set() && limit < 1)
    reader.fail(found, fmt::format("'{}' must be 1 or more: rows of the table of positions", found.key));
  config.max_positions = limit;
  if (learned && config.sequence > 0 && found.key == "max_position_embeddings")  // less rows of padding (RoBERTa)
    config.max_positions = std::min(limit, config.sequence);
  if (config.sequence > 0) return;
  config.sequence = learned && limit > 0 ? limit : limit > 0 ? std::min(limit, kUsualSequence) : kUsualSequence;
}

/// Returns the parameters of a part, whose layers are for multi-token prediction.
std::int64_t parameters_of(const LeftOut& part, core::workload::Model model) {
  const std::int64_t before = core::workload::model_parameters(model);
  model.mtp_layers = part.layers;
  return part.parameters + core::workload::model_parameters(model) - before;
}

/// Says what is left out, and which share of the parameters that is.
void add_left_out(const ConfigReader& reader, ModelConfig& config) {
  const core::workload::Model model = config.model();
  const auto all = static_cast<double>(core::workload::model_parameters(model));
  for (const LeftOut& part : reader.left_out()) {
    const std::int64_t parameters = parameters_of(part, model);
    const double percent = 100 * static_cast<double>(parameters) / all;
    config.left_out.push_back(
        {part.key, fmt::format("{} ({} parameters, {})", part.text, count_text(parameters),
                               percent < 0.001 ? "less than 0.001 %" : fmt::format("{:.2g} %", percent))});
  }
}

/// Reads the keys of a family. Where they contradict each other, a misspelt one may be why, and is told instead.
void read_family(ConfigReader& reader, const Family& family, const Node& config, const std::string& name) {
  try {
    family.read(reader);
    read_expert_groups(reader);
  } catch (const InputError&) {
    if (refuse_misspelt_keys(reader, config, "a " + name)) fail_refused(reader);
    throw;
  }
}

}  // namespace

bool is_config_path(const std::string& name) {
  return file_of_path(name).ends_with(".json") || name.starts_with("./") || name.starts_with("../") ||
         name.starts_with("/");
}

std::string file_of_path(const std::string& path) {
  return split_member(path).first;
}

ModelConfig read_model_config(const std::string& path) {
  auto [file, member] = split_member(path);
  std::error_code code;
  if (fs::is_directory(file, code)) file = (fs::path(file) / "config.json").string();
  const std::string kind = fs::path(file).extension().string();
  if (kind == ".yaml" || kind == ".yml")
    throw InputError(
        "is YAML, where the config.json of Hugging Face is expected; a model in the form of the catalog is named, as "
        "NAME for DIR/models/NAME.yaml with --catalog DIR, and single keys are those of 'model:' in a sweep, or --set "
        "model.KEY=VALUE",
        file);
  return parse_model_config(import::read_text(file, kMaxConfigBytes), file, member);
}

ModelConfig parse_model_config(std::string_view text, const std::string& file, const std::string& member) {
  const Node document = import::parse_json_tree(text, file, kMaxConfigBytes);
  const LanguageModel part = language_model(document, file, member);
  require_family(document, part, file);
  ModelConfig config;
  config.file = file;
  config.name = name_of(file);
  config.family = text_member(*part.config, "model_type");
  config.architecture = text_member(*part.config, "architectures");
  if (config.architecture.empty()) config.architecture = text_member(document, "architectures");
  const Family* family = family_named(config.family);
  if (family != nullptr) config.defaults_of = family->defaults_of;
  ConfigReader reader(*part.config, document, family == nullptr ? "" : family->defaults, config);
  refuse_unknown_layers(reader, *part.config, config.family, family == nullptr ? "" : family->layer_keys);
  if (family != nullptr) read_family(reader, *family, *part.config, config.family);
  const bool has_tower = family != nullptr && member.empty() && read_tower(reader, document, config);
  if (config.family == "clip_text_model" && !has_tower)
    reader.refuse(reader.find({"model_type"}),
                  "'model_type' is 'clip_text_model': a tower of text that is trained with one of images, of which the "
                  "document has none");
  // The language model alone is worth naming if nothing else is in its way.
  if (member.empty() && !has_tower) refuse_towers(reader, document, reader.refusals().empty() ? part.member : "");
  if (family == nullptr && reader.refusals().empty()) fail_unknown_family(config.family, *part.config, file);
  if (family != nullptr) judge_remaining_keys(reader, *part.config, "a " + config.family);
  if (member.empty()) refuse_wrong_kinds(reader, document);
  if (!reader.refusals().empty()) fail_refused(reader);
  reader.set_architecture();
  if (!member.empty()) config.left_out.push_back({member, fmt::format("all of the document but '{}'", member)});
  const bool has_tower_elsewhere = !part.member.empty() || config.family == "llama4_text";
  if (member.empty() && has_tower_elsewhere && document.find("vision_config") == nullptr)
    config.left_out.push_back({"vision_config", "the vision tower, of which the file has no sizes"});
  add_sequence(reader, config);
  add_carried(reader, *part.config, config);
  check_size(checked_model(config), file);
  add_left_out(reader, config);
  return config;
}

}  // namespace manyworlds::experiments::models
