// Reads the YAML of NeMo Automodel: a model of the Hugging Face hub, PyTorch's FSDP2 and DTensors, pipelines of
// torch.distributed.pipelining.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "experiments/jobs/low_rank_pairs.hpp"
#include "experiments/nemo/nemo.hpp"
#include "experiments/nemo/settings.hpp"
#include "experiments/shell/arithmetic.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

constexpr std::int64_t kMaxSize = 1 << 24;

const char* const kTp = "distributed.tp_size";
const char* const kPp = "distributed.pp_size";
const char* const kCp = "distributed.cp_size";
const char* const kEp = "distributed.ep_size";
const char* const kPipeline = "distributed.pipeline.";

bool changes_nothing(const KnownName& known, const Node& value) {
  if (value.kind != Node::Kind::scalar) return value.kind == Node::Kind::null;
  for (const char* off : {"", "false", "False", "null", "None"})
    if (value.text == off) return true;
  return known.is_harmless(value.text);
}

class AutomodelReader {
 public:
  AutomodelReader(const JobFile& file, const JobOptions& options, const Catalog& catalog)
      : options_(options), catalog_(catalog), root_(import::parse_yaml(file.text, file.path)) {}

  Job read();

 private:
  const Node* find(const std::string& name) const;
  const Node* first_of(const std::vector<std::string>& names) const;
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  std::int64_t count(const std::string& name, std::int64_t otherwise, std::int64_t minimum = 1) const;
  bool is_on(const std::string& name, bool otherwise = false) const;
  std::string word(const std::string& name) const;
  Place place(const std::string& name) const;
  void set(const std::string& key, const std::string& value, const std::string& because);

  void collect();
  void check(const std::string& name, const Node& value);
  void check_recipe() const;
  void read_model();
  void read_gpus();
  void read_layout();
  void read_sharding();
  void read_pipeline();
  std::vector<std::int64_t> stages_of(std::int64_t layers, bool single);
  void read_batch();
  void read_stack();
  void read_precision();
  void read_experts();
  void read_pairs();

  const JobOptions& options_;
  const Catalog& catalog_;
  const Node root_;
  std::map<std::string, Node> values_;
  std::vector<std::string> noted_;
  std::vector<JobSetting> model_;
  std::int64_t tp_ = 1, pp_ = 1, cp_ = 1, ep_ = 1;
  Job job_;
};

const Node* AutomodelReader::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.kind == Node::Kind::null || found->second.text == "none" ||
                 found->second.text == "None"
             ? nullptr
             : &found->second;
}

const Node* AutomodelReader::first_of(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const Node* one = find(name)) return one;
  return nullptr;
}

std::string AutomodelReader::text(const std::string& name, const std::string& otherwise) const {
  const Node* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->kind != Node::Kind::scalar) value->fail(fmt::format("'{}' must be a value", name));
  return value->text;
}

std::int64_t AutomodelReader::count(const std::string& name, std::int64_t otherwise, std::int64_t minimum) const {
  const std::string given = text(name);
  if (given.empty()) return otherwise;
  const auto number = shell::integer_of(given);
  if (!number || *number < minimum || *number > kMaxSize)
    find(name)->fail(
        fmt::format("'{}' must be a whole number from {} to {}, not '{}'", name, minimum, kMaxSize, given));
  return *number;
}

bool AutomodelReader::is_on(const std::string& name, bool otherwise) const {
  const std::string given = text(name);
  if (given.empty()) return otherwise;
  if (given == "true" || given == "True") return true;
  if (given != "false" && given != "False")
    find(name)->fail(fmt::format("'{}' must be true or false, not '{}'", name, given));
  return false;
}

