// Logs of training runs: what real ones say, what is around and between their lines, and damaged ones.
#include "experiments/logs/training_log.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "experiments/logs/line_numbers.hpp"
#include "experiments/logs/log_formats.hpp"
#include "experiments/logs/log_lines.hpp"
#include "tests/experiments/mutations.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::experiments;
using logs::parse_training_log;
using logs::read_training_log;
using logs::StepUnit;
using logs::TrainingLog;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/logs/";
constexpr std::int64_t kMib = 1 << 20, kGib = 1 << 30;

std::string text_of(const std::string& name) {
  std::ifstream file(kFolder + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string refusal(const std::string& text) {
  try {
    parse_training_log(text, "train.log");
  } catch (const core::InputError& error) {
    return error.what();
  }
  return "(no error)";
}

std::string megatron_line(int iteration, double ms, int batch = 16) {
  return fmt::format(
      " iteration {:8}/     200 | consumed samples: 160 | elapsed time per iteration (ms): {:.1f} | "
      "global batch size: {:5} | lm loss: 9.0 |\n",
      iteration, ms, batch);
}

std::string dump(const std::string& lines) {
  return "------------------------ arguments ------------------------\n" + lines +
         "-------------------- end of arguments ---------------------\n";
}

}  // namespace

TEST_CASE("a log of Megatron-LM has its steps, the memory of four ranks on one line, and its arguments") {
  const TrainingLog log = read_training_log(kFolder + "megatron_v100.log");
  CHECK(log.framework == "Megatron-LM");
  REQUIRE(log.steps.size() == 20);
  CHECK((log.steps[0].iteration == 10 && log.steps[19].iteration == 200));
  CHECK(log.steps[1].value == Approx(0.3883));
  CHECK((log.global_batch == 16 && log.gpus == 4));
  REQUIRE(log.memory.size() == 4);
  for (const auto& [rank, memory] : log.memory) {
    CHECK((rank >= 0 && rank < 4));
    CHECK(memory.allocated == static_cast<std::int64_t>(4673.77880859375 * kMib));
    CHECK(memory.reserved == 4746 * kMib);
  }
  CHECK(log.arguments.find("tensor_model_parallel_size ...................... 4") != std::string::npos);
  CHECK((log.checkpoints == 4 && log.evaluations == 2));
  CHECK((log.copies == 0 && log.unreadable == 0 && log.replaced == 0));
  for (const auto& step : log.steps) CHECK(step.start == 0);
}

TEST_CASE("a log of torchtitan has tokens per second of a GPU, and what the allocator had reserved") {
  const TrainingLog log = read_training_log(kFolder + "torchtitan_h200.log");
  CHECK(log.framework == "torchtitan");
  CHECK(log.unit == StepUnit::tokens_per_s_per_gpu);
  REQUIRE(log.steps.size() == 11);
  CHECK((log.steps[1].iteration == 10 && log.steps[1].value == 7026));
  CHECK((log.global_batch == 8 && log.sequence == 8192 && log.gpus == 8));
  CHECK(log.device == "NVIDIA H200");
  CHECK(log.peak().reserved == static_cast<std::int64_t>(49.59 * kGib));
  CHECK(log.peak().allocated == 0);
}

TEST_CASE("NeMo's loggers, its progress bars and its list of times are read") {
  const TrainingLog log = read_training_log(kFolder + "nemo_h100.log");
  CHECK(log.framework == "NeMo");
  REQUIRE(log.steps.size() == 1);
  CHECK((log.steps[0].iteration == 49 && log.steps[0].value == 12.39));
  CHECK((log.global_batch == 128 && log.peak().reserved == 70833405952));

  // NVIDIA/dgxc-benchmarking @8f5cbb3, grok1/README_314b.md; the bar overwrites itself.
  const TrainingLog bar = parse_training_log(
      "Epoch 0: :  98%|#| 49/50 [22:59<00:28, reduced_train_loss=0.19, global_step=48.00, train_step_timing in "
      "s=24.10]\r"
      "Epoch 0: : 100%|#| 50/50 [23:22<00:00, reduced_train_loss=0.186, global_step=49.00, consumed_samples=51200.0, "
      "train_step_timing in s=24.00]\n",
      "bar");
  REQUIRE(bar.steps.size() == 2);
  CHECK((bar.steps[1].iteration == 49 && bar.steps[1].value == 24 && bar.steps[1].line == 1));

  const TrainingLog list = parse_training_log(
      "[NeMo I 2025-03-04 02:58:29 perf_metrics_utils:56] train_step_timing in s: [11.85, 6.98, 5.36, 4.55]\n", "list");
  REQUIRE(list.steps.size() == 4);
  CHECK((list.steps[0].value == 11.85 && list.steps[3].value == 4.55 && list.steps[3].iteration == 4));
}

TEST_CASE("DeepSpeed's own timer counts only where no training loop prints the time") {
  const std::string text = text_of("neox_deepspeed.log");
  const TrainingLog loop = parse_training_log(text, "neox");
  CHECK(loop.framework == "Megatron-LM");
  REQUIRE(loop.steps.size() == 2);
  CHECK((loop.steps[1].iteration == 34 && loop.steps[1].value == Approx(4.1031)));
  CHECK(loop.peak().allocated == static_cast<std::int64_t>(63.31 * kGib));  // which the timer alone prints

  std::string timer;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find("elapsed time") == std::string::npos) timer += line + "\n";
  const TrainingLog log = parse_training_log(timer, "timer");
  CHECK(log.framework == "DeepSpeed");
  CHECK(log.unit == StepUnit::samples_per_s);
  REQUIRE(log.steps.size() == 2);
  CHECK((log.steps[0].iteration == 20 && log.steps[0].value == Approx(7.634036457)));

  const TrainingLog old = parse_training_log(
      "[2022-03-11 02:06:58,985] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.48, MemAllocated=0.26GB, "
      "MaxMemAllocated=9.02GB\n",
      "old");
  CHECK(old.running_average);
  CHECK((old.steps.at(0).iteration == 40 && old.steps.at(0).value == 83.48));
  const TrainingLog pipeline = parse_training_log("steps: 30 loss: 2.3 iter time (s): 1.250 samples/sec: 25.6\n", "p");
  CHECK((pipeline.steps.at(0).iteration == 30 && pipeline.steps.at(0).value == 1.25));
}

