// What an experiment is launched with is that experiment when it is read again, and what the framework's own parser
// takes.
#include "experiments/frameworks/emit_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "core/memory/footprint.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/frameworks/read_back.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron/arguments.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/text.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/jobs/";
const std::string kSuperpod = "{like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}";

const Catalog& catalog() {
  static const Catalog all;
  return all;
}

Experiment experiment_of(const std::string& yaml, const std::vector<std::string>& set = {}) {
  return parse_sweep(yaml, "s.yaml", set, catalog()).experiments.at(0);
}

/// A small experiment of a Megatron stack on 16 H100.
std::string small(const std::string& model, const std::string& strategy) {
  return "base:\n  model: {layers: 8, hidden: 1024, heads: 16, vocabulary: 32768, sequence: 512, " + model +
         "}\n  cluster: " + kSuperpod + "\n  strategy: {global_batch: 32, " + strategy + "}\n";
}

Settings read_back(const EmitTarget& target, const EmittedJob& emitted, const Experiment& one) {
  const std::int64_t gpus = one.config().cluster.gpus();
  return settings_of(read_job(JobFile{target.file, emitted.text}, {{}, gpus}, catalog()), one.settings, catalog());
}

bool is_noted(const EmittedJob& emitted, const std::string& key) {
  return std::any_of(emitted.notes.begin(), emitted.notes.end(),
                     [&](const std::string& note) { return note.starts_with(key + " "); });
}

auto step_of(const Experiment& one) {
  GraphCache graphs;
  core::step::Configuration configuration = configure(one, graphs);
  core::step::SimulationContext context(true);
  core::step::IsolatedResults isolated;
  return context.run(context.compile(configuration), isolated).step_ps;
}

std::int64_t peak_of(const Experiment& one) {
  const auto configuration = one.config().configuration;
  return core::memory::peak(configuration.model, configuration.strategy, configuration.gpu).total();
}

/// Emits an experiment, reads it back, and checks that everything is equal or told. Returns what was told.
std::vector<std::string> told_of(const EmitTarget& target, const Experiment& one, bool simulated) {
  const EmittedJob emitted = emit_job(target, one.settings, nullptr, catalog());
  INFO(file_text(emitted, {}));
  Experiment again = one;
  again.settings = read_back(target, emitted, one);
  const std::vector<Difference> found = differences(one.settings, again.settings);
  for (const Difference& each : found) {
    INFO(each.key << " " << each.value << " is read back as " << each.other);
    CHECK(is_noted(emitted, each.key));
  }
  if (!found.empty()) return emitted.notes;
  CHECK(peak_of(again) == peak_of(one));
  if (simulated) CHECK(step_of(again) == step_of(one));
  CHECK(emit_job(target, again.settings, nullptr, catalog()).text == emitted.text);
  return emitted.notes;
}

/// What Megatron-LM's parser of one year accepts.
class ArgumentParser {
 public:
  explicit ArgumentParser(const std::string& file)
      : arguments_(nlohmann::json::parse(import::read_text(kFolder + file)).at("arguments")) {}

  /// Checks that the parser knows every argument of a script, its number of values, their type and the choices.
  void check(const std::string& script) const {
    for (const Argument& one : read_script(script, "train.sh", {}).arguments) {
      INFO("--" << one.name << " of " << arguments_.size());
      REQUIRE(arguments_.contains("--" + one.name));
      const auto& known = arguments_.at("--" + one.name);
      if (known.at("values").is_number())
        CHECK(one.values.size() == known.at("values").get<std::size_t>());
      else
        CHECK_FALSE(one.values.empty());
      for (const Text& value : one.values) check(known, value.text);
    }
  }

 private:
  static void check(const nlohmann::json& known, const std::string& value) {
    INFO(value);
    if (known.contains("choices")) {
      const auto& choices = known.at("choices");
      CHECK(std::find(choices.begin(), choices.end(), value) != choices.end());
    }
    const std::string type = known.value("type", "str");
    const char* digits = type == "int" ? "0123456789" : type == "float" ? "0123456789.e-+" : nullptr;
    if (digits != nullptr) CHECK(value.find_first_not_of(digits) == std::string::npos);
  }

  nlohmann::json arguments_;
};

/// Draws values that Megatron-LM has arguments for, and a few that it has not.
struct Draw {
  std::mt19937_64 random;

  const std::string& one_of(const std::vector<std::string>& words) { return words[random() % words.size()]; }
  bool chance(int in) { return random() % static_cast<unsigned>(in) == 0; }

