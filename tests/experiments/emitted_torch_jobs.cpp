// What is emitted for torchtitan and for DeepSpeed parses by their own definitions, and is the same experiment again.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/deepspeed/deepspeed.hpp"
#include "experiments/frameworks/emit_targets.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "experiments/torchtitan/torchtitan.hpp"
#include "experiments/tree/toml.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/";

std::map<std::string, std::string> column(const std::string& file, std::size_t index) {
  std::istringstream lines(import::read_text(kFolder + file));
  std::map<std::string, std::string> result;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::string name, cell;
    std::getline(cells, name, '\t');
    for (std::size_t i = 0; i < index; ++i) std::getline(cells, cell, '\t');
    result[name] = cell;
  }
  return result;
}

std::string drawn(std::mt19937_64& random, std::initializer_list<const char*> choices) {
  return *(choices.begin() + static_cast<std::ptrdiff_t>(experiments::testing::below(random, choices.size())));
}

/// Settings of an experiment of one point; none if it cannot exist.
std::optional<Settings> settings_of(const std::string& document) {
  try {
    const Sweep sweep = parse_sweep(document, "drawn.yaml", {}, Catalog());
    if (sweep.experiments.size() == 1) return sweep.experiments[0].settings;
  } catch (const core::InputError&) {
  }
  return std::nullopt;
}

std::string torchtitan_experiment(std::mt19937_64& random) {
  const std::string schedule = drawn(random, {"1f1b", "1f1b", "gpipe", "interleaved", "zb_v"});
  const std::string pp = drawn(random, {"1", "1", "2", "4"});
  const std::string tp = drawn(random, {"1", "2", "8"});
  const bool pipelined = pp != "1";
  const std::string zero = pipelined ? drawn(random, {"2", "2", "3"}) : drawn(random, {"3", "3", "2"});
  const std::string recompute = drawn(random, {"none", "full", "per_op"});
  const std::string model =
      drawn(random, {"llama3-8b", "llama3-70b", "llama3-405b", "llama2-7b", "qwen3-30b-a3b", "deepseek-v3"});
  std::string text =
      "{name: drawn, base: {model: " + model +
      ", cluster: {like: dgx_h100_superpod, gpus_per_node: 8, nodes: " + drawn(random, {"8", "16", "32"}) +
      "}, strategy: {stack: {like: " + drawn(random, {"torchtitan", "torchtitan-eager"}) +
      (model == "deepseek-v3" ? ", attention: flash2" : "") +  // FlexAttention's here
      ", cross_entropy_fusion: " + drawn(random, {"true", "false"}) +
      ", optimizer_fusion: " + drawn(random, {"true", "false"}) + ", precision: " + drawn(random, {"bf16", "fp8"}) +
      ", overlap_transfers: " + (pipelined && schedule != "1f1b" && schedule != "gpipe" ? "true" : "false");
  if (zero == "2") text += ", overlap_parameters: true";
  text += "}, tp: " + tp + ", pp: " + pp + ", cp: " + drawn(random, {"1", "1", "2"}) +
          ", cp_comm: " + drawn(random, {"ring", "gathered_blocks"}) + ", zero: " + zero + ", recompute: " + recompute +
          ", micro_batch: " + drawn(random, {"1", "2"}) + ", global_batch: " + drawn(random, {"256", "512"});
  const std::string ep = drawn(random, {"1", "8"});  // without expert parallelism experts are sharded as other layers
  text += ", ep: " + ep + ", etp: " + (ep == "1" ? tp : "1");
  if (pipelined)
    text += ", schedule: " + schedule + ", virtual_stages: " +
            (schedule == "interleaved" ? drawn(random, {"2", "4"})
             : schedule == "zb_v"      ? "2"
                                       : "1") +
            ", split: " + drawn(random, {"even", "light_ends"});
  return text + "}}}";
}

std::string deepspeed_experiment(std::mt19937_64& random) {
  const std::string pp = drawn(random, {"1", "1", "2"}), zero = drawn(random, {"0", "1", "2", "3"});
  return "{name: drawn, base: {model: " + drawn(random, {"gpt3-13b", "llama2-7b", "llama2-70b"}) +
         ", cluster: {like: dgx_a100_superpod, gpus_per_node: 8, nodes: " + drawn(random, {"2", "8"}) +
         "}, strategy: {stack: {like: deepspeed-2023, reduce_in_16bit: " + drawn(random, {"true", "false"}) +
         ", precision: " + drawn(random, {"bf16", "fp16"}) +
         ", overlap_parameters: false, attention: " + drawn(random, {"flash", "flash2", "unfused"}) +
         "}, tp: " + drawn(random, {"1", "2", "8"}) + ", pp: " + pp + ", cp: " + drawn(random, {"1", "1", "2"}) +
         ", cp_comm: ulysses, zero: " + zero +
         ", overlap_grad_reduce: " + (zero == "0" ? "false" : drawn(random, {"true", "false"})) +
         ", recompute: " + drawn(random, {"none", "full"}) + ", micro_batch: " + drawn(random, {"1", "2"}) +
         ", global_batch: 256, schedule: 1f1b, virtual_stages: 1}}}";
}

