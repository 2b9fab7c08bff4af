#include "experiments/frameworks/read_back.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "core/workload/model/group_limits.hpp"
#include "core/workload/strategy/rank_shapes.hpp"
#include "experiments/config/experiment_config.hpp"
#include "experiments/model_keys/carried.hpp"
#include "experiments/settings/network_lengths.hpp"
#include "experiments/settings/settings.hpp"
#include "experiments/tree/scalar.hpp"
#include "experiments/tree/yaml.hpp"

namespace manyworlds::experiments::jobs {
namespace {

using core::workload::Model;
using core::workload::Stack;
using core::workload::Strategy;

bool is_of_job(const std::string& key) {
  return key.starts_with("model.") || key.starts_with("strategy.");
}

/// Writes out what follows from other sizes, and what says nothing in this model as it is by default.
void spell_out(Model& model, std::int64_t tp) {
  const Model none;
  model.kv_heads = model.kv(), model.ffn_hidden = model.ffn(), model.head_dim = model.head_width();
  model.vocabulary = core::workload::padded_vocabulary(model, tp);
  model.expert_ffn_hidden = model.has_experts() ? model.expert_ffn() : none.expert_ffn_hidden;
  if (model.has_experts() && model.dense_layers == 0) model.ffn_hidden = model.expert_ffn_hidden;
  if (!model.has_experts())
    model.experts_per_token = none.experts_per_token, model.shared_ffn_hidden = none.shared_ffn_hidden,
    model.dense_layers = none.dense_layers;
  if (!core::workload::limits_groups(model))
    model.expert_groups = none.expert_groups, model.groups_per_token = none.groups_per_token;
  if (model.is_latent()) {
    model.kv_heads = model.heads, model.value_dim = model.value_width();
  } else {
    model.query_rank = none.query_rank, model.kv_rank = none.kv_rank;
    model.rotary_dim = none.rotary_dim, model.value_dim = none.value_dim;
  }
  if (model.window == 0) model.window_every = none.window_every;
}

void spell_out_experts(Strategy& strategy, const Model& model) {
  const Strategy none;
  Stack& stack = strategy.stack;
  if (!model.has_experts()) {
    strategy.etp = none.etp, strategy.ep = none.ep;
    strategy.expert_gemm = none.expert_gemm, strategy.capacity_factor = none.capacity_factor;
    strategy.expert_recompute_tokens = 0, strategy.hot_experts = false;
    stack.permute_fusion = none.stack.permute_fusion, stack.router_fusion = none.stack.router_fusion;
    stack.overlap_shared_expert = stack.delay_expert_weights = stack.overlap_experts = false;
    stack.dispatcher = none.stack.dispatcher;
  }
  if (strategy.gradient_exchange != core::workload::GradientExchange::factors) strategy.factor_weights = 0;
  if (strategy.capacity_factor == 0) strategy.token_drop = none.token_drop, strategy.pad_to_capacity = false;
  if (stack.dispatcher != core::workload::Dispatcher::deepep) stack.dispatcher_sms = none.stack.dispatcher_sms;
  if (!strategy.hot_experts) strategy.hot_expert_spread = strategy.hot_expert_tflops = strategy.hot_expert_gbps = 0;
}

void spell_out_stages(Strategy& strategy, const Model& model) {
  const std::int64_t stages = strategy.stages().count();
  const bool moves_head = strategy.split == core::workload::LayerSplit::by_cost && strategy.stage_layers.empty() &&
                          core::workload::split_by_cost(model, stages).head_stage != stages - 1;
  if (moves_head) return;  // which no list of layers says
  std::vector<std::int64_t> layers;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    layers.push_back(layers_before_virtual_stage(model, strategy, stage + 1) -
                     layers_before_virtual_stage(model, strategy, stage));
  strategy.stage_layers = layers;
  strategy.split = core::workload::LayerSplit::even;
  strategy.empty_layers = 0;
}

/// The same of a strategy.
void spell_out(Strategy& strategy, const Model& model) {
  const Strategy none;
  Stack& stack = strategy.stack;
  spell_out_experts(strategy, model);
  spell_out_stages(strategy, model);
  if (strategy.recompute == core::workload::Recompute::selective) {
    strategy.recompute = core::workload::Recompute::none;
    strategy.recompute_modules |= core::workload::recompute::core_attn;
  }
  if (strategy.tp == 1) strategy.sequence_parallel = stack.overlap_input_gradient = stack.overlap_tensor = false;
  if (model.position != core::workload::Position::rotary) stack.rope_fusion = none.stack.rope_fusion;
  if (stack.attention != core::workload::AttentionKernel::unfused) stack.masked_softmax_fusion = true;
  if (!stack.overlap_tensor) stack.tensor_chunks = none.stack.tensor_chunks;
  if (strategy.cp == 1) strategy.cp_comm = none.cp_comm;
  if (strategy.pp == 1) stack.overlap_transfers = none.stack.overlap_transfers;
  if (strategy.zero_group == strategy.replicas()) strategy.zero_group = 0;
  if (strategy.replicas() == 1 && strategy.expert_replicas() == 1) strategy.zero = 0;
  if (strategy.zero != 1 && strategy.zero != 2) stack.overlap_parameters = false;
  if (strategy.zero == 0) strategy.zero_group = 0;
  if (strategy.recompute == core::workload::Recompute::none && strategy.recompute_modules == 0)
    strategy.recompute_layers = strategy.recompute_stages = 0, strategy.stage_recompute_layers.clear();
  if (strategy.offload_modules == 0) strategy.offload_layers = strategy.offload_stages = 0;
  if (stack.communication_engine == core::workload::CommunicationEngine::calibrated) stack.communication_sms = 0;
}

template <class T>
void compare(const std::string& path, const core::OptionTable<T>& table, const T& one, const T& other,
             std::vector<Difference>& found) {
  for (const auto& row : table.rows())
    if (const core::OptionValue a = row.get(one), b = row.get(other); a != b)
      found.push_back({path + row.info.name, import::value_text(a), import::value_text(b)});
}

bool same_values(const models::CarriedArgument& a, const models::CarriedArgument& b) {
  const auto number = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  if (a.values.size() != b.values.size()) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const bool enough = a.name == "max-position-embeddings" && number(b.values[i]) >= number(a.values[i]);
    const bool equal =
        a.values[i] == b.values[i] || (number(a.values[i]) != 0 && number(a.values[i]) == number(b.values[i]));
    if (!enough && !equal) return false;
  }
  return true;
}

/// What one experiment carries and the other has not; positions may be more than asked for.
void compare_carried(const Settings& one, const Settings& other, std::vector<Difference>& found) {
  const auto theirs = models::carried_in(other.text(models::kCarriedKey));
  for (const models::CarriedArgument& own : models::carried_in(one.text(models::kCarriedKey))) {
    const auto same_name = std::find_if(theirs.begin(), theirs.end(),
                                        [&](const models::CarriedArgument& each) { return each.name == own.name; });
    const bool given = same_name != theirs.end();
    if (given && same_values(own, *same_name)) continue;
    found.push_back({fmt::format("{} {}", models::kCarriedKey, own.name), fmt::format("{}", fmt::join(own.values, " ")),
                     given ? fmt::format("{}", fmt::join(same_name->values, " ")) : "nothing of it"});
  }
}

}  // namespace