  /// Draws settings of a model with experts, or of one without.
  std::vector<std::string> settings(bool of_megatron, bool experts) {
    static const std::vector<std::pair<std::string, std::vector<std::string>>> often{
        {"strategy.tp", {"1", "2", "4"}},
        {"strategy.pp", {"1", "2", "4"}},
        {"strategy.cp", {"1", "2"}},
        {"strategy.micro_batch", {"1", "2"}},
        {"strategy.zero", {"0", "1", "1", "2", "3"}},
        {"strategy.recompute", {"none", "selective", "full"}},
        {"strategy.stack.precision", {"bf16", "bf16", "fp16", "fp8"}}};
    const std::vector<std::pair<std::string, std::vector<std::string>>> seldom{
        {"strategy.schedule", {"interleaved"}},
        {"strategy.virtual_stages", {"2"}},
        {"strategy.split", {"light_ends", "light_last"}},
        {"strategy.stage_layers", {"3+5", "1+3+3+1", "1+2+1+1+1+1+1+0"}},
        {"strategy.empty_layers", {"1", "2"}},
        {"strategy.sequence_parallel", {"true", "false"}},
        {"strategy.bucket_parameters", {"3000000", "40000000"}},
        {"strategy.zero_group", {"2"}},
        {"strategy.cp_comm", {"all_gather", "ulysses"}},
        {"strategy.recompute_modules", {"layernorm", "core_attn+mlp", "layernorm+mlp_act"}},
        {"strategy.offload_modules", {"attn_norm", "core_attn+mlp_norm"}},
        {"strategy.capacity_factor", {"1", "1.5"}},
        {"strategy.token_drop", {"position"}},
        {"strategy.pad_to_capacity", {"true"}},
        {"strategy.ep", {"2", "4"}},
        {"strategy.etp", {"1", "2"}},
        {"strategy.stack.overlap_tensor", {"true", "false"}},
        {"strategy.stack.overlap_transfers", {"false"}},
        {"strategy.stack.overlap_experts", {"true"}},
        {"strategy.stack.overlap_shared_expert", {"true"}},
        {"strategy.stack.delay_expert_weights", {"true"}},
        {"strategy.stack.reduce_in_16bit", {"true", "false"}},
        {"strategy.stack.deterministic", {"true"}},
        {"strategy.stack.fused_loss", {"true"}},
        {"strategy.stack.cuda_graphs", {"all", experts ? "all_but_experts" : "all"}},
        {"strategy.stack.dispatcher", {"hybrid_ep", "deepep"}},
        {"strategy.stack.dispatcher_sms", {"12"}},
        {"strategy.stack.bias_activation_fusion", {"false"}},
        {"strategy.stack.bias_dropout_fusion", {"false"}},
        {"strategy.stack.rope_fusion", {"false"}},
        {"strategy.stack.permute_fusion", {"false"}},
        {"strategy.stack.router_fusion", {"false"}},
        {"strategy.stack.gradient_accumulation_fusion", {"false"}}};
    static const std::vector<std::pair<std::string, std::vector<std::string>>> foreign{
        {"strategy.schedule", {"gpipe", "zb_h1"}},
        {"strategy.recompute", {"per_op"}},
        {"strategy.recompute_stages", {"1"}},
        {"strategy.recompute_layers", {"1"}},
        {"strategy.stage_recompute_layers", {"0+1", "1+0+2+1"}},
        {"strategy.offload_layers", {"1"}},
        {"strategy.expert_recompute_tokens", {"20"}},
        {"strategy.hot_experts", {"true"}},
        {"strategy.stack.tensor_chunks", {"2"}},
        {"strategy.stack.communication_engine", {"copy", "sm"}},
        {"strategy.stack.grouped_query_fusion", {"false"}},
        {"strategy.stack.masked_softmax_fusion", {"false"}},
        {"strategy.stack.post_validation", {"true"}},
        {"strategy.stack.host_kernel_us", {"40"}}};
    std::vector<std::string> sets;
    for (const auto& [key, values] : often) sets.push_back(key + "=" + one_of(values));
    // Megatron-LM asserts that gradients are reduced beside the backward pass where parameters are gathered so.
    if (chance(4)) {
      sets.emplace_back("strategy.stack.overlap_parameters=false");
      if (chance(2)) sets.emplace_back("strategy.overlap_grad_reduce=false");
    }
    const std::string attention = "strategy.stack.attention=";
    if (chance(8)) {
      sets.emplace_back("strategy.stack.layers=framework");
      sets.push_back(attention + one_of({"unfused", "flash2"}));
      if (chance(2)) sets.emplace_back("strategy.stack.masked_softmax_fusion=false");
    } else {
      sets.push_back(attention + one_of({"unfused", "flash2", "cudnn", "cudnn", of_megatron ? "cudnn" : "flash"}));
    }
    if (sets[5] == "strategy.recompute=full" && chance(2)) sets.push_back("strategy.recompute_layers=1");
    for (const auto& [key, values] : seldom)
      if (chance(6)) sets.push_back(key + "=" + one_of(values));
    for (const auto& [key, values] : foreign)
      if (!of_megatron && chance(4)) sets.push_back(key + "=" + one_of(values));
    return sets;
  }

