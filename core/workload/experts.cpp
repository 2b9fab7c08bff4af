// Router, permutation, all-to-all, grouped GEMMs and the shared expert.
#include "core/workload/experts.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::grouped_gemm;
using compute::grouped_weight_gradient;
using compute::memory_bound;

/// Scores of every expert for every token, and the choice among them: logits are read and probabilities written in
/// fp32, and back. The norm's output is kept for the router and what follows it.
void add_router(std::vector<Operator>& operators, const Model& model, const Cut& rank) {
  operators.push_back(whole_linear(rank, {"router", rank.hidden, model.experts}));
  if (model.shared_ffn_hidden > 0) operators.back().kept_bytes = 0;  // the shared expert keeps the same input
  const std::int64_t scores = rank.region_tokens * model.experts;
  operators.push_back(elementwise("route", scores, 8, 12, 4 * scores));
}

/// Tokens of this rank, and copies of them, one for each expert that they go to.
struct Copies {
  std::int64_t tokens = 0, copies = 0;
  std::int64_t bytes = 0;  // of the copies
};

/// Copies in the order of their experts: each token is read once and written for each expert; back, they are added up.
Operator permute(const Copies& of, std::int64_t hidden) {
  Operator made;
  made.name = "permute";
  const std::int64_t bytes = 2 * (of.tokens + of.copies) * hidden;
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
Operator travel(std::string_view name, const Copies& of, const Strategy& strategy, bool out) {
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

/// One GEMM for all experts of the rank, each with its share of the tokens.
Operator grouped_linear(const Cut& rank, const Linear& of) {
  Operator made;
  made.name = of.name;
  const std::int64_t each = (rank.routed_tokens + rank.experts - 1) / rank.experts;
  made.kept_bytes = stored_bytes(of.dtype, rank.routed_tokens * of.in);
  quantise(made.forward, of.dtype, rank.routed_tokens * of.in);
  made.forward.push_back(kernel(grouped_gemm(of.name, each, of.out, of.in, rank.experts, of.dtype)));
  quantise(made.backward, of.dtype, rank.routed_tokens * of.out);
  made.backward.push_back(kernel(grouped_gemm(of.name, each, of.in, of.out, rank.experts, of.dtype)));
  made.backward.push_back(kernel(grouped_weight_gradient(of.name, of.out, of.in, each, rank.experts, of.dtype)));
  if (of.bias) made.backward.push_back(kernel(memory_bound("bias_gradient", 2 * rank.routed_tokens * of.out)));
  return made;
}

}  // namespace

void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank,
                 compute::Dtype dtype) {
  const bool gated = model.activation == Activation::swiglu;
  const std::int64_t copies = rank.region_tokens * model.experts_per_token;
  const Copies sent{rank.region_tokens, copies, 2 * copies * rank.hidden};
  const bool sorts = strategy.ep * strategy.etp > 1 && rank.experts > 1;
  add_router(operators, model, rank);
  operators.push_back(permute(sent, rank.hidden));
  operators.push_back(travel("dispatch", sent, strategy, true));
  if (sorts) operators.push_back(sort("sort_by_expert", rank));
  const std::int64_t up = gated ? 2 * rank.expert_ffn : rank.expert_ffn;
  operators.push_back(grouped_linear(rank, {"expert_up", rank.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, rank.routed_tokens * rank.expert_ffn));
  operators.push_back(grouped_linear(rank, {"expert_down", rank.expert_ffn, rank.hidden, model.biases, dtype}));
  if (sorts) operators.push_back(sort("sort_by_rank", rank));
  operators.push_back(travel("combine", sent, strategy, false));
  operators.push_back(permute(sent, rank.hidden));
  operators.back().name = "unpermute";
  if (model.shared_ffn_hidden == 0) return;
  const std::int64_t shared_up = gated ? 2 * rank.shared_ffn : rank.shared_ffn;
  operators.push_back(column_parallel(rank, {"shared_up", rank.hidden, shared_up, model.biases, dtype}));
  operators.push_back(activation(model, rank.tokens * rank.shared_ffn));
  operators.push_back(row_parallel(rank, {"shared_down", rank.shared_ffn, rank.hidden, model.biases, dtype}));
  operators.push_back(elementwise("add_shared", rank.region_tokens * rank.hidden, 6, 0, 0));
}

}  // namespace manyworlds::core::workload
