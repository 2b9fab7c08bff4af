#include "experiments/sweep/open_keys.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "experiments/sweep/axes.hpp"

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

bool is_of_transport(const std::string& path) {
  return path == "transport" || path.starts_with("transport.");
}

bool is_among(const std::vector<std::string_view>& keys, const std::string& path) {
  return std::find(keys.begin(), keys.end(), path) != keys.end();
}

}  // namespace

bool OpenKeys::has(const std::string& path) const {
  return (network && is_of_transport(path)) || (replicas && is_among(keys_of_replicas(), path)) ||
         (recompute && is_among(keys_of_recomputation(), path));
}

void OpenKeys::make_neutral(Settings& settings) const {
  const std::int64_t none = 0, one = 1;
  if (zero_stage) settings["strategy.zero"] = none;
  if (zero_stage || zero_group) settings["strategy.zero_group"] = none;
  if (replicas) settings["strategy.stack.overlap_parameters"] = false;
  if (recompute_kind) {
    settings["strategy.recompute"] = std::string("none");
    settings["strategy.recompute_modules"] = std::string("none");
    settings["strategy.expert_recompute_tokens"] = none;
  }
  const bool recomputes =
      settings.text("strategy.recompute") != "none" || settings.text("strategy.recompute_modules") != "none";
  if (recompute_kind || recompute_layers) settings["strategy.recompute_layers"] = recomputes ? one : none;
  if (recompute_kind || recompute_stages) settings["strategy.recompute_stages"] = recomputes ? one : none;
}

OpenKeys& OpenKeys::operator|=(const OpenKeys& other) {
  for (bool OpenKeys::*member :
       {&OpenKeys::network, &OpenKeys::replicas, &OpenKeys::recompute, &OpenKeys::zero_stage, &OpenKeys::zero_group,
        &OpenKeys::gradient_bits, &OpenKeys::recompute_kind, &OpenKeys::recompute_layers, &OpenKeys::recompute_stages})
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
    if (!of_axis.any()) return std::nullopt;
    result |= of_axis;
  }
  return result;
}

}  // namespace manyworlds::experiments