  std::string model() {
    return one_of(
        {"norm: layer_norm, activation: gelu, position: learned, tied_embeddings: true, biases: true, "
         "dropout: true",
         "kv_heads: 4, ffn_hidden: 2816", "query_key_norm: true, head_dim: 128", "window: 128",
         "window: 128, window_every: 2", "experts: 8, experts_per_token: 2, expert_ffn_hidden: 512",
         "experts: 8, experts_per_token: 4, expert_ffn_hidden: 512, shared_ffn_hidden: 512, dense_layers: 1",
         "experts: 4, experts_per_token: 2, expert_ffn_hidden: 512, attention: latent, kv_rank: 128, "
         "query_rank: 256, rotary_dim: 64, head_dim: 64",
         "mtp_layers: 1, experts: 8, experts_per_token: 2, expert_ffn_hidden: 512", "mtp_layers: 2"});
  }
};

using Notes = std::vector<std::string>;

/// Draws valid experiments, every second one of what Megatron-LM can run, emits them, and calls `check` with what was
/// told of each. Returns the number of those that came back whole.
int whole_of_drawn(const EmitTarget& target, std::uint64_t seed, int count, bool with_latent_attention,
                   const std::function<void(const Experiment&, bool of_megatron, const Notes&)>& check) {
  Draw draw{std::mt19937_64(seed)};
  int whole = 0;
  for (int drawn = 0; drawn < count;) {
    const bool of_megatron = drawn % 2 == 0;
    const std::string model = draw.model();
    if (!with_latent_attention && model.find("latent") != std::string::npos) continue;
    const std::vector<std::string> sets = draw.settings(of_megatron, model.find("experts") != std::string::npos);
    const std::string yaml = small(model, "stack: megatron-core");
    Experiment one;
    try {
      one = experiment_of(yaml, sets);
    } catch (const core::InputError&) {
      continue;
    }
    ++drawn;
    INFO(yaml << fmt::format("{}", fmt::join(sets, " ")));
    const Notes notes = told_of(target, one, drawn % 8 == 0);
    whole += notes.empty() ? 1 : 0;
    check(one, of_megatron, notes);
  }
  return whole;
}

}  // namespace

TEST_CASE("the published jobs of Megatron-LM come back as they are when they are emitted") {
  struct Known {
    const char *file, *cluster;
    std::int64_t gpus;
    const char* parser;
  };
  const Known all[] = {
      {"train_llama3_8b_h100_fp8.sh", "{like: dgx_h100_superpod, nodes: 1, gpus_per_node: 8}", 8,
       "megatron_parser.json"},
      {"train_gpt3_175b_distributed.sh", "{like: dgx_a100_superpod, nodes: 128, gpus_per_node: 8}", 1024,
       "megatron_parser.json"},
      {"run_table_1.sh", "{like: dgx_a100_superpod, nodes: 4, gpus_per_node: 8}", 32, "megatron_2021_parser.json"},
      {"mixtral_8x22b_tp2pp8ep8vpp1_release_model_config.yaml",
       "{like: dgx_h100_superpod, nodes: 16, gpus_per_node: 8}", 128, "megatron_parser.json"},
      {"gpt3_15b_8t_release_sm_gb200_model_config.yaml", "{like: gb200_nvl72_racks, nodes: 1, gpus_per_node: 64}", 64,
       "megatron_parser.json"},
  };
  const EmitTarget& megatron = emit_target("megatron");
  for (const Known& known : all) {
    INFO(known.file);
    const Job job = read_job(kFolder + known.file, {{}, known.gpus}, catalog());
    const Experiment one = parse_sweep(document_of(job, known.cluster), job.file, {}, catalog()).experiments.at(0);
    CHECK(told_of(megatron, one, false) == std::vector<std::string>());
    const EmittedJob emitted = emit_job(megatron, one.settings, &job, catalog());
    CHECK(emitted.text.find("# was") == std::string::npos);
    ArgumentParser(known.parser).check(emitted.text);
  }
}