TEST_CASE("Megatron-Bridge's step times are numbered in their order") {
  // NVIDIA-NeMo/Megatron-Bridge @067f987, tutorials/training/reduced_precision_training.ipynb
  const TrainingLog log = parse_training_log(
      "Step Time : 11.65s GPU utilization: 1158.1TFLOP/s/GPU\nStep Time : 11.60s GPU utilization: 1160.1TFLOP/s/GPU\n",
      "bridge");
  CHECK(log.framework == "Megatron-Bridge");
  REQUIRE(log.steps.size() == 2);
  CHECK((log.steps[0].iteration == 1 && log.steps[1].iteration == 2 && log.steps[1].value == 11.6));
}

TEST_CASE("every form that is listed is read from its own example") {
  std::set<std::string> frameworks;
  for (const logs::LogFormat& one : logs::log_formats()) {
    std::string example = one.example;
    if (std::string(one.framework) == "Megatron-LM") example = " iteration 3/ 100 | " + example;
    if (std::string(one.framework) == "torchtitan") example = "step: 10 loss: 2 memory: 45.29GiB(47.7%) tps: 8,171";
    if (std::string(one.framework) == "DeepSpeed before 0.7") example = "] " + example;
    CHECK(parse_training_log(example + "\n", "x").framework == one.framework);
    frameworks.insert(one.framework);
  }
  CHECK(frameworks.size() == logs::log_formats().size());
}

TEST_CASE("colours, prefixes of ranks and copies of other ranks change nothing") {
  // AMD's launcher, as in a log of Primus: colours, a rank, and the mean beside the last time.
  const TrainingLog primus = parse_training_log(
      "[\x1b[32m20251202 06:56:28\x1b[0m][\x1b[36mrank-7/8\x1b[0m][\x1b[1mINFO \x1b[0m] "
      "\x1b[1m[--------trainer.py:2560] :"
      " iteration 4408/ 5000 | consumed samples: 564224 | elapsed time per iteration (ms): 13100.0/13240.9 | global "
      "batch "
      "size: 128 |\x1b[0m\n",
      "primus");
  CHECK((primus.steps.at(0).iteration == 4408 && primus.steps.at(0).value == Approx(13.1)));
  std::string text;
  for (int step = 1; step <= 3; ++step)
    for (int rank = 0; rank < 4; ++rank)
      text += fmt::format(
          "[rank{}]:\x1b[34m2026-01-01 - root - INFO - \x1b[31mstep: {:2}  \x1b[32mloss: 7.1  \x1b[33mmemory: "
          "{}.00GiB(1%)  \x1b[34mtps: 10,05{}\x1b[39m\n",
          rank, step * 10, 40 + rank, rank);
  const TrainingLog log = parse_training_log(text, "ranks");
  REQUIRE(log.steps.size() == 3);
  CHECK(log.copies == 9);
  CHECK(log.steps[2].value == 10050);
  CHECK(log.peak().reserved == 43 * kGib);
}

