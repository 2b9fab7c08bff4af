// Recomputation and offloading of modules: their outputs, and the operators that need these.
#include "core/workload/activations/activation_policy.hpp"

#include <algorithm>
#include <utility>

#include "core/workload/activations/recompute_per_op.hpp"
#include "core/workload/model/multi_token_prediction.hpp"
#include "core/workload/parts/multi_token_prediction.hpp"

namespace manyworlds::core::workload {
namespace {

using namespace recompute;

/// Outer modules come first, so that inner modules are recomputed with them.
constexpr Modules kOuterFirst[] = {overloaded_experts, moe,     shared_experts, mlp,      core_attn,
                                   mla_up_proj,        moe_act, mlp_act,        mlp_norm, layernorm};

/// Recomputes a module before the backward pass of the last operator that belongs to it or has its output as input, or
/// before that operator is itself recomputed.
void recompute_module(std::vector<Operator>& layer, Modules module) {
  std::int64_t before = kNotRecomputed;
  for (std::size_t i = 0; i < layer.size(); ++i)
    if ((layer[i].in_modules | layer[i].input_from) & module)
      before = std::max({before, static_cast<std::int64_t>(i), layer[i].recompute_before});
  for (Operator& each : layer) {
    if (each.in_modules & module) each.recompute_before = std::max(each.recompute_before, before);
    std::int64_t bytes = 0;
    if (each.input_from & module) bytes += std::exchange(each.module_output_bytes, 0), each.saved_bytes -= bytes;
    if (each.in_modules & module & core_attn) bytes += std::exchange(each.attention_core_bytes, 0);
    if (bytes > 0) each.recomputed_bytes += bytes, each.recomputed_before = before;
  }
}

/// Leaves out of recomputation what no backward pass reads: the output of a dense feed-forward layer's last GEMM, and
/// of the residual connection behind it, which the next layer has saved as its input. A compiler that sees both passes
/// removes such kernels (XLA's dead code elimination of what jax.checkpoint() repeats).
void drop_unused(std::vector<Operator>& layer) {
  for (Operator& each : layer)
    if (each.name == "mlp_down" || each.name == "mlp_residual") each.recompute_before = kNotRecomputed;
}

/// Whether `index` is among the first `count` (0: all).
bool is_among_first(std::int64_t index, std::int64_t count) {
  return count == 0 || index < count;
}

bool is_recomputed(const Strategy& strategy, std::int64_t stage, std::int64_t chunk, std::int64_t index,
                   LayerKind kind) {
  const bool only_some = strategy.recompute_layers > 0 || !strategy.stage_recompute_layers.empty();
  if (is_mtp(kind) && only_some) return false;
  if (!strategy.stage_recompute_layers.empty())
    return index < strategy.stage_recompute_layers.at(static_cast<std::size_t>(strategy.stages().of(stage, chunk)));
  return is_among_first(stage, strategy.recompute_stages) && is_among_first(index, strategy.recompute_layers);
}

/// Returns the first operator that a recomputed layer repeats, whose input is the layer's.
std::size_t first_repeated(const std::vector<Operator>& layer) {
  for (std::size_t i = 0; i < layer.size(); ++i)
    if (layer[i].name == kMtpStateNorm) return i;
  return 0;
}

}  // namespace

bool recomputes(const Strategy& strategy) {
  return strategy.recompute != Recompute::none || strategy.recompute_modules != 0;
}

ActivationPolicy activation_policy(const Strategy& strategy, std::int64_t stage, std::int64_t chunk, std::int64_t index,
                                   LayerKind kind) {
  ActivationPolicy policy{false, false, overloaded_experts, 0};
  if (is_among_first(stage, strategy.offload_stages) && is_among_first(index, strategy.offload_layers))
    policy.offloaded = strategy.offload_modules;
  if (!is_recomputed(strategy, stage, chunk, index, kind)) return policy;
  policy.recompute_layer = strategy.recompute == Recompute::full;
  policy.recompute_per_op = strategy.recompute == Recompute::per_op;
  policy.recomputed |= strategy.recompute_modules;
  if (strategy.recompute == Recompute::selective) policy.recomputed |= core_attn;
  if (policy.recomputed & layernorm) policy.recomputed |= mlp_norm;
  return policy;
}

void apply_activation_policy(std::vector<Operator>& layer, const ActivationPolicy& policy, const RankShapes& shapes) {
  if (policy.recompute_per_op) return recompute_per_op(layer, shapes);
  if (!policy.recompute_layer) {
    for (const Modules module : kOuterFirst)
      if (policy.recomputed & module) recompute_module(layer, module);
    if (!shapes.stack.recompute_unused) drop_unused(layer);
    return;
  }
  const std::size_t first = first_repeated(layer);
  for (std::size_t i = first; i < layer.size(); ++i) {
    Operator& each = layer[i];
    each.recomputed_bytes = std::exchange(each.saved_bytes, 0) + std::exchange(each.attention_core_bytes, 0);
    each.recompute_before = each.recomputed_before = static_cast<std::int64_t>(layer.size()) - 1;
  }
  // Every rank saves the layer's whole input, 2sbh (Korthikanti et al., table 2). A recomputed layer reads from there
  // the input that its first norm would save otherwise.
  layer[first].saved_bytes = shapes.hidden_bytes();
  layer[first].recomputed_bytes -= shapes.boundary_bytes();
  if (first > 0) {  // and the embedding of the later token
    layer[first + 1].saved_bytes = shapes.boundary_bytes();
    layer[first + 1].recomputed_bytes -= shapes.boundary_bytes();
  }
  const bool dense =
      std::any_of(layer.begin(), layer.end(), [](const Operator& each) { return each.name == "mlp_down"; });
  if (dense && first == 0 && !shapes.stack.recompute_unused) drop_unused(layer);
}

std::int64_t peak_recomputed_bytes(const std::vector<Operator>& layer) {
  std::int64_t live_bytes = 0, peak_bytes = 0;
  for (std::size_t i = layer.size(); i-- > 0;) {
    for (const Operator& each : layer)
      if (each.recomputed_before == static_cast<std::int64_t>(i)) live_bytes += each.recomputed_bytes;
    peak_bytes = std::max(peak_bytes, live_bytes);
    live_bytes -= layer[i].recomputed_bytes;
  }
  return peak_bytes;
}

std::int64_t offloaded_bytes(const std::vector<Operator>& layer, const ActivationPolicy& policy) {
  std::int64_t sum = 0;
  for (const Operator& each : layer)
    if (each.offload_module & policy.offloaded) sum += each.saved_bytes + each.attention_core_bytes;
  return sum;
}

}  // namespace manyworlds::core::workload