TEST_CASE("each case of run_table_1.sh comes back equal") {
  const std::string text = import::read_text(kFolder + "run_table_1.sh");
  // Models and GPUs of the paper's table 1 (Narayanan et al. 2021).
  const std::pair<const char*, std::int64_t> all[] = {{"1.7B", 32},   {"3.6B", 64},  {"7.5B", 128},  {"18B", 256},
                                                      {"39B", 512},   {"76B", 1024}, {"145B", 1536}, {"310B", 1920},
                                                      {"530B", 2520}, {"1T", 3072}};
  for (const auto& [size, gpus] : all) {
    CAPTURE(size);
    std::string one = text;
    one.replace(one.find("MODEL_SIZE=1.7B"), 15, std::string("MODEL_SIZE=") + size);
    const Job job = read_job(JobFile{kFolder + "run_table_1.sh", one}, {{}, gpus}, catalog());
    const std::string cluster = "{like: dgx_a100_superpod, gpus_per_node: 8, nodes: " + std::to_string(gpus / 8) + "}";
    const Sweep sweep = parse_sweep(document_of(job, cluster), job.file, {}, catalog());
    CHECK(told_of(emit_target("megatron"), sweep.experiments.at(0), false) == std::vector<std::string>());
  }
}

TEST_CASE("what Megatron-LM can run comes back to the picosecond, and the rest is told") {
  const EmitTarget& megatron = emit_target("megatron");
  const ArgumentParser parser("megatron_parser.json");
  const auto check = [&](const Experiment& one, bool of_megatron, const Notes& notes) {
    if (of_megatron) CHECK(notes == Notes());
    parser.check(emit_job(megatron, one.settings, nullptr, catalog()).text);
  };
  CHECK(whole_of_drawn(megatron, 41, 200, true, check) >= 100);
}

TEST_CASE("what Megatron-Bridge's plain recipe can have comes back to the picosecond, and the rest is told") {
  CHECK(whole_of_drawn(emit_target("bridge"), 42, 100, false, [](const Experiment&, bool, const Notes&) {}) >= 20);
  const Experiment latent = experiment_of(small("attention: latent, kv_rank: 128, rotary_dim: 64, head_dim: 64", ""));
  CHECK_THROWS_WITH(emit_job(emit_target("bridge"), latent.settings, nullptr, catalog()),
                    Catch::Contains("'model.attention' is latent"));
}

TEST_CASE("one training that is published as two launches is one experiment, but for vocabulary and fusions") {
  const auto settings_in = [](const std::string& name) {
    const Job job = read_job(kFolder + name, {{}, 2}, catalog());
    return parse_sweep(document_of(job, "{like: dgx_h100_superpod, nodes: 1, gpus_per_node: 2}"), job.file, {},
                       catalog())
        .experiments.at(0)
        .settings;
  };
  std::vector<std::string> different;
  for (const Difference& one :
       differences(settings_in("correlation_run_megatron.sh"), settings_in("correlation_run_bridge.sh")))
    different.push_back(one.key);
  // The tokenizers have 1,024 and 32,000 tokens, and the recipe's positions are as many as the sequence. Megatron-LM's
  // arguments turn fusions off, the recipe's fields turn them on.
  CHECK(different == std::vector<std::string>{"model.vocabulary", "model.carried max-position-embeddings",
                                              "strategy.stack.bias_activation_fusion",
                                              "strategy.stack.bias_dropout_fusion", "strategy.stack.fused_loss"});
}

