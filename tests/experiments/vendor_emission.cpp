// What NeMo and Primus are given to run an experiment is that experiment when it is read again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "core/base/error.hpp"
#include "experiments/frameworks/emit_targets.hpp"
#include "experiments/frameworks/read_back.hpp"
#include "experiments/frameworks/registry.hpp"
#include "experiments/jobs/named_model.hpp"
#include "experiments/sweep/experiment.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

using Words = std::vector<std::string>;

const Catalog& catalog() {
  static const Catalog all;
  return all;
}

Experiment experiment_of(const std::string& model, const std::string& stack, const Words& set) {
  const std::string yaml = "base:\n  model: {layers: 8, hidden: 1024, heads: 16, vocabulary: 32768, sequence: 512, " +
                           model +
                           "}\n  cluster: {like: dgx_h100_superpod, nodes: 2, gpus_per_node: 8}\n"
                           "  strategy: {global_batch: 32, stack: " +
                           stack + "}\n";
  return parse_sweep(yaml, "s.yaml", set, catalog()).experiments.at(0);
}

Settings read_back(const EmitTarget& target, const EmittedJob& emitted, const Experiment& one) {
  const std::int64_t gpus = one.config().cluster.gpus();
  return settings_of(read_job(JobFile{target.file, emitted.text}, {{}, gpus}, catalog()), one.settings, catalog());
}

/// Draws some settings that these frameworks have names for, and some that they have not.
Words drawn(std::mt19937_64& random, bool experts) {
  static const std::vector<std::pair<const char*, Words>> all{
      {"strategy.tp", {"1", "2", "4"}},
      {"strategy.pp", {"1", "2", "4"}},
      {"strategy.cp", {"1", "2"}},
      {"strategy.micro_batch", {"1", "2"}},
      {"strategy.zero", {"0", "1", "2", "3"}},
      {"strategy.recompute", {"none", "selective", "full"}},
      {"strategy.recompute_modules", {"layernorm", "core_attn+mlp"}},
      {"strategy.schedule", {"interleaved"}},
      {"strategy.virtual_stages", {"2"}},
      {"strategy.split", {"light_ends"}},
      {"strategy.sequence_parallel", {"true", "false"}},
      {"strategy.overlap_grad_reduce", {"true", "false"}},
      {"strategy.bucket_parameters", {"3000000", "40000000"}},
      {"strategy.cp_comm", {"all_gather", "ulysses"}},
      {"strategy.ep", {"2", "4"}},
      {"strategy.stack.precision", {"bf16", "fp16", "fp8"}},
      {"strategy.stack.layers", {"framework", "transformer_engine"}},
      {"strategy.stack.attention", {"unfused", "flash2", "cudnn"}},
      {"strategy.stack.overlap_tensor", {"true", "false"}},
      {"strategy.stack.overlap_parameters", {"true", "false"}},
      {"strategy.stack.overlap_transfers", {"false"}},
      {"strategy.stack.reduce_in_16bit", {"true", "false"}},
      {"strategy.stack.fused_loss", {"true"}},
      {"strategy.stack.cuda_graphs", {"all"}},
      {"strategy.stack.dispatcher", {"hybrid_ep", "deepep"}},
      {"strategy.stack.bias_activation_fusion", {"false"}},
      {"strategy.stack.bias_dropout_fusion", {"false"}},
      {"strategy.stack.rope_fusion", {"false"}},
      {"model.activation", {"gelu", "swiglu"}},
      {"model.norm", {"layer_norm", "rms_norm"}},
      {"model.position", {"learned", "rotary"}},
      {"model.tied_embeddings", {"true", "false"}},
      {"model.biases", {"true", "false"}},
      {"model.dropout", {"true", "false"}},
      {"model.kv_heads", {"4", "16"}},
  };
  Words set;
  for (const auto& [key, values] : all) {
    const std::string name = key;
    if (!experts && (name == "strategy.ep" || name == "strategy.stack.dispatcher")) continue;
    if (random() % 5 == 0) set.push_back(name + "=" + values[random() % values.size()]);
  }
  return set;
}

