// Parts and passes of one pipeline rank.
#include "core/workload/build/stage_work.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/workload/layer/keeping.hpp"
#include "core/workload/layer/operator_parts.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

/// Gradients of norms, row-parallel biases and positions: whole on every tensor rank.
std::int64_t replicated(const Model& model, const Strategy& strategy, std::int64_t stage) {
  std::int64_t sum = 0;
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk)
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk))
      sum += replicated_layer_parameters(model, kind);
  const Sections sections = strategy.sections();
  if (sections.has_first(stage))
    sum += embedding_parameters(model, strategy.tp) - token_table_parameters(model, strategy.tp);
  if (sections.has_last(stage)) sum += final_norm_parameters(model);
  return sum;
}

}  // namespace

Pass forward_pass(const std::vector<Operator>& operators) {
  Pass pass{{Booking::forward, {}}};
  for (const Operator& each : operators) append(pass.back().tape, each.forward);
  return pass;
}

Pass backward_pass(const std::vector<Operator>& operators) {
  Pass pass;
  const auto book = [&](Booking booking, const Tape& tape) {
    if (pass.empty() || pass.back().booking != booking) pass.push_back({booking, {}});
    append(pass.back().tape, tape);
  };
  for (std::size_t i = operators.size(); i-- > 0;) {
    for (const Operator& each : operators)
      if (each.again_before == static_cast<std::int64_t>(i)) book(Booking::recompute, each.forward);
    book(Booking::backward, operators[i].backward);
  }
  return pass;
}

namespace {

/// What of a backward pass makes gradients of weights, or all but that.
Pass of_weights(const Pass& backward, bool are) {
  Pass some;
  for (const Phase& phase : backward) {
    some.push_back({phase.booking, {}});
    for (const Work& work : phase.tape)
      if (work.of_weights == are) some.back().tape.push_back(work);
  }
  return some;
}

class StageBuilder {
 public:
  StageBuilder(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, std::int64_t expert_rank,
               Prices* prices)
      : model_(model), strategy_(strategy), gpu_(gpu), expert_rank_(expert_rank), prices_(prices) {}

  // Only layers are recomputed: what embedding and head keep is small, or the logits themselves.
  Part embedding() {
    return add("embedding", embedding_operators(model_, strategy_), {},
               {embedding_parameters(model_, strategy_.tp), 0});
  }
  Part head() {
    return add("head", head_operators(model_, strategy_), {},
               {head_parameters(model_, strategy_.tp, strategy_.sections().ends_meet()), 0});
  }
  Part layer(LayerKind kind, const Keeping& keeping) {
    const auto [known, is_new] = layers_.try_emplace({kind, keeping}, Part{0});
    if (!is_new) return known->second;
    std::vector<Operator> operators = layer_operators(model_, strategy_, kind, expert_rank_);
    keep_less(operators, keeping, cut(model_, strategy_));
    const std::int64_t away = away_bytes(operators, keeping);
    known->second = add(name_of(kind), std::move(operators), kind, layer_parameters(model_, strategy_, kind));
    parts_[known->second].away_bytes = away;
    return known->second;
  }
  std::vector<PartWork> take() { return std::move(parts_); }

 private:
  Part add(std::string_view name, std::vector<Operator> operators, LayerKind kind, const Parameters& parameters) {
    price(name, cut(model_, strategy_, kind), gpu_, operators, prices_);
    const Pass backward = backward_pass(operators);
    PartWork made{forward_pass(operators), backward, of_weights(backward, false), of_weights(backward, true),
                  parameters};
    for (const Operator& each : operators) {
      made.kept_bytes += each.kept_bytes + each.core_bytes;
      made.held_bytes += each.weight_bytes;
    }
    parts_.push_back(std::move(made));
    return parts_.size() - 1;
  }

  const Model& model_;
  const Strategy& strategy_;
  const compute::Gpu& gpu_;
  const std::int64_t expert_rank_;
  Prices* prices_;
  std::vector<PartWork> parts_;
  std::map<std::pair<LayerKind, Keeping>, Part> layers_;
};

}  // namespace

StageWork stage_work(const Model& model, const Strategy& strategy, const compute::Gpu& gpu, RankClass of,
                     Prices* prices) {
  const std::int64_t stage = of.stage;
  StageBuilder builder(model, strategy, gpu, of.expert_rank, prices);
  StageWork work;
  const Sections sections = strategy.sections();
  for (std::int64_t chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    std::vector<Part>& parts = work.chunks.emplace_back();
    if (sections.is_first(stage, chunk)) parts.push_back(builder.embedding());
    std::int64_t place = 0;
    for (const LayerKind kind : chunk_layers(model, strategy, stage, chunk))
      parts.push_back(builder.layer(kind, keeping_of(strategy, stage, place++)));
    if (sections.is_last(stage, chunk)) parts.push_back(builder.head());
  }
  for (std::size_t chunk = 0; chunk < work.chunks.size(); ++chunk) work.in_order.push_back(chunk);
  std::sort(work.in_order.begin(), work.in_order.end(), [&](std::size_t a, std::size_t b) {
    return sections.of(stage, static_cast<std::int64_t>(a)) < sections.of(stage, static_cast<std::int64_t>(b));
  });
  work.parts = builder.take();
  work.cuda_graphs = strategy.stack.cuda_graphs;
  work.has_both_ends = sections.has_first(stage) && sections.has_last(stage);
  work.replicated_parameters = replicated(model, strategy, stage);
  return work;
}

std::vector<compute::Kernel> optimizer_kernels(const Strategy& strategy, const Parameters& parameters) {
  using compute::Dtype;
  using compute::memory_bound;
  const auto divided = [](std::int64_t count, std::int64_t parts) { return (count + parts - 1) / parts; };
  const std::int64_t share = strategy.zero > 0 ? divided(parameters.dense, strategy.shards()) +
                                                     divided(parameters.experts, strategy.expert_shards())
                                               : parameters.total();
  const std::int64_t gradients = strategy.zero > 1 ? share : parameters.total();
  // Adam reads gradient, master weight and two moments (16 bytes), writes the last three and the bf16 weight (14).
  return {memory_bound("gradient_norm", 4 * share, Dtype::fp32), memory_bound("adam", 30 * share, Dtype::fp32),
          memory_bound("zero_gradients", 4 * gradients, Dtype::fp32)};
}

}  // namespace manyworlds::core::workload
