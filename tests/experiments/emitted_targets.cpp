// Every target of --emit: what it writes is the same experiment when it is read as a job of its own, to the picosecond.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <tuple>

#include "core/base/error.hpp"
#include "core/memory/footprint.hpp"
#include "core/step/run/simulation_context.hpp"
#include "experiments/axes/constraint.hpp"
#include "experiments/frameworks/emit_targets.hpp"
#include "experiments/frameworks/read_back.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/sweep/experiment.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kGpus = 16;
const std::string kMachines = "{like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}";

const Catalog& catalog() {
  static const Catalog all;
  return all;
}

/// Returns an experiment on 16 H100; nothing if a rule excludes it.
std::optional<Experiment> experiment_of(const std::string& model, const std::string& stack, const Words& set) {
  const std::string yaml = fmt::format(
      "base:\n  model: {}\n  cluster: {}\n  strategy: {{global_batch: 32, stack: {}}}\n", model, kMachines, stack);
  try {
    return parse_sweep(yaml, "s.yaml", set, catalog()).experiments.at(0);
  } catch (const core::InputError&) {
    return std::nullopt;
  }
}

/// Returns what was emitted as `--like` has it: all that a stack implies is assumed anew.
Experiment read_again(const EmitTarget& target, const EmittedJob& emitted) {
  const Job job = read_job(JobFile{target.file, emitted.text}, {{}, kGpus}, catalog());
  return parse_sweep(document_of(job, kMachines), job.file, {}, catalog()).experiments.at(0);
}

auto step_of(const Experiment& one) {
  GraphCache graphs;
  core::step::SimulationContext context(true);
  core::step::IsolatedResults isolated;
  return context.run(context.compile(configure(one, graphs)), isolated).step_ps;
}

std::int64_t peak_of(const Experiment& one) {
  const auto configuration = one.config().configuration;
  return core::memory::peak(configuration.model, configuration.strategy, configuration.gpu).total();
}

bool can_run(const EmitTarget& target, const Experiment& one) {
  for (const std::string& condition : target.layouts) {
    import::Node node;
    node.kind = import::Node::Kind::scalar, node.text = condition;
    node.file = std::make_shared<const std::string>("layouts");
    if (!Constraint(node).holds(one.settings)) return false;
  }
  return true;
}

/// Draws a layout of those that a search has.
Words drawn_layout(std::mt19937_64& random, const std::string& stack) {
  const auto one_of = [&](const Words& words) { return words[random() % words.size()]; };
  Words schedules = catalog().entries("stacks").at(stack).schedules;
  Words set{"fidelity=analytic",
            "strategy.tp=" + one_of({"1", "2", "4", "8"}),
            "strategy.pp=" + one_of({"1", "1", "2", "4"}),
            "strategy.cp=" + one_of({"1", "1", "2"}),
            "strategy.micro_batch=" + one_of({"1", "2"}),
            "strategy.recompute=" + one_of({"none", "full"}),
            "strategy.zero=" + one_of({"0", "1", "3"})};
  if (set[2] == "strategy.pp=1") return set;
  const std::string schedule = one_of(schedules);
  set.push_back("strategy.schedule=" + schedule);
  if (schedule != "1f1b" && schedule != "gpipe" && schedule != "zb_h1") set.emplace_back("strategy.virtual_stages=2");
  return set;
}

/// Notes but for those of what changes no step, and a target may have no key for.
Words of_the_step(Words notes) {
  std::erase_if(notes, [](const std::string& note) { return note.starts_with(models::kCarriedKey); });
  return notes;
}

}  // namespace

TEST_CASE("a layout that a search finds for a target has the same step time when what is emitted is read again") {
  for (const EmitTarget& target : emit_targets()) {
    std::mt19937_64 random(11);
    int compared = 0, tensor_parallel = 0;
    for (int i = 0; i < 400 && compared < 8; ++i) {
      const auto one = experiment_of("llama3-8b", target.stack, drawn_layout(random, target.stack));
      if (!one || !can_run(target, *one)) continue;
      INFO(target.name);
      const EmittedJob emitted = emit_job(target, one->settings, nullptr, catalog());
      INFO(file_text(emitted, {}));
      CHECK(of_the_step(emitted.notes) == Words());
      CHECK(emitted.other_stack.empty());
      const Experiment again = read_again(target, emitted);
      CHECK(again.settings.text("strategy.stack.name") == target.stack);
      CHECK(again.settings.text("collectives.version") == one->settings.text("collectives.version"));
      Experiment analytic = again;
      analytic.settings.set("fidelity", std::string("analytic"));
      CHECK(step_of(analytic) == step_of(*one));
      CHECK(peak_of(again) == peak_of(*one));
      ++compared;
      tensor_parallel += one->config().configuration.strategy.tp > 1 ? 1 : 0;
    }
    INFO(target.name);
    CHECK(tensor_parallel > 0);
    CHECK(compared == 8);
  }
}

