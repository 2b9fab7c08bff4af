// Router, permutation, all-to-all, grouped GEMMs and the shared expert.
#include "core/workload/experts.hpp"

#include <algorithm>
#include <utility>

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::grouped_gemm;
using compute::grouped_weight_gradient;
using compute::memory_bound;

/// Kernels of Megatron-Core's router with moe_router_fusion, most of them tiny (NVIDIA/Megatron-LM, "Optimizing
/// DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72", section 2.1.4).
constexpr std::int64_t kRouterKernels = 31;

/// Scores of every expert for every token, and the choice among them: logits are read and probabilities written in
/// fp32, and back. The norm's output is kept for the router and what follows it.
void add_router(std::vector<Operator>& operators, const Model& model, const Cut& rank) {
  operators.push_back(whole_linear(rank, {"router", rank.hidden, model.experts}));
  if (model.shared_ffn_hidden > 0) operators.back().kept_bytes = 0;  // the shared expert keeps the same input
  const std::int64_t scores = rank.region_tokens * model.experts;
  operators.push_back(elementwise("route", scores, 8, 12, 4 * scores));
  operators.back().forward.front().launches = kRouterKernels;
}

/// Tokens of this rank as they travel.
struct Tokens {
  std::int64_t here = 0;    // those that it routes
  std::int64_t copies = 0;  // one for each of their experts
  std::int64_t sent = 0;    // one for each rank that holds some of their experts; with all_to_all each copy
  std::int64_t bytes = 0;   // that those sent take
};

Tokens tokens_of(const Model& model, const Strategy& strategy, const Cut& rank) {
  Tokens made;
  made.here = rank.region_tokens;
  made.copies = made.sent = rank.region_tokens * model.experts_per_token;
  if (strategy.stack.dispatcher == Dispatcher::hybrid_ep) {
    const double reached = parts_reached(model, strategy.ep) / static_cast<double>(strategy.ep);
    made.sent = round_half_up(static_cast<double>(made.here) * reached) * strategy.ep;  // as many to each rank
  }
  made.bytes = 2 * made.sent * rank.hidden;
  return made;
}

/// From one row a token to a row for each of its copies, in the order of their experts; back, they are added up.
Operator permute(std::int64_t tokens, std::int64_t copies, std::int64_t hidden) {
  Operator made;
  made.name = "permute";
  const std::int64_t bytes = 2 * (tokens + copies) * hidden;
  made.forward.push_back(kernel(memory_bound(made.name, bytes)));
  made.backward.push_back(kernel(memory_bound(made.name, bytes)));
  return made;
}

/// What comes from another rank's tokens to be next to what belongs to the same expert: read and written once.
Operator sort(std::string_view name, const Cut& rank) {
  return elementwise(name, rank.routed_tokens * rank.hidden, 4, 4, 0);
}

/// To the ranks with the experts, or from them: an all-to-all over expert-parallel ranks, and where an expert is cut
/// over tensor ranks a gather of their tokens, or a sum of their results.
Operator travel(std::string_view name, const Tokens& of, const Strategy& strategy, bool out) {
  Operator made;
  made.name = name;
  const std::int64_t whole = of.bytes * strategy.etp;
  const auto between = [&](Tape& tape) {
    if (strategy.ep > 1) block_on(tape, name, Kind::all_to_all, of.bytes, Role::expert);
  };
  const auto gather = [&](Tape& tape) {
    between(tape);
    if (strategy.etp > 1) block_on(tape, name, Kind::all_gather, whole, Role::expert_tensor);
  };
  const auto scatter = [&](Tape& tape) {
    if (strategy.etp > 1) block_on(tape, name, Kind::reduce_scatter, whole, Role::expert_tensor);
    between(tape);
  };
  if (out)
    gather(made.forward), scatter(made.backward);
  else
    scatter(made.forward), gather(made.backward);
  return made;
}

/// One grouped GEMM, for which the host launches one kernel for each expert (Transformer Engine's GroupedLinear), and
/// as many that quantise its input.
Work grouped(compute::Kernel of, const Cut& rank) {
  Work made = kernel(std::move(of));
  made.launches = rank.experts;
  return made;
}

