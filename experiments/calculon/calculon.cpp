// Names are those of calculon-ai/calculon (calculon/llm/llm.py: Llm.Application and Llm.Execution).
#include "experiments/calculon/calculon.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/jobs/given_keys.hpp"
#include "experiments/jobs/named_model.hpp"
#include "experiments/text/text.hpp"
#include "experiments/tree/json_tree.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using import::Node;

/// Megatron-LM's, padded for eight tensor-parallel ranks, as in the papers that Calculon is validated on.
constexpr std::int64_t kVocabulary = 51'200;

/// What Calculon's layer is (calculon/llm/layers.py), and its models' embeddings would be.
constexpr std::array<std::pair<const char*, const char*>, 6> kLikeGpt3{{{"model.activation", "gelu"},
                                                                        {"model.biases", "true"},
                                                                        {"model.dropout", "true"},
                                                                        {"model.norm", "layer_norm"},
                                                                        {"model.position", "learned"},
                                                                        {"model.tied_embeddings", "true"}}};

constexpr const char* kRecompute = "none=none attn_only=selective full=full";
constexpr const char* kTensorCommunication = "ar=false rs_ag=true p2p_rs_ag=true";
constexpr const char* kTensorOverlap = "none=false ring=true pipe=true false=false true=true";
constexpr const char* kPrecision = "float16=fp16 bfloat16=bf16 float8=fp8";

std::vector<KnownName> mapped_keys() {
  return {
      {"num_procs", "cluster.nodes", "GPUs; tensor_par x pipeline_par x data_par"},
      {"tensor_par", "strategy.tp"},
      {"pipeline_par", "strategy.pp"},
      {"data_par", "strategy.dp", "what the others leave of num_procs"},
      {"batch_size", "strategy.global_batch"},
      {"microbatch_size", "strategy.micro_batch"},
      {"minibatch_size", "strategy.micro_batch", "microbatch_size, as executions called it before October 2022"},
      {"datatype", "strategy.stack.precision", "", kPrecision},
      {"attention_type", "model.kv_heads", "", "multihead=as-heads multiquery=1"},
      {"activation_recompute", "strategy.recompute", "", kRecompute},
      {"pipeline_interleaving", "strategy.schedule, strategy.virtual_stages", "1: 1f1b; more: interleaved"},
      {"optimizer_sharding", "strategy.zero", "true: 1"},
      {"tensor_par_comm_type", "strategy.sequence_parallel", "", kTensorCommunication},
      {"tensor_par_overlap", "strategy.stack.overlap_tensor", "", kTensorOverlap},
      {"data_par_overlap", "strategy.overlap_grad_reduce"},
      {"seq_par_ag_redo", "strategy.sequence_parallel",
       "with sequence parallelism, true: backward passes gather their input again, as they do here"},
      {"training", "a training step", "true"},
  };
}

std::vector<NameGroup> other_keys() {
  return {
      {Fate::irrelevant, "networks follow from the machines and where ranks stand",
       "tensor_par_net pipeline_par_net data_par_net"},
      {Fate::noted, "kernels are fused as the software does it: strategy.stack", "fused_activation=false"},
      {Fate::refused, "what is offloaded, and when, is not that of a framework here; see strategy.offload_layers",
       "weight_offload=false activations_offload=false optimizer_offload=false"},
  };
}

/// Keys of the model. Models before February 2023 have neither feedforward nor attn_size: 4 x hidden, and hidden /
/// attn_heads. All others are needed.
struct ModelKey {
  const char *name, *setting;
};
constexpr std::array<ModelKey, 6> kModelKeys{{{"hidden", "model.hidden"},
                                              {"feedforward", "model.ffn_hidden"},
                                              {"seq_size", "model.sequence"},
                                              {"attn_heads", "model.heads"},
                                              {"attn_size", "model.head_dim"},
                                              {"num_blocks", "model.layers"}}};

const KnownNames& model_keys() {
  static const KnownNames keys = [] {
    std::vector<KnownName> mapped;
    for (const ModelKey& key : kModelKeys) mapped.push_back({key.name, key.setting});
    return KnownNames("Calculon", NameKind::key, mapped, {{Fate::irrelevant, "a name, for people", "name"}});
  }();
  return keys;
}

