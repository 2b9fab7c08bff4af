#include "experiments/axes/open_keys.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/workload/schedule/stage_map.hpp"
#include "experiments/axes/axes.hpp"

namespace manyworlds::experiments {
namespace {

const std::vector<std::string_view>& keys_of_replicas() {
  static const std::vector<std::string_view> all{"strategy.zero",
                                                 "strategy.zero_group",
                                                 "strategy.bucket_parameters",
                                                 "strategy.overlap_grad_reduce",
                                                 "strategy.stack.overlap_parameters",
                                                 "strategy.stack.reduce_in_16bit"};
  return all;
}

const std::vector<std::string_view>& keys_of_recomputation() {
  static const std::vector<std::string_view> all{"strategy.recompute", "strategy.recompute_layers",
                                                 "strategy.recompute_modules", "strategy.recompute_stages",
                                                 "strategy.expert_recompute_tokens"};
  return all;
}

constexpr const char* kStageLayers = "strategy.stage_layers";
constexpr const char* kStageRecompute = "strategy.stage_recompute_layers";

std::int64_t number(const Settings& settings, const char* key) {
  const core::OptionValue* value = settings.value(key);
  return value != nullptr && std::holds_alternative<std::int64_t>(*value) ? std::get<std::int64_t>(*value) : 0;
}

/// Returns how many virtual stages there are; of a schedule that does not exist, any number.
std::int64_t virtual_stages_of(const Settings& settings) {
  const std::int64_t ranks = number(settings, "strategy.pp"), chunks = number(settings, "strategy.virtual_stages");
  for (const core::workload::ScheduleType& type : core::workload::schedules())
    if (type.name == settings.text("strategy.schedule"))
      return core::workload::StageMap(type.stage_placement, ranks, chunks).count();
  return ranks * chunks;
}

/// Returns a layer for each stage but the first, which has the others.
std::string some_stage_layers(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(std::max<std::int64_t>(stages, 1)), 1);
  list.front() = std::max<std::int64_t>(layers - stages + 1, 0);
  if (stages > 1 && layers < stages) list.back() = 0;
  return list_text(list);
}

bool is_of_transport(const std::string& path) {
  return path == "transport" || path.starts_with("transport.");
}

bool is_among(const std::vector<std::string_view>& keys, const std::string& path) {
  return std::find(keys.begin(), keys.end(), path) != keys.end();
}

}  // namespace

std::string list_text(const std::vector<std::int64_t>& list) {
  std::vector<std::string> texts;
  for (const std::int64_t one : list) texts.push_back(std::to_string(one));
  return core::join_list(texts);
}

bool OpenKeys::has(const std::string& path) const {
  return (network && is_of_transport(path)) || (replicas && is_among(keys_of_replicas(), path)) ||
         (recompute && is_among(keys_of_recomputation(), path)) || (stage_layers && path == kStageLayers) ||
         (stage_recompute && path == kStageRecompute);
}

void OpenKeys::make_neutral(Settings& settings) const {
  const std::int64_t none = 0, one = 1;
  if (zero_stage) settings["strategy.zero"] = none;
  if (zero_stage || zero_group) settings["strategy.zero_group"] = none;
  if (replicas) settings["strategy.stack.overlap_parameters"] = false;
  // The wider gradients are, the more weights exchange factors instead, which leave the backward passes.
  if (gradient_bits && settings.text("strategy.gradient_exchange") == "cheapest")
    settings["strategy.stack.reduce_in_16bit"] = false;
  if (recompute_kind) {
    settings["strategy.recompute"] = std::string("none");
    settings["strategy.recompute_modules"] = std::string("none");
    settings["strategy.expert_recompute_tokens"] = none;
  }
  const bool recomputes =
      settings.text("strategy.recompute") != "none" || settings.text("strategy.recompute_modules") != "none";
  if (recompute_kind || recompute_layers) settings["strategy.recompute_layers"] = recomputes ? one : none;
  if (recompute_kind || recompute_stages) settings["strategy.recompute_stages"] = recomputes ? one : none;
  const std::int64_t stages = this->stages() ? virtual_stages_of(settings) : 0;
  if (stage_layers) settings[kStageLayers] = some_stage_layers(number(settings, "model.layers"), stages);
  if (stage_recompute)
    settings[kStageRecompute] =
        list_text(std::vector<std::int64_t>(static_cast<std::size_t>(recomputes ? stages : 0), 0));
}

OpenKeys& OpenKeys::operator|=(const OpenKeys& other) {
  for (bool OpenKeys::*member :
       {&OpenKeys::network, &OpenKeys::replicas, &OpenKeys::recompute, &OpenKeys::zero_stage, &OpenKeys::zero_group,
        &OpenKeys::gradient_bits, &OpenKeys::recompute_kind, &OpenKeys::recompute_layers, &OpenKeys::recompute_stages,
        &OpenKeys::stage_layers, &OpenKeys::stage_recompute})
    this->*member |= other.*member;
  return *this;
}

std::optional<OpenKeys> open_keys_of(const Factor& factor) {
  OpenKeys result;
  for (const Axis& axis : factor.axes) {
    const std::string& path = axis.target.path;
    OpenKeys of_axis;
    of_axis.network = is_of_transport(path) && path != "transport.fidelity";
    of_axis.replicas = is_among(keys_of_replicas(), path);
    of_axis.zero_stage = path == "strategy.zero";
    of_axis.zero_group = path == "strategy.zero_group";
    of_axis.gradient_bits = path == "strategy.stack.reduce_in_16bit";
    of_axis.recompute = is_among(keys_of_recomputation(), path);
    of_axis.recompute_layers = path == "strategy.recompute_layers";
    of_axis.recompute_stages = path == "strategy.recompute_stages";
    of_axis.recompute_kind = of_axis.recompute && !of_axis.recompute_layers && !of_axis.recompute_stages;
    of_axis.stage_layers = axis.any && path == kStageLayers;
    of_axis.stage_recompute = axis.any && path == kStageRecompute;
    if (!of_axis.any()) return std::nullopt;
    result |= of_axis;
  }
  return result;
}

}  // namespace manyworlds::experiments
