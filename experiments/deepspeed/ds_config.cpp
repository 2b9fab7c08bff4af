// Batches as deepspeed/runtime/config.py has them (_set_batch_related_parameters), reductions as runtime/engine.py.
#include "experiments/deepspeed/ds_config.hpp"

#include <fmt/format.h>

#include <cctype>

#include "core/base/error.hpp"
#include "experiments/deepspeed/config_keys.hpp"
#include "experiments/tree/json_tree.hpp"

namespace manyworlds::experiments::jobs::deepspeed {
namespace {

using import::Node;

constexpr std::int64_t kBucket = 500'000'000;

bool of_name(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0 || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
         c == '_';
}

/// Refuses words such as CONFIG_BATCH_SIZE outside texts: a script puts values in their places.
void refuse_placeholders(const std::string& text, const std::string& path, int line) {
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ++line;
    if (inside && text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] == '"') inside = !inside;
    if (inside || std::isupper(static_cast<unsigned char>(text[at])) == 0) continue;
    std::size_t end = at;
    while (end < text.size() && of_name(text[end])) ++end;
    const std::string word = text.substr(at, end - at);
    if (word.size() > 3 && word.find('_') != std::string::npos)
      throw core::InputError(fmt::format("{} is a placeholder of a template; write its value", word), path, line);
    at = end - 1;
  }
}

/// Moves lines of a document to those of the file that it stands in.
void move_lines(Node& node, int by) {
  node.line += by;
  for (Node& item : node.items) move_lines(item, by);
  for (import::Entry& entry : node.entries) entry.line += by, move_lines(entry.value, by);
}

std::vector<GivenKey> parsed(const std::string& text, const std::string& path, int first_line) {
  refuse_placeholders(text, path, first_line);
  Node root;
  try {
    root = import::parse_json_tree(text, path);
  } catch (const core::InputError& error) {
    if (first_line == 1) throw;
    throw core::InputError(fmt::format("the configuration that is written here: {}", error.what()), path, first_line);
  }
  move_lines(root, first_line - 1);
  return flattened(root, known_keys());
}

}  // namespace

DsConfig::DsConfig(const std::string& text, const std::string& path, int first_line, Job& job)
    : keys_(known_keys(), parsed(text, path, first_line)) {
  keys_.check(job);
  if (stage() > 3) keys_.fail("zero_optimization.stage", " must be 0, 1, 2 or 3");
}

/// Returns a size of the batch; 0 if the file does not say it.
std::int64_t DsConfig::size(const std::string& name) const {
  const Node* given = keys_.find(name);
  if (given != nullptr && given->text == "auto")
    keys_.fail(name, " auto is what the trainer's arguments tell; write the number");
  return keys_.count(name, 0, 1);
}

Batch DsConfig::batch_of(std::int64_t replicas) const {
  Batch batch{size("train_batch_size"), size("train_micro_batch_size_per_gpu"), size("gradient_accumulation_steps")};
  if (batch.global == 0 && batch.micro == 0)
    keys_.fail(keys_.given("gradient_accumulation_steps") ? "gradient_accumulation_steps" : "train_batch_size",
               ": DeepSpeed needs train_batch_size or train_micro_batch_size_per_gpu");
  if (replicas < 1) return batch;
  for (const std::int64_t one : {batch.global, batch.micro, batch.accumulation})
    if (one > (std::int64_t{1} << 30)) keys_.fail("train_batch_size", ": a size of the batch is too large");
  const std::string divided = batch.global > 0 ? "train_batch_size" : "train_micro_batch_size_per_gpu";
  if (batch.global > 0 && batch.micro == 0) {
    if (batch.accumulation == 0) batch.accumulation = 1;
    batch.micro = batch.global / replicas / batch.accumulation;
  }
  if (batch.accumulation == 0) batch.accumulation = batch.global > 0 ? batch.global / batch.micro / replicas : 1;
  if (batch.global == 0) batch.global = batch.micro * batch.accumulation * replicas;
  if (batch.micro < 1 || batch.accumulation < 1 || batch.micro * batch.accumulation * replicas != batch.global)
    keys_.fail(divided, fmt::format(" {} is not micro-batch {} x accumulation {} x {} data-parallel ranks",
                                    batch.global, batch.micro, batch.accumulation, replicas));
  return batch;
}