TEST_CASE("what is emitted says so if its step time is that of other software than its own") {
  const auto one = experiment_of("llama3-8b", "megatron-core", {"strategy.zero=3"});
  REQUIRE(one);
  const EmittedJob emitted = emit_job(emit_target("torchtitan"), one->settings, nullptr, catalog());
  CHECK(emitted.other_stack ==
        "the step time is that of the stack megatron-core; this file is one of the stack torchtitan, with times of its "
        "own");
  CHECK(file_text(emitted, {"mine"}).starts_with("# mine\n# " + emitted.other_stack + "\n"));
}

namespace {

std::string carried_of(const Experiment& one) {
  return one.settings.text(models::kCarriedKey);
}

std::optional<Experiment> of_config(const std::string& file, const std::string& stack) {
  const std::string path = source_folder() + "/tests/experiments/models/" + file + ".json";
  return experiment_of(fmt::format("{{like: {}, sequence: 4096}}", path), stack, {"fidelity=analytic"});
}

}  // namespace

TEST_CASE("a model's own bases, epsilons and scales go from its config.json into every target that has them") {
  // Names of Megatron-LM's arguments that a target has no key for, and tells.
  const std::map<std::string, Words> lacks{{"nemo", {"rope-scaling-factor"}},
                                           {"torchtitan", {"init-method-std", "max-position-embeddings"}},
                                           {"deepspeed", {"rope-scaling-factor", "use-rope-scaling"}}};
  for (const EmitTarget& target : emit_targets()) {
    INFO(target.name);
    const auto one = of_config("meta-llama--Meta-Llama-3.1-8B", target.stack);
    REQUIRE(one);
    CHECK(carried_of(*one) ==
          "init-method-std=0.02 max-position-embeddings=131072 norm-epsilon=1e-05 rope-scaling-factor=8.0 "
          "rotary-base=500000 use-rope-scaling");
    const EmittedJob emitted = emit_job(target, one->settings, nullptr, catalog());
    INFO(file_text(emitted, {}));
    const auto found = lacks.find(target.name);
    const Words lacking = found == lacks.end() ? Words() : found->second;
    const std::string again = carried_of(read_again(target, emitted));
    for (const models::CarriedArgument& own : models::carried_in(carried_of(*one))) {
      const auto all = models::carried_in(again);
      const bool lacked = std::count(lacking.begin(), lacking.end(), own.name) > 0;
      CHECK((std::count(all.begin(), all.end(), own) == 0) == lacked);
      const bool told = std::any_of(emitted.notes.begin(), emitted.notes.end(), [&](const std::string& note) {
        return note.starts_with("model.carried " + own.name + " ");
      });
      CHECK(told == lacked);
    }
  }
}

TEST_CASE("experts, latent attention and longer positions are carried into Megatron-LM's arguments") {
  const auto deepseek = of_config("deepseek-ai--DeepSeek-V3", "megatron-core");
  REQUIRE(deepseek);
  const EmittedJob emitted = emit_job(emit_target("megatron"), deepseek->settings, nullptr, catalog());
  for (const char* line :
       {"--rotary-base 10000", "--norm-epsilon 1e-06", "--max-position-embeddings 163840", "--rope-type yarn",
        "--rotary-scaling-factor 40", "--mscale 1.0", "--mscale-all-dim 1.0", "--moe-router-score-function sigmoid",
        "--moe-router-enable-expert-bias", "--moe-router-num-groups 8", "--moe-router-group-topk 4",
        "--moe-router-topk-scaling-factor 2.5"}) {
    INFO(line);
    CHECK(emitted.text.find(fmt::format("  {}\n", line)) != std::string::npos);
  }
  // YaRN in other attention has no arguments here, which is told.
  const auto oss = of_config("openai--gpt-oss-20b", "megatron-core");
  REQUIRE(oss);
  const Words notes = emit_job(emit_target("megatron"), oss->settings, nullptr, catalog()).notes;
  CHECK(std::count(notes.begin(), notes.end(),
                   "model.carried config.rope_scaling yarn: such a job has nothing of it") == 1);
}