Settings settings_of(const Job& job, const Settings& experiment, const Catalog& catalog) {
  Settings settings;
  Assigner assigner(catalog, settings, nullptr, Practice::today);
  assigner.defaults();
  settings.erase_if([](const auto& one) { return !is_of_job(one.first); });
  for (const auto& [key, value] : experiment)
    if (!is_of_job(key)) settings[key] = value;
  import::Node root = import::parse_yaml(document_of(job, "{}"), job.file);
  import::Node base = *root.find("base");
  std::erase_if(base.entries, [](const import::Entry& one) { return one.key == "cluster"; });
  assigner.assign_base(base);
  assume(settings, catalog, Practice::today);
  fit_networks(settings);
  derive(settings);
  return settings;
}

std::vector<Difference> differences(const Settings& one, const Settings& other) {
  core::step::Configuration a = config_of(one).configuration, b = config_of(other).configuration;
  for (core::step::Configuration* each : {&a, &b}) {
    spell_out(each->strategy, each->model);
    spell_out(each->model, each->strategy.tp);
  }
  std::vector<Difference> found;
  compare("model.", core::workload::model_options(), a.model, b.model, found);
  compare("strategy.", core::workload::strategy_options(), a.strategy, b.strategy, found);
  compare_carried(one, other, found);
  compare("strategy.stack.", core::workload::stack_options(), a.strategy.stack, b.strategy.stack, found);
  return found;
}

}  // namespace manyworlds::experiments::jobs