/// Checks that an experiment comes back, or that what does not is told. Returns the number of notes.
std::size_t check_back(const EmitTarget& target, const Experiment& one) {
  const EmittedJob emitted = emit_job(target, one.settings, nullptr, catalog());
  INFO(emitted.text);
  for (const Difference& each : differences(one.settings, read_back(target, emitted, one))) {
    INFO(each.key << " " << each.value << " is read back as " << each.other);
    CHECK(std::any_of(emitted.notes.begin(), emitted.notes.end(),
                      [&](const std::string& note) { return note.starts_with(each.key + " "); }));
  }
  return emitted.notes.size();
}

}  // namespace

TEST_CASE("what NeMo and Primus are given to run comes back as the same experiment, or it is told what does not") {
  const char* models[] = {
      "activation: swiglu, norm: rms_norm, position: rotary, tied_embeddings: false, biases: false, "
      "dropout: false",
      "ffn_hidden: 4096", "activation: swiglu, experts: 8, experts_per_token: 2, expert_ffn_hidden: 512"};
  for (const auto& [name, stack] : {std::pair("nemo", "nemo"), {"primus", "primus"}}) {
    INFO(name);
    const EmitTarget& target = emit_target(name);
    std::mt19937_64 random(7);
    std::size_t valid = 0, noted = 0;
    for (int i = 0; i < 250; ++i) {
      const std::size_t model = random() % 3;
      const Words set = drawn(random, model == 2);
      std::optional<Experiment> one;
      try {
        one = experiment_of(models[model], stack, set);
      } catch (const core::InputError&) {
        continue;  // a rule excludes it
      }
      CAPTURE(set);
      ++valid;
      noted += check_back(target, *one) > 0 ? 1 : 0;
    }
    CHECK(valid > 20);
    CHECK(noted < valid);
  }
}

TEST_CASE("an experiment of NeMo and Primus whose every setting they have is emitted without a note") {
  const std::string llama =
      "kv_heads: 4, activation: swiglu, norm: rms_norm, position: rotary, tied_embeddings: false, biases: false, "
      "dropout: false, ffn_hidden: 3584";
  const Words layout{"strategy.tp=2",
                     "strategy.pp=2",
                     "strategy.virtual_stages=2",
                     "strategy.schedule=interleaved",
                     "strategy.zero=1",
                     "strategy.sequence_parallel=true",
                     "strategy.stack.precision=fp8"};
  for (const char* name : {"nemo", "primus"}) {
    const Experiment one = experiment_of(llama, name, layout);
    const EmittedJob emitted = emit_job(emit_target(name), one.settings, nullptr, catalog());
    INFO(emitted.text);
    CHECK(emitted.notes == std::vector<std::string>{});
  }
}

TEST_CASE("Primus has schedules that Megatron-LM has not") {
  for (const char* schedule : {"zb_h1", "zb_v", "v_half", "v_min"}) {
    const bool folded = std::string(schedule) != "zb_h1";
    const Experiment one = experiment_of("activation: swiglu", "primus",
                                         {"strategy.pp=4", std::string("strategy.schedule=") + schedule,
                                          folded ? "strategy.virtual_stages=2" : "strategy.virtual_stages=1"});
    const EmittedJob emitted = emit_job(emit_target("primus"), one.settings, nullptr, catalog());
    INFO(emitted.text);
    CHECK(emitted.text.find("patch_primus_pipeline: true") != std::string::npos);
    const Settings again = read_back(emit_target("primus"), emitted, one);
    CHECK(again.text("strategy.schedule") == schedule);
  }
}

TEST_CASE("what differs from the job that an experiment was made from is told beside its line") {
  const Experiment one = experiment_of("activation: swiglu", "primus", {"strategy.tp=4"});
  const EmittedJob first = emit_job(emit_target("primus"), one.settings, nullptr, catalog());
  Job like = read_job(JobFile{"mine.yaml", first.text}, {{}, 16}, catalog());
  const Experiment other = experiment_of("activation: swiglu", "primus", {"strategy.tp=2"});
  const EmittedJob changed = emit_job(emit_target("primus"), other.settings, &like, catalog());
  CHECK(changed.text.find("tensor_model_parallel_size: 2  # was 4 in mine.yaml:") != std::string::npos);
}