TEST_CASE("groups of experts that a router chooses among come back from every target that has experts") {
  for (const char* name : {"megatron", "bridge", "nemo", "primus", "torchtitan"}) {
    INFO(name);
    const EmitTarget& target = emit_target(name);
    const auto one = experiment_of(
        "{layers: 24, hidden: 2048, heads: 16, kv_heads: 4, head_dim: 128, vocabulary: 151936, sequence: 4096, "
        "norm: rms_norm, activation: swiglu, position: rotary, tied_embeddings: false, biases: false, dropout: false, "
        "query_key_norm: true, experts: 16, experts_per_token: 2, expert_groups: 4, groups_per_token: 2, "
        "expert_ffn_hidden: 1024}",
        target.stack, {"fidelity=analytic", "strategy.tp=1", "strategy.pp=1", "strategy.ep=4", "strategy.zero=3"});
    REQUIRE(one);
    const EmittedJob emitted = emit_job(target, one->settings, nullptr, catalog());
    INFO(file_text(emitted, {}));
    for (const std::string& note : emitted.notes) CHECK(note.find("group") == std::string::npos);
    const core::workload::Model again = read_again(target, emitted).config().configuration.model;
    CHECK(again.expert_groups == 4);
    CHECK(again.groups_per_token == 2);
  }
}

TEST_CASE("a model that torchtitan has no flavor of is emitted with the entry to add, and read again from it") {
  const std::pair<const char*, const char*> all[] = {
      {"{layers: 40, hidden: 5120, heads: 40, kv_heads: 8, ffn_hidden: 14336, vocabulary: 100352, sequence: 4096, "
       "carried: rotary-base=250000 norm-epsilon=1e-05}",
       "llama3_args[\"own\"] = TransformerModelArgs("},
      {"{layers: 24, hidden: 2048, heads: 16, kv_heads: 4, head_dim: 128, ffn_hidden: 6144, vocabulary: 151936, "
       "sequence: 4096, query_key_norm: true, carried: rotary-base=1000000}",
       "qwen3_args[\"own\"] = Qwen3ModelArgs("},
      {"{layers: 24, hidden: 2048, heads: 16, kv_heads: 4, head_dim: 128, vocabulary: 151936, sequence: 4096, "
       "experts: 16, experts_per_token: 2, expert_ffn_hidden: 1024}",
       "qwen3_args[\"own\"] = Qwen3ModelArgs("},
      {"{layers: 16, hidden: 2048, heads: 16, vocabulary: 129280, sequence: 4096, attention: latent, kv_rank: 512, "
       "head_dim: 128, rotary_dim: 64, value_dim: 128, ffn_hidden: 8192, experts: 16, experts_per_token: 4, "
       "expert_groups: 4, groups_per_token: 2, expert_ffn_hidden: 1024, shared_ffn_hidden: 2048, dense_layers: 1, "
       "carried: moe-router-score-function=sigmoid}",
       "deepseekv3_args[\"own\"] = DeepSeekV3ModelArgs("}};
  for (const auto& [model, entry] : all) {
    INFO(model);
    const auto one = experiment_of(model, "torchtitan", {"fidelity=analytic"});
    REQUIRE(one);
    const EmittedJob emitted = emit_job(emit_target("torchtitan"), one->settings, nullptr, catalog());
    INFO(file_text(emitted, {}));
    CHECK(emitted.text.find(entry) != std::string::npos);
    CHECK(emitted.notes == Words());
    Experiment again = read_again(emit_target("torchtitan"), emitted);
    again.settings.set("fidelity", std::string("analytic"));
    CHECK(step_of(again) == step_of(*one));
    for (const models::CarriedArgument& own : models::carried_in(carried_of(*one))) {
      const auto theirs = models::carried_in(carried_of(again));
      CHECK(std::count(theirs.begin(), theirs.end(), own) == 1);
    }
  }
  const auto one = experiment_of(all[0].first, "torchtitan", {});
  REQUIRE(one);
  std::string broken = emit_job(emit_target("torchtitan"), one->settings, nullptr, catalog()).text;
  broken.replace(broken.find("dim=5120"), 8, "dim='a'");
  CHECK_THROWS_WITH(read_job(JobFile{"job.toml", broken}, {{}, kGpus}, catalog()),
                    Catch::Contains("'dim' of TransformerModelArgs must be a whole number"));
}

