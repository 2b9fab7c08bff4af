// Modules, what comes out of them and who needs that.
#include "core/workload/layer/keeping.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::workload {
namespace {

using namespace again;

/// Those that hold others first: what is inside runs again with them.
constexpr Modules kInOrder[] = {many_tokens, moe,     shared_experts, mlp,      core_attn,
                                mla_up_proj, moe_act, mlp_act,        mlp_norm, layernorm};

/// Runs again before the backward pass of the last operator that belongs to the module or has its results as input, or
/// before that operator itself runs again.
void make_module_again(std::vector<Operator>& layer, Modules module) {
  std::int64_t before = kNotAgain;
  for (std::size_t i = 0; i < layer.size(); ++i)
    if ((layer[i].part_of | layer[i].input_of) & module)
      before = std::max({before, static_cast<std::int64_t>(i), layer[i].again_before});
  for (Operator& each : layer) {
    if (each.part_of & module) each.again_before = std::max(each.again_before, before);
    std::int64_t bytes = 0;
    if (each.input_of & module) bytes += std::exchange(each.input_bytes, 0), each.kept_bytes -= bytes;
    if (each.part_of & module & core_attn) bytes += std::exchange(each.core_bytes, 0);
    if (bytes > 0) each.remade_bytes += bytes, each.remade_before = before;
  }
}

/// Whether the first `count` (0: all) have this one among them.
bool among(std::int64_t place, std::int64_t count) {
  return count == 0 || place < count;
}

}  // namespace

Keeping keeping_of(const Strategy& strategy, std::int64_t stage, std::int64_t place) {
  Keeping made{false, many_tokens, 0};
  if (among(stage, strategy.offload_stages) && among(place, strategy.offload_layers))
    made.sent_away = strategy.offload_modules;
  if (!among(stage, strategy.recompute_stages) || !among(place, strategy.recompute_layers)) return made;
  made.input_alone = strategy.recompute == Recompute::full;
  made.made_again |= strategy.recompute_modules;
  if (strategy.recompute == Recompute::selective) made.made_again |= core_attn;
  if (made.made_again & layernorm) made.made_again |= mlp_norm;
  return made;
}

void keep_less(std::vector<Operator>& layer, const Keeping& keeping, const Cut& rank) {
  if (!keeping.input_alone) {
    for (const Modules module : kInOrder)
      if (keeping.made_again & module) make_module_again(layer, module);
    return;
  }
  for (Operator& each : layer) {
    each.remade_bytes = std::exchange(each.kept_bytes, 0) + std::exchange(each.core_bytes, 0);
    each.again_before = each.remade_before = static_cast<std::int64_t>(layer.size()) - 1;
  }
  // The layer's whole input stays on every rank, 2sbh (Korthikanti et al., table 2). A layer that is made again has
  // its input, which the first norm keeps, from there.
  layer.front().kept_bytes = rank.hidden_bytes();
  layer.front().remade_bytes -= rank.boundary_bytes();
}

std::int64_t most_remade(const std::vector<Operator>& layer) {
  std::int64_t alive = 0, most = 0;
  for (std::size_t i = layer.size(); i-- > 0;) {
    for (const Operator& each : layer)
      if (each.remade_before == static_cast<std::int64_t>(i)) alive += each.remade_bytes;
    most = std::max(most, alive);
    alive -= layer[i].remade_bytes;
  }
  return most;
}

std::int64_t away_bytes(const std::vector<Operator>& layer, const Keeping& keeping) {
  std::int64_t sum = 0;
  for (const Operator& each : layer)
    if (each.offloaded_as & keeping.sent_away) sum += each.kept_bytes + each.core_bytes;
  return sum;
}

}  // namespace manyworlds::core::workload
