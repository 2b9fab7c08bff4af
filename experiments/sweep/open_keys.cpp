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
  if (replicas) {
    settings["strategy.zero"] = std::int64_t{0};
    settings["strategy.zero_group"] = std::int64_t{0};
    settings["strategy.stack.overlap_parameters"] = false;
  }
  if (recompute) {
    settings["strategy.recompute"] = std::string("none");
    settings["strategy.recompute_layers"] = std::int64_t{0};
    settings["strategy.recompute_stages"] = std::int64_t{0};
    settings["strategy.recompute_modules"] = std::string("none");
    settings["strategy.expert_recompute_tokens"] = std::int64_t{0};
  }
}

OpenKeys& OpenKeys::operator|=(const OpenKeys& other) {
  network |= other.network, replicas |= other.replicas, recompute |= other.recompute;
  return *this;
}

std::optional<OpenKeys> open_keys_of(const Factor& factor) {
  OpenKeys result;
  for (const Axis& axis : factor.axes) {
    const std::string& path = axis.target.path;
    const OpenKeys of_axis{is_of_transport(path) && path != "transport.fidelity", is_among(keys_of_replicas(), path),
                           is_among(keys_of_recomputation(), path)};
    if (!of_axis.any()) return std::nullopt;
    result |= of_axis;
  }
  return result;
}

}  // namespace manyworlds::experiments