TEST_CASE("what nobody says of a model is told where a framework has a default for it") {
  const auto unknown = [&](const std::string& target, const std::string& model) {
    const auto one = experiment_of(model, emit_target(target).stack, {"strategy.zero=3", "strategy.tp=1"});
    return emit_job(emit_target(target), one.value().settings, nullptr, catalog()).unknown;
  };
  const Words both{"rotary-base: --set \"model.carried=rotary-base=VALUE\"",
                   "norm-epsilon: --set \"model.carried=norm-epsilon=VALUE\""};
  CHECK(unknown("megatron", "nemotron4-15b") == both);
  CHECK(unknown("megatron", "{like: nemotron4-15b, carried: rotary-base=10000 norm-epsilon=1e-05}").empty());
  CHECK(unknown("megatron", "llama3-8b").empty());                // its published configuration has both
  CHECK(unknown("megatron", "gpt3-1.3b") == Words{both.back()});  // its positions are learned
  CHECK(unknown("torchtitan", "llama3-8b").empty());              // its flavor has both
}

TEST_CASE("a job that Slurm starts is emitted as one, on the nodes of the experiment") {
  const auto emitted = [&](const std::string& head, const std::string& launcher, const std::string& target) {
    const std::string script =
        "#!/bin/bash\n" + head + launcher +
        " torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
        "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 --vocab-size "
        "32000 --bf16 --use-distributed-optimizer" +
        std::string(target != "torchtitan"
                        ? ""
                        : " --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
                          "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 "
                          "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params") +
        "\n";
    const Job job = read_job(JobFile{"train.sh", script}, {{}, kGpus}, catalog());
    const Experiment one = parse_sweep(document_of(job, kMachines), job.file, {}, catalog()).experiments.at(0);
    const std::string text = file_text(emit_job(emit_target(target), one.settings, &job, catalog()), {"a title"});
    // A TOML and an experiment of Primus do not say how many GPUs there are.
    const std::int64_t untold = target == "torchtitan" || target == "primus" ? kGpus : 0;
    const Job again = read_job(JobFile{emit_target(target).file, text}, {{}, untold}, catalog());
    CHECK((again.gpus == kGpus || untold != 0));
    const Settings read_back = settings_of(again, one.settings, catalog());
    const Settings plain = settings_of(
        read_job(
            JobFile{emit_target(target).file, emit_job(emit_target(target), one.settings, nullptr, catalog()).text},
            {{}, kGpus}, catalog()),
        one.settings, catalog());
    CHECK(differences(plain, read_back).empty());
    return text;
  };
  const auto experiment_nodes = kGpus / 8;  // of kMachines, whatever the job had
  const std::string batch =
      fmt::format("#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n", experiment_nodes);
  const std::string run =
      fmt::format("\nsrun --ntasks-per-node 1 torchrun --nproc_per_node 8 --nnodes {} ", experiment_nodes);
  for (const char* target : {"megatron", "bridge", "deepspeed"}) {
    for (const auto& [head, launcher] : {std::pair("#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n", "srun"),
                                         {"#SBATCH --nodes=4\n", ""},
                                         {"", "srun --nodes 4"}}) {
      const std::string text = emitted(head, launcher, target);
      INFO(text);
      // sbatch reads its lines up to the first command.
      CHECK(text.starts_with("#!/bin/bash\n# a title\n"));
      const std::string above = text.substr(0, text.find(batch));
      REQUIRE(above.size() < text.size());
      std::istringstream lines(above);
      for (std::string line; std::getline(lines, line);) CHECK(line.starts_with("#"));
      CHECK(text.find(run) != std::string::npos);
    }
    const std::string plain = emitted("", "", target);
    CHECK(plain.find("SBATCH") == std::string::npos);
    CHECK(plain.find("srun") == std::string::npos);
  }
  // A YAML file has the lines of the batch script as comments.
  for (const auto& [target, tasks, command] :
       {std::tuple("nemo", 8, std::string("srun python examples/nlp/language_modeling/megatron_gpt_pretraining.py")),
        {"primus", 1, fmt::format("EXP=primus.yaml NNODES={} bash examples/run_slurm_pretrain.sh", experiment_nodes)},
        {"torchtitan", 1, run.substr(1)}}) {
    const std::string text = emitted("", "srun --nodes 4", target);
    INFO(text);
    CHECK(text.find(fmt::format("\n#   #SBATCH --nodes={}\n#   #SBATCH --ntasks-per-node={}\n#   #SBATCH "
                                "--gpus-per-node=8\n#   {}",
                                experiment_nodes, tasks, command)) != std::string::npos);
    CHECK(emitted("", "", target).find("SBATCH") == std::string::npos);
  }
}

