// The launch script of Megatron-LM.
#include "experiments/megatron_launch/megatron_launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/escape.hpp"

namespace manyworlds::experiments::jobs {
namespace {

/// Arguments that the program needs, and that change neither time nor memory of a step.
constexpr const char* kRest =
    "# Your data, tokenizer and schedule in place of these, which change no step.\n"
    "TRAINING=(\n"
    "{}"
    "  --train-iters 50\n"
    "  --eval-iters 0\n"
    "  --lr 1e-4\n"
    ")\n";
constexpr const char *kMockData = "  --mock-data\n",
                     *kOldData = "  --data-path my-data\n  --vocab-file vocab.json\n  --merge-file merges.txt\n";

constexpr const char* kProgram =
    "pretrain_gpt.py \"${MODEL[@]}\" \"${LAYOUT[@]}\" \"${SOFTWARE[@]}\" \"${TRAINING[@]}\" \"$@\"\n";

}  // namespace

const LaunchArgument* find_in(const MegatronLaunch& launch, const std::string& name) {
  for (const auto* part : {&launch.model, &launch.layout, &launch.software}) {
    const auto found =
        std::find_if(part->begin(), part->end(), [&](const LaunchArgument& one) { return one.name == name; });
    if (found != part->end()) return &*found;
  }
  return nullptr;
}

std::string argument_array(const std::string& name, const std::vector<LaunchArgument>& arguments,
                           const JobChanges& changes) {
  std::string text = name + "=(\n";
  for (const LaunchArgument& one : arguments) {
    std::string line = "  --" + one.name;
    for (const std::string& value : one.values) line += " " + core::shell_quoted(value);
    text += commented(line, changes.of(one.keys)) + "\n";
  }
  return text + ")\n";
}

std::string connections_line(const Settings& experiment) {
  const auto zero = std::get<std::int64_t>(experiment.at("strategy.zero"));
  if (zero >= 2) return "unset CUDA_DEVICE_MAX_CONNECTIONS\n";
  const bool beside = std::get<bool>(experiment.at("strategy.stack.overlap_experts"));
  return fmt::format("export CUDA_DEVICE_MAX_CONNECTIONS={}\n", beside ? 32 : 1);
}

EmittedJob emit_megatron(const Settings& experiment, const Job* like) {
  const MegatronLaunch launch = megatron_launch(experiment);
  const JobChanges changes(experiment, like);
  EmittedJob result;
  result.text =
      script_head(launch.size, like) + connections_line(experiment) + argument_array("MODEL", launch.model, changes) +
      argument_array("LAYOUT", launch.layout, changes) + argument_array("SOFTWARE", launch.software, changes) +
      fmt::format(kRest, launch.of_2021 ? kOldData : kMockData) + torchrun_lines(launch.size, like) + kProgram;
  result.notes = launch.notes;
  return result;
}

}  // namespace manyworlds::experiments::jobs
