// A launch script of Megatron-DeepSpeed: Megatron-LM's arguments, some of its own, and the configuration in JSON that
// one of them names.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/deepspeed/arguments.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/deepspeed/ds_config.hpp"
#include "experiments/megatron/megatron.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace deepspeed {
namespace {

/// Settings that DeepSpeed's engine decides instead of Megatron-LM's.
constexpr std::array<std::string_view, 6> kOfEngine{"strategy.zero",
                                                    "strategy.overlap_grad_reduce",
                                                    "strategy.bucket_parameters",
                                                    "strategy.stack.overlap_parameters",
                                                    "strategy.stack.precision",
                                                    "strategy.stack.reduce_in_16bit"};

class LaunchReader {
 public:
  LaunchReader(const JobFile& file, const JobOptions& options, const Catalog& catalog)
      : file_(file),
        options_(options),
        catalog_(catalog),
        arguments_(read_script(file.text, file.path, options.environment)) {}

  Job read();

 private:
  void take_own_arguments();
  const Argument* find(const std::string& name) const;
  /// Returns the argument that names the configuration; null if there is none.
  const Argument* config_argument() const {
    return find("deepspeed_config") != nullptr ? find("deepspeed_config") : find("deepspeed-config");
  }
  std::string text(const std::string& name) const;
  std::int64_t count(const std::string& name, std::int64_t otherwise) const;
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;
  void add(const std::string& name, const std::string& value, const std::string& because);
  void check_experts();
  void read_attention();
  void read_partition();
  std::string setting(const std::string& key) const;
  std::int64_t size(const std::string& key) const { return shell::integer_of(setting(key)).value_or(1); }
  bool read_config();
  void read_config_text(const std::string& text, const std::string& path, int first_line);
  void check_batch(const DsConfig& config);
  void read_without_config();