struct Counted {
  int emitted = 0, refused = 0;
};

template <class Check>
Counted emit_drawn(const char* target, std::string (*draw)(std::mt19937_64&), int count, const Check& check) {
  std::mt19937_64 random(7);
  const Catalog catalog;
  Counted counted;
  for (int i = 0; i < count; ++i) {
    const std::string document = draw(random);
    const auto experiment = settings_of(document);
    if (!experiment) continue;
    INFO(document);
    EmittedJob job;
    try {
      job = emit_job(emit_target(target), *experiment, nullptr, catalog);
    } catch (const core::InputError& error) {
      INFO(error.what());
      ++counted.refused;
      continue;
    }
    INFO(job.text);
    for (const std::string& note : job.notes) CHECK(note.starts_with("model.carried "));  // which changes no step
    check(job.text);
    ++counted.emitted;
  }
  return counted;
}

}  // namespace

TEST_CASE("a TOML that is emitted has keys of torchtitan v0.2.2 with values of their types, and comes back equal") {
  const auto types = column("torchtitan/keys.tsv", 2), versions = column("torchtitan/keys.tsv", 1);
  const auto check = [&](const std::string& text) {
    for (const GivenKey& one : flattened(import::parse_toml(text, "job.toml"), torchtitan::known_keys())) {
      INFO(one.name);
      REQUIRE(types.count(one.name) == 1);
      CHECK(versions.at(one.name) == "v0.2.2");
      const std::string& type = types.at(one.name);
      const bool number = one.value.text.find_first_not_of("0123456789-") == std::string::npos;
      if (type.starts_with("int")) CHECK((!one.value.quoted && number));
      if (type == "bool") CHECK((one.value.text == "true" || one.value.text == "false"));
      if (type.starts_with("Literal")) CHECK(type.find("'" + one.value.text + "'") != std::string::npos);
      if (type.starts_with("list")) CHECK(one.value.kind == import::Node::Kind::sequence);
    }
  };
  const Counted counted = emit_drawn("torchtitan", torchtitan_experiment, 500, check);
  CHECK(counted.emitted > 60);
}

TEST_CASE("a script that is emitted for Megatron-DeepSpeed has its arguments and keys, and comes back equal") {
  const auto arguments = column("deepspeed/arguments.txt", 0), keys = column("deepspeed/keys.tsv", 0);
  const auto check = [&](const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (!word.starts_with("--") || word == "--num_nodes" || word == "--num_gpus") continue;
      INFO(word);
      const std::string name = word.substr(2);  // deepspeed.add_config_arguments() defines these two
      CHECK((arguments.count(name) == 1 || name == "deepspeed" || name == "deepspeed_config"));
    }
    for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization.stage",
                            "zero_optimization.reduce_bucket_size"})
      CHECK(keys.count(key) == 1);
  };
  const Counted counted = emit_drawn("deepspeed", deepspeed_experiment, 300, check);
  CHECK(counted.emitted > 50);
}

TEST_CASE("what torchtitan or DeepSpeed cannot run is refused with its key when it is emitted") {
  const auto why = [](const char* target, const std::string& more) {
    const auto experiment = settings_of(
        "{name: one, base: {model: llama3-8b, cluster: {like: dgx_h100_superpod, nodes: 8, "
        "gpus_per_node: 8}, " +
        more + "}}");
    REQUIRE(experiment);
    try {
      return fmt::format("{}", fmt::join(emit_job(emit_target(target), *experiment, nullptr, Catalog()).notes, "; "));
    } catch (const core::InputError& error) {
      return std::string(error.what());
    }
  };
  CHECK(
      why("torchtitan", "model.layers: 31, model.window: 128, strategy: {stack: torchtitan, zero: 3, global_batch: 64}")
          .starts_with("model: torchtitan has no flavor of 31 layers"));
  CHECK(why("torchtitan", "strategy: {stack: torchtitan, zero: 3, global_batch: 64, cp: 2, cp_comm: ulysses}")
            .starts_with("strategy.cp_comm: "));
  CHECK(why("torchtitan", "strategy: {stack: megatron-core, zero: 1, global_batch: 64}")
            .find("strategy.zero 1: such a job "
                  "has 3") != std::string::npos);
  CHECK(why("deepspeed", "strategy: {stack: {like: deepspeed-2023, precision: fp8}, global_batch: 64}")
            .starts_with("strategy.stack.precision: "));
}