/// Adds what Calculon took before its models said it.
void add_early_sizes(const GivenKeys& keys, Job& job) {
  const std::int64_t hidden = keys.count("hidden", 0, 1), heads = keys.count("attn_heads", 0, 1);
  constexpr std::int64_t kLargestHidden = std::int64_t{1} << 40;
  if (hidden > kLargestHidden || hidden % heads != 0)
    keys.fail("attn_heads", fmt::format(" {} must divide hidden {}, as there is no attn_size", heads, hidden));
  job.settings.push_back({"model.ffn_hidden", std::to_string(4 * hidden), keys.place("hidden")});
  job.settings.push_back({"model.head_dim", std::to_string(hidden / heads), keys.place("attn_heads")});
  job.notes.push_back(
      "assumed: feedforward 4 x hidden and attn_size hidden / attn_heads, as Calculon has it of models that do not say "
      "them (before February 2023)");
}

/// Adds the model of Calculon's JSON, or of the catalog.
void add_model(Job& job, const JobOptions& options, const Catalog& catalog) {
  if (options.model.empty())
    throw core::InputError(
        "an execution of Calculon has no model; give --model FILE.json, Calculon's own, or the NAME of a model",
        job.file);
  if (!options.model.ends_with(".json")) {
    for (const JobSetting& one : settings_of_model({options.model, {}}, catalog)) job.settings.push_back(one);
    return;
  }
  const std::string text = import::read_text(options.model);
  const Node root = import::parse_json_tree(text, options.model);
  if (root.find("num_blocks") == nullptr) {  // of a hub, as other kinds take it
    for (const JobSetting& one : settings_of_model({options.model, {}}, catalog)) job.settings.push_back(one);
    return;
  }
  const GivenKeys keys(model_keys(), flattened(root, model_keys()));
  const bool is_early = !keys.given("feedforward") && !keys.given("attn_size");
  for (const ModelKey& key : kModelKeys) {
    const std::string_view name = key.name;
    if (is_early && (name == "feedforward" || name == "attn_size")) continue;
    if (!keys.given(key.name))
      root.fail(fmt::format("'{}' is missing, without which Calculon knows no model", key.name));
    job.settings.push_back({key.setting, std::to_string(keys.count(key.name, 0, 1)), keys.place(key.name)});
  }
  if (is_early) add_early_sizes(keys, job);
  job.settings.push_back({"model.vocabulary", std::to_string(kVocabulary), {}});
  for (const auto& [key, value] : kLikeGpt3) job.settings.push_back({key, value, {}});
  job.notes.push_back(
      fmt::format("assumed: a vocabulary of {}, tied embeddings and learned positions, as in GPT-3; Calculon's models "
                  "have neither embeddings nor logits; --set model.vocabulary=N",
                  kVocabulary));
}

class Reader {
 public:
  Reader(const JobFile& file, Job& job)
      : keys_(calculon::known_keys(), flattened(import::parse_json_tree(file.text, file.path), calculon::known_keys())),
        job_(job) {}

  void read() {
    keys_.check(job_);
    micro_batch_ =
        keys_.given("microbatch_size") || !keys_.given("minibatch_size") ? "microbatch_size" : "minibatch_size";
    if (keys_.given("microbatch_size") && keys_.given("minibatch_size"))
      keys_.fail("minibatch_size", " is an earlier name of microbatch_size, which is there too: give one");
    for (const char* key : {"num_procs", "tensor_par", "pipeline_par", "data_par", "batch_size", micro_batch_})
      if (!keys_.given(key)) throw core::InputError(fmt::format("'{}' is missing", key), job_.file, 1);
    if (!keys_.flag("training", true)) keys_.fail("training", " false: inference is not modelled");
    read_ranks();
    read_schedule();
    set("strategy.recompute", word("activation_recompute", "none", kRecompute), "activation_recompute");
    set("strategy.stack.precision", word("datatype", "float16", kPrecision), "datatype");
    set("strategy.zero", keys_.flag("optimizer_sharding", false) ? "1" : "0", "optimizer_sharding");
    set_flag("strategy.overlap_grad_reduce", "data_par_overlap");
    if (word("attention_type", "multihead", "multihead=as-heads multiquery=1") == "1")
      set("model.kv_heads", "1", "attention_type");
    read_tensor_communication();
  }

