// Parts and passes of one pipeline rank.
#include "core/workload/stage_work.hpp"

#include "core/workload/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

void append(Tape& to, const Tape& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Tape forward_of(const std::vector<Operator>& operators, bool core_only) {
  Tape tape;
  for (const Operator& each : operators)
    if (each.attention_core || !core_only) append(tape, each.forward);
  return tape;
}

/// Gradients of norms, row-parallel biases and positions: whole on every tensor rank.
std::int64_t replicated(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk))
      sum += replicated_layer_parameters(model, kind);
  if (stage == 0) sum += embedding_parameters(model, strategy.tp) - token_table_parameters(model, strategy.tp);
  if (stage == strategy.pp - 1) sum += final_norm_parameters(model);
  return sum;
}

}  // namespace

Pass forward_pass(const std::vector<Operator>& operators) {
  return {{Booking::forward, forward_of(operators, false)}};
}

Pass backward_pass(const std::vector<Operator>& operators, Recompute recompute) {
  Pass pass;
  if (recompute == Recompute::full) pass.push_back({Booking::recompute, forward_of(operators, false)});
  pass.push_back({Booking::backward, {}});
  bool core_ready = recompute != Recompute::selective;
  for (auto each = operators.rbegin(); each != operators.rend(); ++each) {
    if (each->attention_core && !core_ready) {
      pass.push_back({Booking::recompute, forward_of(operators, true)});
      pass.push_back({Booking::backward, {}});
      core_ready = true;
    }
    append(pass.back().tape, each->backward);
  }
  return pass;
}

StageWork stage_work(const Model& model, const Strategy& strategy, std::int64_t stage) {
  const auto part = [](const std::vector<Operator>& operators, Recompute recompute, std::int64_t parameters) {
    return PartWork{forward_pass(operators), backward_pass(operators, recompute), parameters};
  };
  StageWork work;
  // Only layers are recomputed: what embedding and head keep is small, or the logits themselves.
  work.embedding =
      part(embedding_operators(model, strategy), Recompute::none, embedding_parameters(model, strategy.tp));
  work.layer =
      part(layer_operators(model, strategy), strategy.recompute, layer_parameters(model, strategy, {}).total());
  work.head =
      part(head_operators(model, strategy), Recompute::none, head_parameters(model, strategy.tp, strategy.pp == 1));
  const auto layers = static_cast<std::size_t>(layers_per_chunk(model, strategy));
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    std::vector<Part> parts(layers, Part::layer);
    if (chunk == 0 && stage == 0) parts.insert(parts.begin(), Part::embedding);
    if (chunk == strategy.virtual_stages - 1 && stage == strategy.pp - 1) parts.push_back(Part::head);
    work.chunks.push_back(parts);
  }
  work.cuda_graphs = strategy.stack.cuda_graphs;
  work.replicated_parameters = replicated(model, strategy, stage);
  return work;
}

std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, std::int64_t parameters) {
  using compute::Dtype;
  using compute::memory_bound;
  const std::int64_t share = strategy.zero > 0 ? (parameters + strategy.dp - 1) / strategy.dp : parameters;
  // Adam reads gradient, master weight and two moments (16 bytes), writes the last three and the bf16 weight (14).
  return {memory_bound("gradient_norm", 4 * share, Dtype::fp32), memory_bound("adam", 30 * share, Dtype::fp32),
          memory_bound("zero_gradients", 4 * parameters, Dtype::fp32)};
}

}  // namespace manyworlds::core::workload