/// One GEMM for all experts of the rank, each with its share of the tokens.
Operator grouped_linear(const Cut& rank, const Linear& of) {
  Operator made;
  made.name = of.name;
  const std::int64_t each = (rank.routed_tokens + rank.experts - 1) / rank.experts;
  made.kept_bytes = stored_bytes(of.dtype, rank.routed_tokens * of.in);
  quantise(made.forward, of.dtype, rank.routed_tokens * of.in);
  made.forward.push_back(grouped(grouped_gemm(of.name, each, of.out, of.in, rank.experts, of.dtype), rank));
  quantise(made.backward, of.dtype, rank.routed_tokens * of.out);
  made.backward.push_back(grouped(grouped_gemm(of.name, each, of.in, of.out, rank.experts, of.dtype), rank));
  made.backward.push_back(grouped(grouped_weight_gradient(of.name, of.out, of.in, each, rank.experts, of.dtype), rank));
  if (of.bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.routed_tokens * of.out)));
  for (Tape* tape : {&made.forward, &made.backward})
    if (tape->front().kernel.name == "quantise") tape->front().launches = rank.experts;
  return made;
}

/// Between the router and the sum of a token's results: what is only known once tokens are routed.
void add_routed(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank,
                compute::Dtype dtype) {
  const bool copied = strategy.stack.dispatcher == Dispatcher::all_to_all;
  const Tokens tokens = tokens_of(model, strategy, rank);
  const bool sorts = copied && strategy.ep * strategy.etp > 1 && rank.experts > 1;
  // Copied before they leave, or as they come.
  const std::int64_t rows = copied ? tokens.here : tokens.sent * strategy.etp;
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * rank.expert_ffn : rank.expert_ffn;
  const Operator permuted = permute(rows, copied ? tokens.copies : rank.routed_tokens, rank.hidden);
  if (copied) operators.push_back(permuted);
  operators.push_back(travel("dispatch", tokens, strategy, true));
  if (!copied) operators.push_back(permuted);
  if (sorts) operators.push_back(sort("sort_by_expert", rank));
  operators.push_back(grouped_linear(rank, {"expert_up", rank.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, rank.routed_tokens * rank.expert_ffn));
  operators.push_back(grouped_linear(rank, {"expert_down", rank.expert_ffn, rank.hidden, model.biases, dtype}));
  if (sorts) operators.push_back(sort("sort_by_rank", rank));
  Operator unpermuted = permuted;
  unpermuted.name = "unpermute";
  if (!copied) operators.push_back(unpermuted);
  operators.push_back(travel("combine", tokens, strategy, false));
  if (copied) operators.push_back(unpermuted);
}

}  // namespace

double parts_reached(const Model& model, std::int64_t parts) {
  const auto experts = static_cast<double>(model.experts);
  const double elsewhere = experts - experts / static_cast<double>(parts);
  double missed = 1;  // that none of a token's experts lies in a given part
  for (std::int64_t i = 0; i < model.experts_per_token; ++i) {
    const auto chosen = static_cast<double>(i);
    missed *= std::max(0.0, elsewhere - chosen) / (experts - chosen);
  }
  return static_cast<double>(parts) * (1 - missed);
}

void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank,
                 compute::Dtype dtype) {
  add_router(operators, model, rank);
  const std::size_t routed = operators.size();
  add_routed(operators, model, strategy, rank, dtype);
  for (std::size_t i = routed; i < operators.size(); ++i)
    for (Tape* tape : {&operators[i].forward, &operators[i].backward})
      for (Work& work : *tape) work.of_experts = true;
  if (model.shared_ffn_hidden == 0) return;
  const bool gated = model.activation == Activation::swiglu;
  const std::int64_t shared_up = gated ? 2 * rank.shared_ffn : rank.shared_ffn;
  operators.push_back(column_parallel(rank, {"shared_up", rank.hidden, shared_up, model.biases, dtype}));
  operators.push_back(activation(model, rank.tokens * rank.shared_ffn));
  operators.push_back(row_parallel(rank, {"shared_down", rank.shared_ffn, rank.hidden, model.biases, dtype}));
  operators.push_back(elementwise("add_shared", rank.region_tokens * rank.hidden, 6, 0, 0));
}

}  // namespace manyworlds::core::workload