TEST_CASE("a restart begins anew, with the same arguments or without those that it changed") {
  std::string text = dump("  micro_batch_size ...... 1\n  iteration ...... 0\n") + megatron_line(10, 400) +
                     megatron_line(20, 300) + megatron_line(30, 300);
  const TrainingLog lost = parse_training_log(text + megatron_line(10, 420) + megatron_line(20, 310), "lost");
  REQUIRE(lost.steps.size() == 5);
  CHECK((lost.steps[2].start == 0 && lost.steps[3].start == 1));
  const TrainingLog same = parse_training_log(
      text + dump("  micro_batch_size ...... 1\n  iteration ...... 30\n") + megatron_line(40, 420), "same");
  CHECK((same.steps.size() == 4 && same.steps[3].start == 1 && same.replaced == 0));
  const TrainingLog other = parse_training_log(
      text + dump("  micro_batch_size ...... 2\n  iteration ...... 30\n") + megatron_line(40, 420), "other");
  CHECK((other.steps.size() == 1 && other.replaced == 3));
  CHECK(other.arguments.find("micro_batch_size ...... 2") != std::string::npos);
  CHECK(other.arguments_line == 8);
}

TEST_CASE("a log without steps is refused with the forms that are known, and one with damaged ones by its line") {
  CHECK(
      refusal("loss 3\n") ==
      "train.log: no training step is found in it; read are the logs of Megatron-LM (elapsed time per iteration (ms): "
      "5410.6), torchtitan (step: 10 … memory: 45.29GiB(47.7%) tps: 8,171), NeMo (global_step: 49 | "
      "train_step_timing in s: 12.39), Megatron-Bridge (Step Time : 11.65s GPU utilization: …), DeepSpeed "
      "(global_step=40, RunningAvgSamplesPerSec=…, CurrSamplesPerSec=25.7), DeepSpeed's pipelines (steps: 10 … iter "
      "time (s): 1.234), DeepSpeed before 0.7 (0/40, SamplesPerSec=83.5)");
  CHECK(refusal("") == refusal("\n\n"));
  CHECK(refusal("x\n iteration 3/ 9 | elapsed time per iteration (ms): nan |\n") ==
        "train.log:2: the line says a step and lacks its number or its time; no other step is readable");
  const TrainingLog log = parse_training_log(
      megatron_line(1, 100) +
          " iteration 2/ 9 | elapsed time per iteration (ms): -5 |\n iteration x/ 9 | elapsed time per "
          "iteration (ms): 5 |\n" +
          megatron_line(4, 100),
      "damaged");
  CHECK((log.steps.size() == 2 && log.unreadable == 2 && log.first_unreadable == 2));
  CHECK_THROWS_WITH(read_training_log(kFolder), Catch::Contains("is a folder"));
  CHECK_THROWS_WITH(read_training_log(kFolder + "none.log"), Catch::Contains("cannot be read"));
}

TEST_CASE("numbers end where a log's line goes on") {
  CHECK(logs::number_at("  7,026  mfu") == 7026);
  CHECK(logs::number_at("1,234,567.5|") == 1234567.5);
  CHECK(logs::number_at("12.39, next") == 12.39);
  CHECK(logs::number_at("1e3 |") == 1000);
  CHECK_FALSE(logs::number_at(",5"));
  CHECK_FALSE(logs::number_at("inf"));
  CHECK_FALSE(logs::number_at(""));
  CHECK_FALSE(logs::number_at("1e999"));
  CHECK(logs::integer_after("global_step=49.00", "step=") == 49);
  CHECK_FALSE(logs::integer_after("global_step=49.50", "step="));
  CHECK_FALSE(logs::integer_after("step=1e300", "step="));
}

TEST_CASE("lines are split whatever the pieces are, and a line without end is cut") {
  const std::string text = "one\ntwo\rthree\r\n\nfive";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    std::vector<std::pair<int, std::string>> lines;
    logs::LineSplitter splitter([&](std::string_view line, int number) { lines.emplace_back(number, line); });
    for (std::size_t at = 0; at < text.size(); at += piece) splitter.add(std::string_view(text).substr(at, piece));
    splitter.finish();
    CHECK(lines == std::vector<std::pair<int, std::string>>{{1, "one"}, {2, "two"}, {2, "three"}, {4, "five"}});
  }
  std::size_t longest = 0;
  logs::LineSplitter splitter([&](std::string_view line, int) { longest = std::max(longest, line.size()); });
  for (int i = 0; i < 100; ++i) splitter.add(std::string(10'000, 'x'));
  splitter.finish();
  CHECK(longest == logs::kMaxLine);
}

TEST_CASE("damaged logs are read as far as they go, or refused") {
  std::mt19937_64 random(7);
  std::size_t read = 0;
  for (const char* name :
       {"megatron_v100.log", "torchtitan_h200.log", "nemo_h100.log", "neox_deepspeed.log", "mixtral_h100.log"}) {
    const std::string whole = text_of(name);
    REQUIRE_FALSE(whole.empty());
    for (int i = 0; i < 400; ++i) {
      try {
        const TrainingLog log = parse_training_log(testing::mutated(whole, random), name);
        ++read;
        for (const auto& step : log.steps) REQUIRE((step.value > 0 && step.iteration >= 0 && step.line > 0));
        REQUIRE((log.peak().allocated >= 0 && log.peak().reserved >= 0 && log.gpus >= 0));
      } catch (const core::InputError&) {
      }
    }
  }
  CHECK(read > 1'000);  // most damage is beside the steps
}