TEST_CASE("what is not understood of a launch of Megatron-Bridge is refused with its line") {
  const auto refusal = [](const std::string& more) -> std::string {
    const std::string script =
        "torchrun --nproc_per_node 8 --nnodes 1 scripts/training/run_recipe.py \\\n" + more + "\n";
    try {
      read_job(JobFile{"train.sh", script}, {}, catalog());
    } catch (const core::InputError& error) {
      return error.what();
    }
    return "(no error)";
  };
  const std::string plain =
      "--recipe vanilla_gpt_pretrain_config model.num_layers=2 model.hidden_size=256 "
      "model.num_attention_heads=4 ";
  CHECK(refusal(plain) == "(no error)");
  CHECK(refusal(plain + "-tp 2 --seq_length=512 optimizer.lr=3e-4 logger.log_interval=1") == "(no error)");
  CHECK(refusal("--recipe llama3_8b_pretrain_config") ==
        "train.sh:2: --recipe llama3_8b_pretrain_config is a program in Python, which is not run here; read is "
        "vanilla_gpt_pretrain_config with overrides, or one of llama3_8b_peft_config, llama31_8b_peft_config, "
        "llama3_70b_peft_config, llama31_70b_peft_config, llama31_405b_peft_config");
  CHECK(refusal(plain + "model.nosuch=4") ==
        "train.sh:2: model.nosuch is no field of Megatron-Bridge that is known here");
  CHECK(refusal(plain + "model.mtp_num_layers=1") == "(no error)");
  CHECK(refusal(plain + "mixed_precision=fp32_mixed") == "train.sh:2: mixed_precision=fp32_mixed is not modelled");
  CHECK(refusal(plain + "--nosuch 3") == "train.sh:2: --nosuch is no option of run_recipe.py that is known here");
  CHECK(refusal(plain + "-tp") == "train.sh:2: -tp lacks its value");
  CHECK(refusal("--model llama3_8b") == "train.sh:2: --model needs --mode, which says the recipe of it");
}

TEST_CASE("a damaged launch of Megatron-Bridge is read or refused") {
  std::mt19937_64 random(2026);
  const Settings settings = experiment_of(small("window: 128", "tp: 2, recompute: full")).settings;
  for (const std::string& text : {import::read_text(kFolder + "correlation_run_bridge.sh"),
                                  emit_job(emit_target("bridge"), settings, nullptr, catalog()).text})
    for (int i = 0; i < 200; ++i) try {
        const Job job = read_job(JobFile{"train.sh", testing::mutated(text, random)}, {{}, 16}, catalog());
        document_of(job, kSuperpod);
      } catch (const core::InputError&) {
      }
}

TEST_CASE("what differs from the job that an experiment was made from is told beside it") {
  const std::string script =
      "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \\\n"
      "  --num-attention-heads 16 --seq-length 512 --bf16 --vocab-size 32768 \\\n"
      "  --tensor-model-parallel-size 2 --global-batch-size 32\n";
  const Job job = read_job(JobFile{"my.sh", script}, {}, catalog());
  Settings settings = settings_of(job, experiment_of(small("", "")).settings, catalog());
  settings["strategy.tp"] = std::int64_t{4};
  const std::string text = emit_job(emit_target("megatron"), settings, &job, catalog()).text;
  CHECK(text.find("  --tensor-model-parallel-size 4  # was 2 in my.sh:3: strategy.tp is 4\n") != std::string::npos);
  CHECK(text.find("was 2") == text.rfind("was "));
  settings["model.tied_embeddings"] = false, settings["strategy.tp"] = std::int64_t{2};
  settings["strategy.stack.rope_fusion"] = true;
  const EmittedJob other = emit_job(emit_target("megatron"), settings, &job, catalog());
  CHECK(
      other.text.find("--untie-embeddings-and-output-weights  # was true as my.sh does not say: model.tied_embeddings "
                      "is false\n") != std::string::npos);
  CHECK(other.dropped.empty());
  settings["model.tied_embeddings"] = true, settings["strategy.stack.precision"] = std::string("fp16");
  settings["strategy.overlap_grad_reduce"] = true;
  const Job reducing =
      read_job(JobFile{"my.sh", script.substr(0, script.size() - 1) + " --sequence-parallel\n"}, {}, catalog());
  CHECK(emit_job(emit_target("megatron"), settings, &reducing, catalog()).dropped ==
        std::vector<std::string>{"was true in my.sh:3: strategy.sequence_parallel is false"});
  CHECK_THROWS_WITH(emit_target("nosuch"), Catch::StartsWith("--emit: 'nosuch' is no target; known are megatron"));
}

TEST_CASE("no framework's job exchanges factors, which is told by name") {
  const Experiment one = experiment_of(
      small("", "zero: 0, micro_batch: 2, gradient_exchange: factors, factor_weights: mlp_fc1, stack: megatron-core"));
  int emitted = 0;
  for (const EmitTarget& target : emit_targets()) {
    INFO(target.name);
    try {
      const EmittedJob job = emit_job(target, one.settings, nullptr, catalog());
      CHECK(std::count(job.notes.begin(), job.notes.end(), "strategy.gradient_exchange factors: such a job has sums") ==
            1);
      ++emitted;
    } catch (const core::InputError&) {  // it cannot run this layout at all
    }
  }
  CHECK(emitted >= 3);
}