 private:
  void set(const std::string& key, const std::string& value, const std::string& because) {
    job_.settings.push_back({key, value, keys_.place(because)});
  }
  void set_flag(const std::string& key, const std::string& name) {
    set(key, keys_.flag(name, false) ? "true" : "false", name);
  }
  std::string word(const std::string& name, const std::string& otherwise, const std::string& values) const {
    return keys_.translated(name, keys_.text(name, otherwise), values);
  }

  void read_ranks() {
    const std::int64_t tp = keys_.count("tensor_par", 1, 1), pp = keys_.count("pipeline_par", 1, 1);
    const std::int64_t dp = keys_.count("data_par", 1, 1), gpus = keys_.count("num_procs", 1, 1);
    constexpr std::int64_t kMaxGpus = 1 << 20;
    if (tp > kMaxGpus || pp > kMaxGpus || dp > kMaxGpus || tp * pp > kMaxGpus || tp * pp * dp != gpus)
      keys_.fail("num_procs",
                 fmt::format(" {} must be tensor_par x pipeline_par x data_par, {} x {} x {}", gpus, tp, pp, dp));
    job_.gpus = gpus;
    set("strategy.tp", std::to_string(tp), "tensor_par");
    set("strategy.pp", std::to_string(pp), "pipeline_par");
    set("strategy.cp", "1", "");
    set("strategy.global_batch", std::to_string(keys_.count("batch_size", 1, 1)), "batch_size");
    set("strategy.micro_batch", std::to_string(keys_.count(micro_batch_, 1, 1)), micro_batch_);
  }

  void read_schedule() {
    const std::int64_t chunks = keys_.count("pipeline_interleaving", 1, 1);
    set("strategy.schedule", chunks > 1 ? "interleaved" : "1f1b", "pipeline_interleaving");
    set("strategy.virtual_stages", std::to_string(chunks), "pipeline_interleaving");
  }

  void read_tensor_communication() {
    const bool scatters = word("tensor_par_comm_type", "ar", kTensorCommunication) == "true";
    const bool overlaps = word("tensor_par_overlap", "none", kTensorOverlap) == "true";
    set("strategy.sequence_parallel", scatters ? "true" : "false", "tensor_par_comm_type");
    set("strategy.stack.overlap_tensor", overlaps ? "true" : "false", "tensor_par_overlap");
    if (overlaps && !scatters)
      keys_.fail("tensor_par_overlap", " overlaps a GEMM with an all-reduce, which is not modelled; with rs_ag it is");
    if (scatters && !keys_.flag("seq_par_ag_redo", false))
      job_.notes.push_back(
          "seq_par_ag_redo: false: here backward passes gather their input again, and do not keep the gathered one");
  }

  GivenKeys keys_;
  Job& job_;
  const char* micro_batch_ = "microbatch_size";
};

}  // namespace

const KnownNames& calculon::known_keys() {
  static const KnownNames keys("Calculon", NameKind::key, mapped_keys(), other_keys());
  return keys;
}

bool is_calculon_execution(const JobFile& file) {
  return file.ending() == ".json" && file.text.find("\"tensor_par\"") != std::string::npos &&
         file.text.find("\"pipeline_par\"") != std::string::npos;
}

Job read_calculon_execution(const JobFile& file, const JobOptions& options, const Catalog& catalog) {
  Job job;
  job.kind = "an execution of Calculon";
  job.file = file.path;
  job.stack = "megatron-2022";
  Reader(file, job).read();
  add_model(job, options, catalog);
  if (options.gpus > 0 && options.gpus != job.gpus)
    throw core::InputError(fmt::format("is {}, and num_procs of the file {}", options.gpus, job.gpus), "--gpus");
  job.notes.push_back(
      "assumed: the software of Megatron-LM of 2022, which Calculon models; efficiencies are ours, not "
      "those of its system file");
  return job;
}

}  // namespace manyworlds::experiments::jobs
