// Writes a launch of Megatron-Bridge from the arguments that Megatron-LM has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "experiments/bridge/bridge.hpp"
#include "experiments/bridge/fields.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/megatron_launch/megatron_launch.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using Keys = std::vector<std::string>;

/// Arguments that say nothing beside others, and those that other fields say.
constexpr std::array<std::string_view, 13> kSilent{"group-query-attention",
                                                   "transformer-impl",
                                                   "bf16",
                                                   "fp16",
                                                   "fp8-format",
                                                   "fp8-recipe",
                                                   "fp4-format",
                                                   "fp4-recipe",
                                                   "swiglu",
                                                   "no-bias-swiglu-fusion",
                                                   "no-bias-gelu-fusion",
                                                   "squared-relu",
                                                   "grad-reduce-in-bf16"};

constexpr const char* kProgram =
    "scripts/training/run_recipe.py --recipe {} --mode pretrain --dataset mock \\\n"
    "  \"${{MODEL[@]}}\" \"${{LAYOUT[@]}}\" \"${{SOFTWARE[@]}}\" \"$@\"\n";

class BridgeWriter {
 public:
  BridgeWriter(const Settings& experiment, const Job* like)
      : experiment_(experiment), like_(like), changes_(experiment, like), launch_(megatron_launch(experiment)) {}

  EmittedJob write();

 private:
  void add(const std::string& field, const std::string& value, const Keys& keys);
  void add_arguments(const std::vector<LaunchArgument>& arguments);
  void add_switches(const std::string& prefix);
  std::string value_of(const LaunchArgument& one) const;
  std::string array(const char* name);
  bool given(const std::string& argument) const { return find_in(launch_, argument) != nullptr; }
  std::string setting(const std::string& key) const { return text_of(experiment_, key); }

  const Settings& experiment_;
  const Job* like_;
  JobChanges changes_;
  MegatronLaunch launch_;
  std::string lines_;
};

void BridgeWriter::add(const std::string& field, const std::string& value, const Keys& keys) {
  lines_ += commented("  " + core::shell_quoted(field + "=" + value), changes_.of(keys)) + "\n";
}

/// Returns a value in Hydra's notation of overrides.
std::string BridgeWriter::value_of(const LaunchArgument& one) const {
  if (one.name == "moe-layer-freq") {
    const std::int64_t layers = std::stoll(setting("model.layers")), dense = std::stoll(setting("model.dense_layers"));
    std::vector<int> pattern(static_cast<std::size_t>(layers), 1);
    std::fill_n(pattern.begin(), dense, 0);
    return fmt::format("[{}]", fmt::join(pattern, ","));
  }
  if (one.name == "pipeline-model-parallel-layout") return "\"" + one.values.front() + "\"";
  const bool list = one.name == "window-size" || (one.values.size() > 1) || one.name.ends_with("-modules");
  return list ? fmt::format("[{}]", fmt::join(one.values, ",")) : one.values.front();
}

void BridgeWriter::add_arguments(const std::vector<LaunchArgument>& arguments) {
  for (const LaunchArgument& one : arguments) {
    if (std::find(kSilent.begin(), kSilent.end(), one.name) != kSilent.end()) continue;
    const auto& fields = bridge_fields();
    const bool listed =
        std::any_of(fields.begin(), fields.end(), [&](const BridgeField& field) { return field.argument == one.name; });
    if (one.values.empty() && listed) continue;  // add_switches() has them
    add(field_of(one.name), one.values.empty() ? "true" : value_of(one), one.keys);
  }
}

/// Adds the switches of the table whose values are not the recipe's, given or not.
void BridgeWriter::add_switches(const std::string& prefix) {
  for (const BridgeField& one : bridge_fields()) {
    const KnownName* known = find_argument(one.argument);
    const bool of_part = known != nullptr && known->takes == Takes::nothing &&
                         (known->means.empty() ? "strategy.stack." : known->means).starts_with(prefix) &&
                         (prefix == "strategy.stack." || !known->means.starts_with("strategy.stack."));
    if (!of_part) continue;
    const bool on = given(one.argument) != one.inverted;
    if (on != (std::string_view(one.otherwise) == "true")) add(one.field, on ? "true" : "false", {known->means});
  }
}

std::string BridgeWriter::array(const char* name) {
  std::string text = fmt::format("{}=(\n{})\n", name, lines_);
  lines_.clear();
  return text;
}

EmittedJob BridgeWriter::write() {
  if (setting("model.attention") == "latent")
    throw core::InputError(
        fmt::format("'model.attention' is latent, which the model of {} has not; --emit megatron does it",
                    kBridgeRecipe),
        "--emit bridge");
  EmittedJob result;
  add_arguments(launch_.model);
  if (setting("model.activation") == "swiglu") {
    add("model.gated_linear_unit", "true", {"model.activation"});
    add("model.activation_func", "silu", {"model.activation"});
  }
  if (given("squared-relu")) add("model.activation_func", "squared_relu", {"model.activation"});
  add_switches("model.");
  result.text = script_head(launch_.size, like_) + connections_line(experiment_) + array("MODEL");
  add_arguments(launch_.layout);
  add_switches("strategy.");
  result.text += array("LAYOUT");
  const std::string precision = setting("strategy.stack.precision");
  const std::string recipe = translated(
      "bf16=bf16_mixed fp16=fp16_mixed fp8=bf16_with_fp8_current_scaling_mixed mxfp8=bf16_with_mxfp8_mixed "
      "nvfp4=bf16_with_nvfp4_mixed",
      precision);
  add("mixed_precision", recipe, {"strategy.stack.precision"});
  add_arguments(launch_.software);
  add_switches("strategy.stack.");
  if (!given("no-overlap-p2p-communication")) add("model.batch_p2p_comm", "false", {});
  const bool fused = setting("strategy.stack.bias_activation_fusion") == "true";
  if (fused) add("model.bias_activation_fusion", "true", {"strategy.stack.bias_activation_fusion"});
  if (given("cuda-graph-impl"))
    for (const char* field : {"model.use_te_rng_tracker", "rng.te_rng_tracker"}) add(field, "true", {});
  result.text += array("SOFTWARE") + torchrun_lines(launch_.size, like_) + fmt::format(kProgram, kBridgeRecipe);
  result.notes = launch_.notes;
  return result;
}

}  // namespace

EmittedJob emit_bridge(const Settings& experiment, const Job* like) {
  return BridgeWriter(experiment, like).write();
}

}  // namespace manyworlds::experiments::jobs
