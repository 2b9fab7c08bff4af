// Reads a function of torchtitan's config_registry.py, whose Trainer.Config has what the TOML had until 2026 under
// names of its own: pytorch/torchtitan @b5bcd76, torchtitan/trainer.py and torchtitan/config/configs.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "experiments/torchtitan/python_values.hpp"
#include "experiments/torchtitan/reader.hpp"
#include "experiments/torchtitan/torchtitan.hpp"

namespace manyworlds::experiments::jobs {
namespace torchtitan {
namespace {

/// Members of a Trainer.Config that change neither time nor memory of a step.
constexpr std::array<std::string_view, 10> kIrrelevant{"hf_assets_path", "dump_folder", "profiler",   "metrics",
                                                       "tokenizer",      "dataloader",  "checkpoint", "validator",
                                                       "lr_scheduler",   "job_config"};
/// Sections whose members are keys of the same names.
constexpr std::array<std::string_view, 4> kSections{"training", "parallelism", "debug", "comm"};
constexpr std::int64_t kDefaultTokens = 16'384, kDefaultContext = 2'048, kDefaultLossChunks = 8;

struct Converter {
  std::string_view name, key;
};
constexpr std::array<Converter, 6> kConverters{{{"Float8LinearConverter.Config", "quantize.linear.float8"},
                                                {"Float8GroupedExpertsConverter.Config", "quantize.grouped_mm.float8"},
                                                {"MXFP8LinearConverter.Config", "quantize.linear.mx"},
                                                {"MXFP8GroupedExpertsConverter.Config", "quantize.grouped_mm.mx"},
                                                {"NVFP4LinearConverter.Config", "quantize.linear.nvfp4"},
                                                {"MXLinearConverter.Config", "quantize.linear.mx"}}};

class RegistryReader {
 public:
  RegistryReader(const JobFile& file, std::string function)
      : path_(std::make_shared<const std::string>(file.path)), function_(std::move(function)) {}

  std::vector<GivenKey> keys(const Value& config, const std::string& model);
  std::int64_t irrelevant() const { return irrelevant_; }

 private:
  [[noreturn]] void fail(const Value& at, const std::string& what) const { fail_at({path_, at.line}, what); }
  import::Node node(const Value& value) const;
  void add(const std::string& key, const Value& value) { keys_.push_back({key, node(value)}); }
  void add_text(const std::string& key, const std::string& text, const Value& at);
  void add_number(const std::string& key, std::int64_t number, const Value& at);
  std::int64_t whole(const Value* value, const std::string& name, std::int64_t otherwise) const;

  void read_model(const Value& spec, const std::string& model);
  void read_converters(const Value& converters);
  void read_section(const std::string& section, const Value& value);
  void read_batch(const Value& training, const Value* parallelism);
  void read_compile(const Value& value);
  void read_recompute(const Value& value);
  void read_optimizer(const Value& value);
  void read_loss(const Value& value);