TEST_CASE("without a target a job is emitted for its own framework, and another experiment for that of its stack") {
  const auto name_of = [](const std::string& stack, const Job* like) {
    const auto one = experiment_of("llama3-8b", stack, {"strategy.zero=3", "strategy.tp=1"});
    return emit_own(one.value().settings, like, catalog()).value().first->name;
  };
  const std::pair<const char*, const char*> all[] = {{"megatron-core", "megatron"}, {"megatron-core-2026", "megatron"},
                                                     {"megatron-bridge", "bridge"}, {"nemo-24.09", "nemo"},
                                                     {"primus", "primus"},          {"torchtitan-eager", "torchtitan"},
                                                     {"torch-fsdp", "torchtitan"},  {"deepspeed-2023", "deepspeed"},
                                                     {"nanotron", "megatron"}};
  for (const auto& [stack, target] : all) CHECK(name_of(stack, nullptr) == target);
  Job job;
  job.framework = "NeMo";
  CHECK(name_of("megatron-core", &job) == "nemo");
  for (const EmitTarget& target : emit_targets()) {
    const auto& kinds = job_kinds();
    CHECK(
        std::any_of(kinds.begin(), kinds.end(), [&](const JobKind& one) { return one.framework == target.framework; }));
    CHECK(target.stack.starts_with(target.stacks) != (target.name == "bridge"));
  }
  // DeepSpeed has no experts of ours: the first that has them takes its place.
  const auto experts = experiment_of("mixtral-8x7b", "deepspeed-2023", {});
  CHECK(emit_own(experts.value().settings, nullptr, catalog()).value().first->name == "megatron");
}

TEST_CASE("what a job says of its model comes back as arguments, and what it says of its data as a comment") {
  const std::string script =
      "#!/bin/bash\nDATA=$1\ntorchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 "
      "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 2048 --vocab-size 32000 --bf16 "
      "--rotary-base 500000 --norm-epsilon 1e-6 --init-method-std 0.008 --add-qkv-bias --squared-relu "
      "--position-embedding-type rope --use-distributed-optimizer --data-path $DATA_PATH --lr 2e-4\n";
  const Job job = read_job(JobFile{"train.sh", script}, {{}, kGpus}, catalog());
  const Experiment one = parse_sweep(document_of(job, kMachines), job.file, {}, catalog()).experiments.at(0);
  const std::string text = file_text(emit_job(emit_target("megatron"), one.settings, &job, catalog()), {});
  INFO(text);
  const std::string arguments = text.substr(0, text.find("torchrun"));
  for (const char* line : {"--rotary-base 500000", "--norm-epsilon 1e-6", "--init-method-std 0.008", "--add-qkv-bias",
                           "--squared-relu", "--max-position-embeddings 2048"}) {
    INFO(line);
    CHECK(arguments.find(fmt::format("  {}\n", line)) != std::string::npos);
  }
  const std::size_t comment = text.find("# of the job itself");
  REQUIRE(comment != std::string::npos);
  CHECK(text.find("#   --data-path DATA_PATH\n", comment) != std::string::npos);
  CHECK(text.find("#   --lr 2e-4\n", comment) != std::string::npos);
  CHECK(text.find("--rotary-base", comment) == std::string::npos);
  for (const char* name : {"bridge", "nemo", "primus"}) {
    const EmittedJob emitted = emit_job(emit_target(name), one.settings, &job, catalog());
    INFO(file_text(emitted, {}));
    const std::string again = carried_of(read_again(emit_target(name), emitted));
    for (const char* word : {"rotary-base=500000", "norm-epsilon=1e-6", "init-method-std=0.008", "add-qkv-bias"}) {
      INFO(word);
      CHECK(again.find(word) != std::string::npos);
    }
  }
}
