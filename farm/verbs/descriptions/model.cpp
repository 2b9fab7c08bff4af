// `manyworlds model MODEL`: what was read of a model's configuration, what was assumed and left out, and its
// parameters.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/trained_parameters.hpp"
#include "experiments/catalog/catalog.hpp"
#include "experiments/key_contents/architecture.hpp"
#include "experiments/models/read_model_config.hpp"
#include "experiments/tree/scalar.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/verbs/descriptions/model_layers.hpp"

namespace manyworlds::farm::commands {
namespace {

using experiments::import::value_text;
using experiments::models::CarriedArgument;
using experiments::models::ConfigNote;
using experiments::models::ConfigValue;
using experiments::models::count_text;
using experiments::models::ModelConfig;
using Json = nlohmann::ordered_json;

constexpr const char* kCarried = "carried";  // of an entry of the catalog: model.carried

/// Returns a model of the catalog as if it had been read from a file with a key for each value.
ModelConfig catalog_model(const std::string& name, const experiments::CatalogEntry& entry) {
  ModelConfig config;
  config.name = name;
  config.file = fmt::format("catalog/models/{}.yaml", name);
  config.architecture = entry.help;
  for (const auto& [key, sourced] : entry.values)
    if (key == kCarried)
      config.carried = experiments::models::carried_in(std::get<std::string>(sourced.value));
    else
      config.values.push_back({key, sourced.value, key, 0, false});
  return config;
}

/// Parameters as people count them: with the table of tokens at the entrance, of which a token reads one row, and the
/// output layer of the same size, without the table, or without both. The output layer is 0 if it is the table.
struct Counts {
  std::int64_t total, active, trained, table, output;
};

core::workload::Model model_of(const ModelConfig& config) {
  core::workload::Model model = config.model();
  model.architecture = experiments::architecture_of(model);
  return model;
}

Counts counts_of(const ModelConfig& config) {
  const core::workload::Model model = model_of(config);
  const std::int64_t table = model.vocabulary * model.hidden;
  return {core::workload::model_parameters(model), core::workload::active_parameters(model),
          core::workload::trained_parameters(model), core::workload::has_embedding(model) ? table : 0,
          core::workload::has_head(model) && !model.tied_embeddings ? table : 0};
}

/// Returns parameters with and without what of them are the table of tokens and the output layer, if there are any.
std::string counted(std::int64_t all, const Counts& counts, bool has_head) {
  std::string text = fmt::format("{} ({})", all, count_text(all));
  if (counts.table > 0) text += fmt::format("; without the token table {}", count_text(all - counts.table));
  if (counts.output > 0)
    text += fmt::format("{} without the output layer{} {}", counts.table > 0 ? "," : ";",
                        counts.table > 0 ? " too" : "", count_text(all - counts.table - counts.output));
  else if (counts.table > 0 && has_head)
    text += "; it is the output layer too";
  return text;
}

std::string origin(const ModelConfig& config, const ConfigValue& value) {
  if (value.assumed)
    return fmt::format("assumed: the default of {}", config.defaults_of.empty() ? config.family : config.defaults_of);
  if (value.key.empty()) return "of every " + config.family;
  return value.line > 0 ? fmt::format("{}, line {}", value.key, value.line) : value.key;
}

std::string notes_text(const char* title, const std::vector<ConfigNote>& notes) {
  std::string text;
  for (const ConfigNote& note : notes) text += fmt::format("{:<16}'{}': {}\n", title, note.key, note.text);
  return text;
}

/// Returns `entry` in a column of `width`, with a space behind it if it is longer.
std::string column(const std::string& entry, std::size_t width) {
  return fmt::format("{:<{}}", entry, std::max(width, entry.size() + 1));
}

std::string as_text(const ModelConfig& config) {
  const Counts counts = counts_of(config);
  std::string text = fmt::format("{}: {}\n", config.name, config.file);
  if (!config.family.empty())
    text += fmt::format("{:<16}{}{}\n", "family", config.family,
                        config.architecture.empty() ? "" : fmt::format(" ({})", config.architecture));
  const bool has_head = core::workload::has_head(model_of(config));
  text += fmt::format("{:<16}{}\n", "parameters", counted(counts.total, counts, has_head));
  text += fmt::format("{:<16}{}\n", "active", counted(counts.active, counts, has_head));
  if (counts.trained < counts.total)
    text += fmt::format("{:<16}{} ({}), {:.3g} % of all\n", "trained", counts.trained, count_text(counts.trained),
                        100 * static_cast<double>(counts.trained) / static_cast<double>(counts.total));
  for (const ConfigValue& value : config.values)
    text +=
        fmt::format("  {}{}{}\n", column(value.option, 20), column(value_text(value.value), 12), origin(config, value));
  if (config.sequence > 0)
    text += fmt::format(
        "  {:<20}{:<12}assumed{}; model.sequence, or --sequence of search, says what is trained on\n", "sequence",
        config.sequence,
        config.max_positions > 0 ? fmt::format(": {} is the most, max_position_embeddings", config.max_positions) : "");
  for (const CarriedArgument& one : experiments::models::carried_in(experiments::models::carried_text(config.carried)))
    text += fmt::format("  {:<20}{}\n", "carried", experiments::models::carried_text({one}));
  for (const ConfigNote& note : config.carried_defaults)
    text += fmt::format("{:<16}'{}': {}, the default of {}\n", "carried", note.key, note.text, config.defaults_of);
  return text + notes_text("left out", config.left_out) + notes_text("without effect", config.without_effect);
}

Json notes_json(const std::vector<ConfigNote>& notes) {
  Json all = Json::array();
  for (const ConfigNote& note : notes) all.push_back({{"key", note.key}, {"text", note.text}});
  return all;
}

Json as_json(const ModelConfig& config) {
  const Counts counts = counts_of(config);
  Json values = Json::array();
  for (const ConfigValue& value : config.values) {
    Json one{{"option", value.option},
             {"value", nullptr},
             {"key", value.key},
             {"line", value.line},
             {"assumed", value.assumed}};
    std::visit([&](const auto& held) { one["value"] = held; }, value.value);
    values.push_back(std::move(one));
  }
  return {{"name", config.name},
          {"file", config.file},
          {"family", config.family},
          {"architecture", config.architecture},
          {"parameters", counts.total},
          {"active_parameters", counts.active},
          {"trained_parameters", counts.trained},
          {"token_table_parameters", counts.table},
          {"values", values},
          {"assumed_sequence", config.sequence},
          {"carried", experiments::models::carried_over("", experiments::models::carried_text(config.carried))},
          {"carried_defaults", notes_json(config.carried_defaults)},
          {"left_out", notes_json(config.left_out)},
          {"without_effect", notes_json(config.without_effect)}};
}

ModelConfig named_model(const std::string& name, const std::string& catalog_path) {
  const experiments::Catalog catalog(catalog_path);
  experiments::import::Node at;
  at.file = std::make_shared<const std::string>("--model");
  const auto& [found, entry] = catalog.find_named("models", name, at);
  return entry.note.empty() ? catalog_model(found, entry) : experiments::models::read_model_config(name);
}

int run_model(const Invocation& invocation) {
  cxxopts::Options options("manyworlds model",
                           "What is read of a model: a Hugging Face config.json, a folder that holds one, or a name of "
                           "the catalog. Prints each setting with the key that it is from, the parameters, total and "
                           "active, and what was assumed and left out. Layers that cannot be modelled are refused.");
  options.add_options()("what", "show: its layers too, part by part, with their parameters, FLOPs, bytes and formulas",
                        cxxopts::value<std::string>(),
                        "show")("model", "a path, or a name of the catalog", cxxopts::value<std::string>(), "MODEL")(
      "catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
      cxxopts::value<std::string>()->default_value(""), "DIR")("json", "the same, as JSON");
  const bool shows =
      std::find(invocation.arguments.begin(), invocation.arguments.end(), "show") != invocation.arguments.end();
  options.parse_positional(shows ? std::vector<std::string>{"what", "model"} : std::vector<std::string>{"model"});
  options.positional_help("[show] MODEL");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const ModelConfig config = named_model(required(*parsed, "model"), (*parsed)["catalog"].as<std::string>());
  if (parsed->count("json") > 0) {
    Json told = as_json(config);
    if (shows) told["layers"] = layers_json(model_of(config));
    std::cout << told.dump(1) << '\n';
  } else {
    std::cout << as_text(config) << (shows ? layers_text(model_of(config)) : "");
  }
  return kExitDone;
}

}  // namespace

Command model_command() {
  return {.name = "model", .summary = "what is read of a model's config.json, and its parameters", .run = run_model};
}

}  // namespace manyworlds::farm::commands