std::string DsConfig::precision() const {
  std::string found;
  for (const auto& [name, precision] :
       {std::pair("bf16.enabled", "bf16"), {"bfloat16.enabled", "bf16"}, {"fp16.enabled", "fp16"}}) {
    const Node* given = keys_.find(name);
    if (given != nullptr && given->text == "auto")
      keys_.fail(name, " auto is what the trainer's arguments tell; write true or false");
    if (!keys_.flag(name, false)) continue;
    if (!found.empty() && found != precision) keys_.fail(name, " excludes the other precision of 16 bits");
    found = precision;
  }
  return found;
}

std::int64_t DsConfig::bucket(std::int64_t hidden, Job& job) const {
  const std::string name = "zero_optimization.reduce_bucket_size";
  const Node* given = keys_.find(name);
  if (given == nullptr || given->kind != Node::Kind::scalar) return kBucket;
  if (given->text == "auto") {
    if (hidden == 0) keys_.fail(name, " auto follows from the model; write the number");
    job.notes.push_back(fmt::format("assumed: {} auto is {}, the square of the hidden size", name, hidden * hidden));
    return hidden * hidden;
  }
  if (given->text.find_first_of(".eE") == std::string::npos) return keys_.count(name, kBucket, 1);
  const double number = std::strtod(given->text.c_str(), nullptr);  // 5e8
  if (given->quoted || number < 1 || number > 1e12 || number != static_cast<double>(static_cast<std::int64_t>(number)))
    keys_.fail(name, fmt::format(" must be a whole number, not {}", import::describe(*given)));
  return static_cast<std::int64_t>(number);
}

void DsConfig::add_settings(Job& job, std::int64_t replicas, std::int64_t hidden) const {
  const auto set = [&](const std::string& key, const std::string& value, const std::string& because) {
    job.settings.push_back({key, value, keys_.place(because)});
  };
  const std::string zero = "zero_optimization.stage", overlap = "zero_optimization.overlap_comm";
  const std::int64_t stage = replicas == 1 ? 0 : this->stage();
  const std::string kind = precision();
  if (kind.empty())
    keys_.fail(keys_.given("bf16.enabled") ? "bf16.enabled" : "fp16.enabled",
               ": training in 32 bits, without bf16 or fp16, is not modelled");
  set("strategy.stack.precision", kind, kind + ".enabled");
  set("strategy.zero", std::to_string(stage), zero);
  // Without ZeRO all gradients are reduced after the backward pass.
  set("strategy.overlap_grad_reduce", stage > 0 && keys_.flag(overlap, stage == 3) ? "true" : "false", overlap);
  set("strategy.bucket_parameters", std::to_string(bucket(hidden, job)), "zero_optimization.reduce_bucket_size");
  if (stage == 1 || stage == 2) set("strategy.stack.overlap_parameters", "false", zero);
  const std::string reduced = "communication_data_type";
  const std::string word = keys_.text(reduced, kind);
  set("strategy.stack.reduce_in_16bit",
      keys_.translated(reduced, word, "fp16=true bf16=true bfp16=true fp32=false none=true"), reduced);
  const std::string shards = "zero_optimization.mics_shard_size";
  const std::int64_t group = keys_.count(shards, -1, -1);
  if (group < 1 || stage == 0) return;
  if (stage != 3 || replicas < 1 || replicas % group != 0)
    keys_.fail(shards, fmt::format(" {} needs stage 3 and --gpus N whose replicas it divides", group));
  set("strategy.zero_group", std::to_string(group), shards);
}

}  // namespace manyworlds::experiments::jobs::deepspeed