  std::shared_ptr<const std::string> path_;
  std::string function_;
  std::vector<GivenKey> keys_;
  std::int64_t irrelevant_ = 0;
};

import::Node RegistryReader::node(const Value& value) const {import::Node result;
result.file = path_, result.line = value.line;
result.kind = import::Node::Kind::scalar;
switch (value.kind) {
  case ValueKind::none:
    result.kind = import::Node::Kind::null;
    break;
  case ValueKind::boolean:
    result.text = value.integer != 0 ? "true" : "false";
    break;
  case ValueKind::integer:
    result.text = std::to_string(value.integer);
    break;
  case ValueKind::real:
    result.text = value.text;
    break;
  case ValueKind::text:
    result.text = value.text, result.quoted = true;
    break;
  case ValueKind::list:
    result.kind = import::Node::Kind::sequence;
    for (const Value& item : value.items) result.items.push_back(node(item));
    break;
  case ValueKind::object:
    result.text = shell::unknown(fmt::format("{}(…), which is no literal", value.text));
    break;
  case ValueKind::unknown:
    result.text = shell::unknown(fmt::format("{}, which is no literal", value.text));
    break;
}
return result;
}  // namespace

void RegistryReader::add_text(const std::string& key, const std::string& text, const Value& at) {
  Value value;
  value.kind = ValueKind::text, value.text = text, value.line = at.line;
  add(key, value);
}

void RegistryReader::add_number(const std::string& key, std::int64_t number, const Value& at) {
  Value value;
  value.kind = ValueKind::integer, value.integer = number, value.line = at.line;
  add(key, value);
}

std::int64_t RegistryReader::whole(const Value* value, const std::string& name, std::int64_t otherwise) const {
  if (value == nullptr) return otherwise;
  if (value->kind != ValueKind::integer || value->integer < -1)
    fail(*value, fmt::format("{} must be a whole number that literals tell", name));
  return value->integer;
}

std::vector<GivenKey> RegistryReader::keys(const Value& config, const std::string& model) {
  if (config.kind != ValueKind::object || !config.text.ends_with("Config") ||
      (config.field("model_spec") == nullptr && config.field("training") == nullptr))
    fail(config, fmt::format("{} does not return a Trainer.Config of literals{}", function_,
                             config.kind == ValueKind::unknown ? ", but what follows from " + config.text : ""));
  const Value none;
  const Value* training = config.field("training");
  read_batch(training == nullptr ? none : *training, config.field("parallelism"));
  if (config.field("model_spec") == nullptr) fail(config, fmt::format("{} names no model_spec", function_));
  for (const auto& [name, value] : config.fields) {
    if (std::find(kSections.begin(), kSections.end(), name) != kSections.end())
      read_section(name, value);
    else if (name == "model_spec")
      read_model(value, model);
    else if (name == "compile")
      read_compile(value);
    else if (name == "activation_checkpoint")
      read_recompute(value);
    else if (name == "optimizer")
      read_optimizer(value);
    else if (name == "loss")
      read_loss(value);
    else if (std::find(kIrrelevant.begin(), kIrrelevant.end(), name) != kIrrelevant.end())
      ++irrelevant_;
    else
      fail(value, fmt::format("'{}' is no member of a Trainer.Config that is known here", name));
  }
  if (config.field("activation_checkpoint") == nullptr)
    add_text("activation_checkpoint.selective_ac_option", "op", none);
  return std::move(keys_);
}

void RegistryReader::read_model(const Value& spec, const std::string& model) {
  if (!spec.is_object("model_registry")) fail(spec, "model_spec must be model_registry(\"FLAVOR\", …) of literals");
  add_text("model.name", model, spec);
  const Value* flavor = spec.items.empty() ? spec.field("flavor") : &spec.items.front();
  if (flavor == nullptr) fail(spec, "model_registry names no flavor");
  add("model.flavor", *flavor);
  keys_.back().value.line = spec.line;
  for (const auto& [name, value] : spec.fields) {
    const bool plain = value.kind == ValueKind::none || (value.kind == ValueKind::text && value.text == "default");
    if (name == "flavor" || name == "attn_backend") continue;
    if (name == "converters")
      read_converters(value);
    else if (name == "moe_comm_backend")
      add("parallelism.expert_parallel_comm_backend", value);
    else if (!plain && !(value.kind == ValueKind::integer && value.integer == 0))
      fail(value, fmt::format("{} of model_registry is not modelled; leave it out", name));
  }
}

void RegistryReader::read_converters(const Value& converters) {
  if (converters.kind == ValueKind::none) return;
  if (converters.kind != ValueKind::list) fail(converters, "converters must be a list of constructor calls");
  Value names = converters;
  names.items.clear();
  for (const Value& one : converters.items) {
    const auto* known = std::find_if(kConverters.begin(), kConverters.end(),
                                     [&](const Converter& row) { return one.is_object(std::string(row.name)); });
    if (known == kConverters.end()) fail(one, fmt::format("the converter {} is not modelled", one.text));
    const Value* only = one.field("fqns");
    const bool layers = only == nullptr || (only->kind == ValueKind::list && only->items.size() == 1 &&
                                            (only->items[0].text == "layers" || only->items[0].text == "experts"));
    if (!layers) fail(*only, "layers of two precisions are not modelled: the converter names some modules alone");
    Value name = one;
    name.kind = ValueKind::text, name.text = std::string(known->key);
    names.items.push_back(name);
    // The converters of 2026 scale each row.
    if (known->name == "Float8LinearConverter.Config") {
      const Value* recipe = one.field("recipe_name");
      if (recipe != nullptr)
        add("quantize.linear.float8.recipe_name", *recipe);
      else
        add_text("quantize.linear.float8.recipe_name", "rowwise", one);
    }
  }
  add("model.converters", names);
}

void RegistryReader::read_section(const std::string& section, const Value& value) {
  if (value.kind != ValueKind::object)
    fail(value, fmt::format("{} must be a constructor call; it follows from {}", section, value.text));
  if (!value.items.empty()) fail(value, fmt::format("{} must name its arguments", section));
  for (const auto& [name, member] : value.fields) {
    if (name == "num_tokens_per_microbatch_per_dp_rank" || name == "num_tokens_per_train_step" ||
        name == "max_context_length" || name == "num_pp_microbatches")
      continue;  // read_batch()
    const std::string key = section + "." + name;
    if (known_keys().find(key) == nullptr)
      fail(member, fmt::format("'{}' is no key of torchtitan that is known here{}", key, known_keys().near(key)));
    add(key, member);
  }
}

/// Batches are counted in tokens, of samples of max_context_length.
void RegistryReader::read_batch(const Value& training, const Value* parallelism) {
  const Value* tokens = training.field("num_tokens_per_microbatch_per_dp_rank");
  const Value* step = training.field("num_tokens_per_train_step");
  const Value* context = training.field("max_context_length");
  const std::int64_t length = whole(context, "max_context_length", kDefaultContext);
  const std::int64_t each = whole(tokens, "num_tokens_per_microbatch_per_dp_rank", kDefaultTokens);
  const std::int64_t all = whole(step, "num_tokens_per_train_step", -1);
  const auto samples = [&](std::int64_t number, const Value* at, const char* name) {
    if (length < 1 || number < 1 || number % length != 0)
      fail(at == nullptr ? training : *at,
           fmt::format("{} {} is no multiple of max_context_length {}: only whole samples are modelled", name, number,
                       length));
    return number / length;
  };
  const std::int64_t micro = samples(each, tokens, "num_tokens_per_microbatch_per_dp_rank");
  const Value* pipelines = parallelism == nullptr ? nullptr : parallelism->field("pipeline_parallel_degree");
  const Value* number = parallelism == nullptr ? nullptr : parallelism->field("num_pp_microbatches");
  const bool several = whole(pipelines, "pipeline_parallel_degree", 1) > 1;
  const std::int64_t batches = several ? whole(number, "num_pp_microbatches", 1) : 1;
  if (batches < 1 || batches > (1 << 20)) fail(*number, "num_pp_microbatches must be 1 at least");
  if (micro > (std::int64_t{1} << 40)) fail(*tokens, "num_tokens_per_microbatch_per_dp_rank is too large");
  add_number("training.seq_len", length, context == nullptr ? training : *context);
  add_number("training.local_batch_size", micro * batches, tokens == nullptr ? training : *tokens);
  if (several)
    add_number("parallelism.pipeline_parallel_microbatch_size", micro, tokens == nullptr ? training : *tokens);
  if (all > 0) add_number("training.global_batch_size", samples(all, step, "num_tokens_per_train_step"), *step);
}

void RegistryReader::read_compile(const Value& value) {
  if (value.kind != ValueKind::object) fail(value, "compile must be a CompileConfig of literals");
  for (const auto& [name, member] : value.fields)
    if (name == "enable_async_tensor_parallel")
      add("parallelism.enable_async_tensor_parallel", member);
    else if (known_keys().find("compile." + name) != nullptr)
      add("compile." + name, member);
    else
      fail(member, fmt::format("'compile.{}' is no key of torchtitan that is known here", name));
}

void RegistryReader::read_recompute(const Value& value) {
  const bool none = value.kind == ValueKind::none;
  if (none || value.is_object("FullAC.Config"))
    return add_text("activation_checkpoint.mode", none ? "none" : "full", value);
  if (!value.is_object("SelectiveAC.Config"))
    fail(value, fmt::format("activation_checkpoint {} is not modelled; known are SelectiveAC.Config, FullAC.Config and "
                            "None",
                            value.text));
  add_text("activation_checkpoint.mode", "selective", value);
  add_text("activation_checkpoint.selective_ac_option", "op", value);
  if (const Value* shapes = value.field("force_recompute_mm_shapes_by_fqns"))
    add("activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns", *shapes);
}

void RegistryReader::read_optimizer(const Value& value) {
  const Value* name = value.field("name");
  if (value.kind != ValueKind::object || (value.text != "default_adamw" && name == nullptr))
    fail(value, fmt::format("optimizer {}: only Adam with states in 32 bits is modelled; known is default_adamw(…)",
                            value.text));
  if (name != nullptr) add("optimizer.name", *name);
  if (const Value* how = value.field("implementation")) add("optimizer.implementation", *how);
  ++irrelevant_;
}

/// A ChunkedLossWrapper of 2026, or a ChunkedCELoss, as it was called at first.
void RegistryReader::read_loss(const Value& value) {
  if (value.text.find("Chunked") == std::string::npos) {
    ++irrelevant_;
  } else if (const Value* chunks = value.field("num_chunks")) {
    add("loss.num_chunks", *chunks);
  } else {
    add_number("loss.num_chunks", kDefaultLossChunks, value);
  }
}

/// Returns whether a function's name begins with a model's, and not with that of a later version: qwen3_5_4b is none of
/// qwen3.
bool is_of_model(const std::string& function, const std::string& model) {
  if (!function.starts_with(model + "_")) return false;
  const std::string rest = function.substr(model.size() + 1);
  const std::size_t end = rest.find_first_not_of("0123456789");
  return end == 0 || (end != std::string::npos && rest[end] != '_');
}

/// Returns the model that a function is of: the folder has its name, or the function begins with it, or others of the
/// file do.
std::string model_of(const JobFile& file, const std::string& function, const std::vector<std::string>& functions) {
  const std::string folder = std::filesystem::path(file.path).parent_path().filename().string();
  const std::vector<std::string> models = model_names();
  if (std::find(models.begin(), models.end(), folder) != models.end()) return folder;
  std::vector<std::string> names{function};
  names.insert(names.end(), functions.begin(), functions.end());
  for (const std::string& name : names)
    for (const std::string& model : models)
      if (is_of_model(name, model)) return model;
  throw core::InputError(fmt::format("no function or folder tells the model; known are {}", fmt::join(models, ", ")),
                         file.path);
}

/// Returns the function that was named, or the only one.
std::string chosen(const JobFile& file, const std::vector<std::string>& functions) {
  if (functions.empty()) throw core::InputError("no function of it returns a Trainer.Config", file.path);
  if (file.member.empty() && functions.size() == 1) return functions.front();
  const std::string all = fmt::format("{}", fmt::join(functions, ", "));
  if (file.member.empty())
    throw core::InputError(
        fmt::format("has several configurations; give one as {}:{}: {}", file.path, functions.front(), all), file.path);
  if (std::find(functions.begin(), functions.end(), file.member) == functions.end())
    throw core::InputError(fmt::format("has no configuration '{}'{}", file.member, suggestion(file.member, functions)),
                           file.path);
  return file.member;
}

}  // namespace torchtitan
}  // namespace manyworlds::experiments::jobs

bool is_torchtitan_registry(const JobFile& file) {
  return file.ending() == ".py" && file.text.find("torchtitan") != std::string::npos &&
         file.text.find("Config") != std::string::npos;
}

Job read_torchtitan_registry(const JobFile& file, const JobOptions& options, const Catalog&) {
  const torchtitan::PythonFile python(file.text, file.path);
  const std::vector<std::string> functions = python.functions();
  const std::string function = torchtitan::chosen(file, functions);
  torchtitan::RegistryReader registry(file, function);
  const auto keys = registry.keys(python.returned(function), torchtitan::model_of(file, function, functions));
  torchtitan::Version version;
  version.kind = fmt::format("the configuration {} of torchtitan", function);
  version.graphs_by_default = version.flexible_by_default = version.experts_whole = true;
  Job job = torchtitan::Reader(keys, version, options).read();
  job.irrelevant += registry.irrelevant();
  return job;
}

}  // namespace manyworlds::experiments::jobs