  const JobFile& file_;
  const JobOptions& options_;
  const Catalog& catalog_;
  JobArguments arguments_;
  std::map<std::string, Argument> own_;
  std::int64_t irrelevant_ = 0;
  Job job_;
};

Job LaunchReader::read() {
  take_own_arguments();
  check_experts();
  arguments_.kind = "a launch script of Megatron-DeepSpeed";
  arguments_.stack = "deepspeed-2023";
  if (const std::int64_t ranks = count("ds-sequence-parallel-size", 1); ranks > 1) {
    add("context-parallel-size", std::to_string(ranks), "ds-sequence-parallel-size");
    add("cp-comm-type", "a2a", "ds-sequence-parallel-size");
  }
  if (find("num-key-value-heads") != nullptr) {
    add("group-query-attention", "", "num-key-value-heads");
    add("num-query-groups", text("num-key-value-heads"), "num-key-value-heads");
  }
  job_ = megatron_job(arguments_, options_, catalog_);
  job_.irrelevant += irrelevant_;
  job_.mapped += own_.size() - static_cast<std::size_t>(irrelevant_);
  read_attention();
  read_partition();
  if (find("no-pipeline-parallel") != nullptr && size("strategy.pp") > 1)
    fail("no-pipeline-parallel", " goes with one pipeline rank, not with " + setting("strategy.pp"));
  std::erase_if(job_.settings, [](const JobSetting& one) {
    return std::find(kOfEngine.begin(), kOfEngine.end(), one.key) != kOfEngine.end();
  });
  if (!read_config()) read_without_config();
  if (size("strategy.pp") > 1 && size("strategy.zero") > 1)
    fail(find("zero-stage") != nullptr ? "zero-stage" : "deepspeed",
         ": ZeRO 2 and 3 do not go with pipelines in DeepSpeed");
  return std::move(job_);
}

const Argument* LaunchReader::find(const std::string& name) const {
  const auto found = own_.find(name);
  return found == own_.end() ? nullptr : &found->second;
}

void LaunchReader::fail(const std::string& name, const std::string& what) const {
  const Argument* one = find(name);
  fail_at(one == nullptr ? Place{} : one->place, fmt::format("--{}{}", name, what));
}

std::string LaunchReader::text(const std::string& name) const {
  const Argument* one = find(name);
  return one == nullptr ? "" : first_value(*one);
}

std::int64_t LaunchReader::count(const std::string& name, std::int64_t otherwise) const {
  if (find(name) == nullptr) return otherwise;
  const std::string value = text(name);
  const std::int64_t number = shell::integer_of(value).value_or(-1);
  if (number < 0 || number > (1 << 20)) fail(name, fmt::format(" needs a whole number, not '{}'", value));
  return number;
}

void LaunchReader::add(const std::string& name, const std::string& value, const std::string& because) {
  Argument one{name, {}, find(because)->place};
  if (!value.empty()) one.values.push_back({value, one.place});
  arguments_.arguments.push_back(std::move(one));
}

/// Takes DeepSpeed's own arguments from those that Megatron-LM's reader gets, and refuses what is not modelled.
void LaunchReader::take_own_arguments() {
  std::vector<Argument> others;
  for (Argument& one : arguments_.arguments) {
    const KnownName* known = known_arguments().find(one.name);
    if (known != nullptr && known->fate == Fate::carried) one.name = "rotary-base", known = nullptr;
    if (known == nullptr) {
      if (one.name == "normalization" && !one.values.empty())  // Megatron-LM's names are LayerNorm and RMSNorm
        for (const auto& [name, here] : {std::pair("layernorm", "LayerNorm"), {"rmsnorm", "RMSNorm"}})
          if (one.values.front().text == name) one.values.front().text = here;
      others.push_back(std::move(one));
      continue;
    }
    const std::string value = one.values.empty() ? "" : one.values.front().text;
    if (known->fate == Fate::refused && !known->is_harmless(value))
      fail_at(one.place,
              fmt::format("--{}{}{}: {}", one.name, value.empty() ? "" : " ", shell::shown(value), known->why));
    if (known->fate == Fate::irrelevant && own_.count(one.name) == 0) ++irrelevant_;
    own_[one.name] = std::move(one);
  }
  arguments_.arguments = std::move(others);
}

/// Experts are in every other layer by default, one after the other, and tokens go to them by products with one-hot
/// matrices.
void LaunchReader::check_experts() {
  std::erase_if(arguments_.arguments, [](const Argument& one) {
    if (one.name != "num-experts") return false;
    const std::string value = one.values.empty() ? "" : one.values.front().text;
    if (one.values.size() != 1 || value != "1")
      fail_at(one.place,
              fmt::format("--num-experts {}: DeepSpeed's experts (in every second layer, tokens sent by einsum) "
                          "are not modelled; 1 is a dense model",
                          shell::shown(value)));
    return true;
  });
}

void LaunchReader::read_attention() {
  std::string kernel = "unfused", because;
  for (const auto& [name, one] : {std::pair("use-flash-attn", "flash"),
                                  {"use-flash-attn-v1", "flash"},
                                  {"use-flash-attn-triton", "flash"},
                                  {"use-flash-attn-v2", "flash2"}})
    if (find(name) != nullptr) kernel = one, because = name;
  std::erase_if(job_.settings, [](const JobSetting& one) { return one.key == "strategy.stack.attention"; });
  job_.settings.push_back({"strategy.stack.attention", kernel, because.empty() ? Place{} : find(because)->place});
}

/// Reads which layers a stage has. DeepSpeed counts the modules of a list, in which embedding, last norm and head stand
/// beside the layers; those of the types that a method names, or all of them.
void LaunchReader::read_partition() {
  constexpr const char* kMethod = "pp-partition-method";
  const Argument* one = find(kMethod);
  if (one == nullptr) return;
  const std::string method = text(kMethod);
  std::string split;
  for (const auto& [name, here] : {std::pair("uniform", "even"),
                                   {"parameters", "by_parameters"},
                                   {"type:transformer", "even"},
                                   {"type:transformer|embedding", "light_ends"}})
    if (method == name) split = here;
  if (split.empty())
    fail(kMethod, fmt::format(" {}: stages by modules of other types are not modelled; known are uniform, parameters, "
                              "type:transformer and type:transformer|embedding",
                              shell::shown(method)));
  std::erase_if(job_.settings, [](const JobSetting& setting) { return setting.key == "strategy.split"; });
  job_.settings.push_back({"strategy.split", split, one->place});
  if (method == "uniform")
    job_.notes.push_back(
        "assumed: --pp-partition-method uniform deals out the layers; DeepSpeed counts embedding, last norm and head "
        "among them");
}

std::string LaunchReader::setting(const std::string& key) const {
  std::string value;
  for (const JobSetting& one : job_.settings)
    if (one.key == key) value = one.value;
  return value;
}

/// Reads the configuration that the script writes itself, or that stands beside it; returns whether there is one.
bool LaunchReader::read_config() {
  const shell::Text* written = nullptr;
  for (const shell::Text& one : arguments_.documents) {
    if (one.text.find("\"zero_optimization\"") == std::string::npos &&
        one.text.find("\"train_batch_size\"") == std::string::npos)
      continue;
    if (written != nullptr && written->text != one.text)
      fail_at(one.place, fmt::format("two configurations of DeepSpeed are written, here and on line {}; leave one",
                                     written->place.line));
    written = &one;
  }
  if (written != nullptr) {
    if (!shell::is_known(written->text))
      fail_at(written->place,
              fmt::format("DeepSpeed's configuration, written here, follows from {}; give it with --env "
                          "NAME=VALUE",
                          shell::why_unknown(written->text)));
    read_config_text(written->text, file_.path, written->place.line);
    return true;
  }
  const Argument* named = config_argument();
  if (named == nullptr) fail_at(find("deepspeed")->place, "--deepspeed without --deepspeed_config FILE");
  const std::string value = named->values.empty() ? "" : named->values.front().text;
  if (!shell::is_known(value)) return false;
  const auto path = std::filesystem::path(file_.path).parent_path() / std::filesystem::path(value).filename();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  read_config_text(import::read_text(path.string()), path.string(), 1);
  return true;
}

void LaunchReader::read_config_text(const std::string& text, const std::string& path, int first_line) {
  const DsConfig config(text, path, first_line, job_);
  if (const Argument* stage = find("zero-stage"); stage != nullptr && count("zero-stage", 0) != config.stage())
    fail("zero-stage",
         fmt::format(" {}, but the configuration has stage {}", this->text("zero-stage"), config.stage()));
  check_batch(config);
  const std::int64_t model = size("strategy.tp") * size("strategy.pp");
  config.add_settings(job_, job_.gpus > 0 ? job_.gpus / model : 0,
                      shell::integer_of(setting("model.hidden")).value_or(0));
}

/// The configuration repeats the batch of the arguments, which Megatron-LM's part goes by.
void LaunchReader::check_batch(const DsConfig& config) {
  const std::int64_t ranks = size("strategy.tp") * size("strategy.pp") * size("strategy.cp");
  const Batch batch = config.batch_of(job_.gpus > 0 ? job_.gpus / ranks : 0);
  const std::pair<const char*, std::pair<const char*, std::int64_t>> sizes[] = {
      {"train_micro_batch_size_per_gpu", {"strategy.micro_batch", batch.micro}},
      {"train_batch_size", {"strategy.global_batch", batch.global}}};
  for (const auto& [name, size] : sizes) {
    const std::string own = setting(size.first);
    if (!own.empty() && size.second > 0 && own != std::to_string(size.second))
      config.keys().fail(config.keys().given(name) ? name : "train_batch_size",
                         fmt::format(" makes {} {}, but the arguments have {}", name, size.second, own));
    if (own.empty() && size.second > 0)
      job_.settings.push_back({size.first, std::to_string(size.second), config.keys().place(name)});
  }
}

/// Without the file the stage is that of --zero-stage, and everything else DeepSpeed's default.
void LaunchReader::read_without_config() {
  const Argument& named = *config_argument();
  const std::string value = named.values.empty() ? "" : named.values.front().text;
  const std::string shown = shell::is_known(value) ? value : "that of " + shell::why_unknown(value);
  if (find("zero-stage") == nullptr)
    fail(named.name,
         fmt::format(": {} is neither beside the script nor written by it; it decides ZeRO's stage: put it there, "
                     "or give --zero-stage",
                     shown));
  const bool half = std::any_of(arguments_.arguments.begin(), arguments_.arguments.end(),
                                [](const Argument& one) { return one.name == "fp16"; });
  const std::string stage = std::to_string(count("zero-stage", 0));
  const DsConfig config("{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": " + stage +
                            "}, \"" + (half ? "fp16" : "bf16") + "\": {\"enabled\": true}}",
                        file_.path, find("zero-stage")->place.line, job_);
  config.add_settings(job_, job_.gpus > 0 ? job_.gpus / (size("strategy.tp") * size("strategy.pp")) : 0, 0);
  job_.notes.push_back(
      fmt::format("assumed: DeepSpeed's defaults with ZeRO {}, as --zero-stage says; {} is not there", stage, shown));
}

}  // namespace
}  // namespace deepspeed

bool is_deepspeed_script(const JobFile& file) {
  return is_script(file) && (file.text.find("--deepspeed_config") != std::string::npos ||
                             file.text.find("--deepspeed-config") != std::string::npos);
}

Job read_deepspeed_script(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return deepspeed::LaunchReader(file, options, catalog).read();
}

}  // namespace manyworlds::experiments::jobs