/// Returns what a value stands for by the table.
std::string AutomodelReader::word(const std::string& name) const {
  std::string given = text(name);
  std::transform(given.begin(), given.end(), given.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string& values = automodel_keys().find(name)->values;
  const std::string meaning = translated(values, given);
  if (meaning.empty())
    find(name)->fail(fmt::format("'{}' {} is not modelled; known are {}", name, given, known_words(values)));
  return meaning;
}

Place AutomodelReader::place(const std::string& name) const {
  const Node* value = find(name);
  return value == nullptr ? Place{} : Place{value->file, value->line};
}

void AutomodelReader::set(const std::string& key, const std::string& value, const std::string& because) {
  job_.settings.push_back({key, value, place(because)});
}

/// Reads all keys, those of older files under their later names, and judges those that no setting follows from.
void AutomodelReader::collect() {
  visit_leaves(root_, "", [&](std::string name, const Node& value) {
    for (const auto& [old, later] : {std::pair("autopipeline.", kPipeline), {"distributed_config.", "distributed."}})
      if (name.starts_with(old)) name = later + name.substr(std::string(old).size());
    values_[name] = value;
    check(name, value);
  });
  if (!noted_.empty()) job_.notes.push_back(fmt::format("not modelled: {}", fmt::join(noted_, ", ")));
}

void AutomodelReader::check(const std::string& name, const Node& value) {
  const KnownNames& keys = automodel_keys();
  const KnownName* known = keys.find(name) != nullptr ? keys.find(name) : keys.find_beginning(name);
  if (known == nullptr && value.kind == Node::Kind::null) return;  // not set
  if (known == nullptr)
    value.fail(fmt::format("'{}' is no key of {} that is known here{}", name, keys.framework(), keys.near(name)));
  if (known->fate == Fate::mapped) return void(++job_.mapped);
  if (known->fate == Fate::irrelevant || changes_nothing(*known, value)) return void(++job_.irrelevant);
  if (known->fate == Fate::refused) value.fail(fmt::format("'{}' {}: {}", name, value.text, known->why));
  noted_.push_back(fmt::format("{} ({})", name, known->why));
}

/// Recipes for other models than language models, and optimizers other than Adam, are not modelled.
void AutomodelReader::check_recipe() const {
  const std::string recipe = text("recipe");
  if (!recipe.empty() && recipe.find("NextTokenPrediction") == std::string::npos)
    find("recipe")->fail(fmt::format("'recipe' {} is not modelled; known are those for next-token prediction", recipe));
  const std::string optimizer = text("optimizer._target_", "Adam");
  if (optimizer.find("Adam") == std::string::npos)
    find("optimizer._target_")->fail(fmt::format("'optimizer._target_' {} is not modelled; only Adam is", optimizer));
}

void AutomodelReader::read_model() {
  ModelName name{options_.model, {}};
  if (name.name.empty()) {
    const Node* given = first_of({"model.pretrained_model_name_or_path", "model.config.pretrained_model_name_or_path",
                                  "model.config.name_or_path", "model.config"});
    if (given == nullptr || given->kind != Node::Kind::scalar)
      root_.fail("it names no model (model.pretrained_model_name_or_path); give --model NAME or --model config.json");
    name = {given->text, {given->file, given->line}};
  }
  std::vector<JobSetting> model = settings_of_model(name, catalog_);
  for (JobSetting& one : model)
    if (one.key == "model.layers") {
      one.value = std::to_string(count("model.config.num_hidden_layers", *shell::integer_of(one.value)));
    }
  std::string because = "packed_sequence.packed_sequence_size";
  if (count(because, 0, 0) == 0)
    because = find("dataset.seq_len") != nullptr ? "dataset.seq_len" : "dataset.seq_length";
  const std::int64_t sequence = count(because, 0);
  if (sequence == 0)
    job_.notes.push_back(
        fmt::format("assumed: samples of {} tokens, which the file does not say", value_in(model, "model.sequence")));
  for (JobSetting& one : model)
    if (sequence > 0 && one.key == "model.sequence") one = {one.key, std::to_string(sequence), place(because)};
  model_ = model;
  job_.settings.insert(job_.settings.end(), model.begin(), model.end());
}

/// The launcher starts the processes: only a data-parallel size or Slurm's section says how many.
void AutomodelReader::read_gpus() {
  tp_ = count(kTp, 1), pp_ = count(kPp, 1), cp_ = count(kCp, 1), ep_ = count(kEp, 1);
  std::int64_t told = count("distributed.dp_size", 0) * tp_ * pp_ * cp_;
  if (told == 0) told = count("slurm.nodes", 0) * count("slurm.ntasks_per_node", 0);
  job_.gpus = options_.gpus > 0 ? options_.gpus : told;
  const char* nodes = find("benchmark.num_nodes") != nullptr ? "benchmark.num_nodes" : "ci.nodes";
  if (job_.gpus == 0 && count(nodes, 0) > 0)
    job_.notes.push_back(fmt::format("it runs on {} nodes, and does not say how many GPUs each has", text(nodes)));
  if (job_.gpus > 0 && job_.gpus % (tp_ * pp_ * cp_) != 0)
    fail_at(place(kTp),
            fmt::format("{} GPUs are no multiple of tp {} x pp {} x cp {}; give --gpus N", job_.gpus, tp_, pp_, cp_));
}

void AutomodelReader::read_layout() {
  set("strategy.tp", std::to_string(tp_), kTp);
  set("strategy.pp", std::to_string(pp_), kPp);
  set("strategy.cp", std::to_string(cp_), kCp);
  const bool parallel = is_on("distributed.sequence_parallel") && tp_ > 1;
  set("strategy.sequence_parallel", parallel ? "true" : "false", "distributed.sequence_parallel");
  set("strategy.recompute", is_on("distributed.activation_checkpointing") ? "full" : "none",
      "distributed.activation_checkpointing");
  set("strategy.overlap_grad_reduce", "true", "distributed.strategy");
  read_sharding();
  read_pipeline();
  read_batch();
}

void AutomodelReader::read_sharding() {
  const char* because = "distributed.strategy";
  const std::string stage = find(because) == nullptr ? "3" : word(because);
  const std::int64_t replicas = job_.gpus > 0 ? job_.gpus / (tp_ * pp_) : 2;
  set("strategy.zero", replicas == 1 ? "0" : stage, because);
  const std::int64_t copies = count("distributed.dp_replicate_size", 1);
  if (copies == 1 || stage == "0") return;
  if (job_.gpus == 0 || replicas % copies != 0)
    find("distributed.dp_replicate_size")
        ->fail("'distributed.dp_replicate_size' needs --gpus N, whose replicas it divides");
  set("strategy.zero_group", std::to_string(replicas / copies), "distributed.dp_replicate_size");
}

/// Returns the layers of each stage (pipelining/functional.py, calculate_virtual_stages()).
std::vector<std::int64_t> AutomodelReader::stages_of(std::int64_t layers, bool single) {
  const std::string because = std::string(kPipeline) + "layers_per_stage";
  const std::int64_t each = count(because, 0);
  std::int64_t stages = each == 0 ? pp_ * (single ? 1 : 2) : (layers + each - 1) / each;
  if (const std::int64_t over = stages % pp_; over != 0) {
    const std::string round = text(std::string(kPipeline) + "round_virtual_stages_to_pp_multiple");
    if (round != "up" && round != "down")
      find(because)->fail(
          fmt::format("'{}' {} makes {} stages, no multiple of pp {}; round_virtual_stages_to_pp_multiple "
                      "must be up or down",
                      because, each, stages, pp_));
    stages += round == "up" ? pp_ - over : -over;
  }
  const std::int64_t chunks = stages / pp_;
  if (stages == 0 || stages > layers || (single ? chunks != 1 : chunks < 2))
    fail_at(place(find(because) == nullptr ? kPp : because),
            fmt::format("{} layers make {} stages over pp {}: the schedule needs {} a rank", layers, stages, pp_,
                        single ? "one" : "two or more"));
  std::vector<std::int64_t> result(static_cast<std::size_t>(stages), layers / stages);
  for (std::int64_t i = 0; i < layers % stages; ++i) ++result[static_cast<std::size_t>(i)];
  return result;
}

void AutomodelReader::read_pipeline() {
  const std::string because = std::string(kPipeline) + "pp_schedule";
  if (pp_ == 1) {
    set("strategy.schedule", "1f1b", kPp);
    return set("strategy.virtual_stages", "1", kPp);
  }
  const std::string schedule = find(because) == nullptr ? "1f1b" : word(because);
  const bool single = schedule == "1f1b" || schedule == "gpipe";
  const std::int64_t layers = *shell::integer_of(value_in(model_, "model.layers"));
  const std::vector<std::int64_t> stages = stages_of(layers, single);
  set("strategy.schedule", schedule, because);
  set("strategy.virtual_stages", std::to_string(static_cast<std::int64_t>(stages.size()) / pp_),
      std::string(kPipeline) + "layers_per_stage");
  if (layers % static_cast<std::int64_t>(stages.size()) != 0)
    set("strategy.stage_layers", fmt::format("[{}]", fmt::join(stages, ", ")),
        std::string(kPipeline) + "layers_per_stage");
}

/// Without a pipeline a local batch is a micro-batch; with one it is what goes through the pipeline at once.
void AutomodelReader::read_batch() {
  const char *global = "step_scheduler.global_batch_size", *local = "step_scheduler.local_batch_size";
  for (const char* name : {global, local})
    if (find(name) == nullptr) root_.fail(fmt::format("it lacks {}", name));
  set("strategy.global_batch", text(global), global);
  count(global, 1);
  const std::string micro = std::string(kPipeline) + "pp_microbatch_size";
  if (pp_ == 1) return set("strategy.micro_batch", std::to_string(count(local, 1)), local);
  set("strategy.micro_batch", std::to_string(count(micro, 1)), micro);
  const std::int64_t replicas = job_.gpus > 0 ? job_.gpus / (tp_ * pp_ * cp_) : 0;
  if (const std::int64_t once = count(local, 1) * replicas; once > 0 && count(global, 1) > once)
    job_.notes.push_back(fmt::format("not modelled: a step fills and empties its pipeline {} times ({}); here once",
                                     count(global, 1) / once, local));
}

void AutomodelReader::read_stack() {
  const bool experts = value_in(model_, "model.experts") != "" && value_in(model_, "model.experts") != "0";
  const std::string attention =
      find("model.backend.attn") != nullptr ? "model.backend.attn" : "model.attn_implementation";
  if (find(attention) != nullptr) set("strategy.stack.attention", word(attention), attention);
  if (find("model.backend.linear") != nullptr)
    set("strategy.stack.layers", word("model.backend.linear"), "model.backend.linear");
  if (find("model.backend.rope_fusion") != nullptr)
    set("strategy.stack.rope_fusion", word("model.backend.rope_fusion"), "model.backend.rope_fusion");
  if (is_on("distributed.enable_async_tensor_parallel") && is_on("distributed.sequence_parallel") && tp_ > 1)
    set("strategy.stack.overlap_tensor", "true", "distributed.enable_async_tensor_parallel");
  job_.stack = "torch-fsdp";
  read_precision();
  if (experts) read_experts();
}

void AutomodelReader::read_precision() {
  const char* because = "model.backend.te_fp8.recipe";
  if (find(because) == nullptr) return set("strategy.stack.precision", "bf16", "model.torch_dtype");
  const std::string linear = text("model.backend.linear", "te"), experts = text("model.backend.experts", "te");
  if (linear != "te" || experts != "te")
    find(because)->fail(
        fmt::format("'{}' {} is for layers of Transformer Engine, and linear is {} and experts {}: "
                    "layers of two precisions are not modelled; both must be te",
                    because, text(because), linear, experts));
  set("strategy.stack.precision", word(because), because);
}

void AutomodelReader::read_experts() {
  const char *dispatcher = "model.backend.dispatcher", *experts = "model.backend.experts";
  set("strategy.ep", std::to_string(ep_), kEp);
  set("strategy.etp", "1", kEp);
  if (find(experts) != nullptr) set("strategy.expert_gemm", word(experts), experts);
  if (ep_ > 1 && (find(dispatcher) == nullptr || text(dispatcher) == "torch"))
    fail_at(place(find(dispatcher) == nullptr ? kEp : dispatcher),
            "'model.backend.dispatcher' torch all-gathers tokens, which is not modelled; known are deepep, hybridep");
  if (find(dispatcher) != nullptr && text(dispatcher) != "torch")
    set("strategy.stack.dispatcher", word(dispatcher), dispatcher);
  if (find("model.backend.dispatcher_num_sms") != nullptr)
    set("strategy.stack.dispatcher_sms", text("model.backend.dispatcher_num_sms"), "model.backend.dispatcher_num_sms");
  job_.stack = "torch-fsdp-deepep";
  if (!is_on("model.backend.fake_balanced_gate"))
    job_.notes.emplace_back("assumed: tokens are spread evenly over the experts");
}

/// Pairs of low rank beside the modules that are named, or all *_proj (_peft/module_matcher.py).
void AutomodelReader::read_pairs() {
  const bool has_section =
      std::any_of(values_.begin(), values_.end(), [](const auto& one) { return one.first.starts_with("peft."); });
  if (!has_section && is_on("quantization.load_in_4bit"))
    find("quantization.load_in_4bit")->fail("'quantization.load_in_4bit' is for weights beside pairs of low rank");
  if (!has_section) return;
  const char *rank = "peft.dim", *modules = "peft.target_modules";
  LowRankPairs pairs;
  pairs.rank = {text(rank, "8"), place(rank)};
  if (const Node* listed = find(modules)) pairs.modules = module_words(modules, *listed);
  if (pairs.modules.empty()) pairs.modules = {{"*_proj", place(rank)}};
  put_pairs(job_, pairs, ModuleNames::hugging_face);
  const char* bits = "quantization.load_in_4bit";
  if (!is_on(bits)) return;
  if (!is_on("quantization.bnb_4bit_use_double_quant") || text("quantization.bnb_4bit_quant_type", "fp4") != "nf4")
    find(bits)->fail(fmt::format("'{}' is modelled with bnb_4bit_quant_type nf4 and bnb_4bit_use_double_quant", bits));
  set("model.frozen_weights", word(bits), bits);
}

Job AutomodelReader::read() {
  if (root_.kind != Node::Kind::mapping) root_.fail("a job's file is a mapping");
  job_.kind = "a YAML file of NeMo Automodel";
  collect();
  check_recipe();
  read_model();
  read_gpus();
  read_layout();
  read_stack();
  read_pairs();
  return std::move(job_);
}

}  // namespace

bool is_automodel(const JobFile& file) {
  const bool yaml = file.ending() == ".yaml" || file.ending() == ".yml";
  return yaml && (file.text.find("nemo_automodel") != std::string::npos ||
                  (file.text.find("\nstep_scheduler:") != std::string::npos &&
                   file.text.find("\nmodel:") != std::string::npos));
}

Job read_automodel(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  return AutomodelReader(file, options, catalog).read();
}

}  // namespace manyworlds::experiments::jobs
