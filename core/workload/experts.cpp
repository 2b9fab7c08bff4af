// Router, permutation, all-to-all, grouped GEMMs and the shared expert.
#include "core/workload/experts.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/workload/expert_load.hpp"
#include "core/workload/parameters.hpp"
#include "core/workload/replica_traffic.hpp"

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

/// Scores are cut down to each expert's capacity: a top-k over the tokens of every expert, of the scores (fp32) or of
/// the routing map as whole numbers, and masks made from it and applied (Megatron-LM, apply_router_token_dropping).
void add_capacity(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank) {
  if (strategy.capacity_factor == 0) return;
  const std::int64_t scores = rank.region_tokens * model.experts;
  const std::int64_t forward = strategy.token_drop == TokenDrop::probs ? 4 + 9 + 12 : 5 + 4 + 9 + 12;
  operators.push_back(elementwise("capacity", scores, forward, 9, scores));
  operators.back().forward.front().launches = strategy.token_drop == TokenDrop::probs ? 5 : 6;
}

/// Tokens of this rank as they travel.
struct Tokens {
  std::int64_t here = 0;    // those that it routes
  std::int64_t copies = 0;  // one for each of their experts
  std::int64_t sent = 0;    // one for each rank that holds some of their experts; with all_to_all each copy
  std::int64_t bytes = 0;   // that those sent take
  std::int64_t received_bytes = 0;
  collective::Split to_ranks;  // bytes
};

Tokens tokens_of(const Model& model, const Strategy& strategy, const Cut& rank, const ExpertLoad& load,
                 const RankLoad& mine) {
  Tokens made;
  made.here = rank.region_tokens;
  made.copies = load.all_rows();
  made.sent = mine.sent;
  if (strategy.stack.dispatcher == Dispatcher::hybrid_ep) {
    const double reached = parts_reached(model, strategy.ep) / static_cast<double>(strategy.ep);
    made.sent = round_half_up(static_cast<double>(made.here) * reached) * strategy.ep;  // as many to each rank
  }
  made.bytes = made.received_bytes = 2 * made.sent * rank.hidden;
  if (mine.to_ranks.even()) return made;
  made.received_bytes = 2 * mine.received * rank.hidden;
  for (const std::int64_t rows : mine.to_ranks.bytes) made.to_ranks.bytes.push_back(2 * rows * rank.hidden);
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
Operator sort(std::string_view name, std::int64_t rows, const Cut& rank) {
  return elementwise(name, rows * rank.hidden, 4, 4, 0);
}

/// To the ranks with the experts, or from them: an all-to-all over expert-parallel ranks, and where an expert is cut
/// over tensor ranks a gather of their tokens, or a sum of their results.
Operator travel(std::string_view name, const Tokens& of, const Strategy& strategy, bool out) {
  Operator made;
  made.name = name;
  const std::int64_t whole = of.received_bytes * strategy.etp;
  const auto between = [&](Tape& tape, bool back) {
    if (strategy.ep == 1 || of.bytes == 0) return;
    start(tape, name, Kind::all_to_all, of.bytes, Role::expert);
    tape.back().split = {of.to_ranks.bytes, back && !of.to_ranks.even()};
    join(tape);
  };
  const auto gather = [&](Tape& tape) {
    between(tape, false);
    if (strategy.etp > 1 && whole > 0) block_on(tape, name, Kind::all_gather, whole, Role::expert_tensor);
  };
  const auto scatter = [&](Tape& tape) {
    if (strategy.etp > 1 && whole > 0) block_on(tape, name, Kind::reduce_scatter, whole, Role::expert_tensor);
    between(tape, true);
  };
  if (out)
    gather(made.forward), scatter(made.backward);
  else
    scatter(made.forward), gather(made.backward);
  return made;
}

/// The weights of hot experts from their owners to everybody, and the gradients of the copies back.
Operator share_copies(const Model& model, const Strategy& strategy, const ExpertLoad& load) {
  Operator made;
  made.name = "hot_experts";
  const std::int64_t parameters = expert_parameters(model, 1), each = model.experts / strategy.ep;
  const auto every = [&](Tape& tape, Kind kind, std::int64_t bytes) {
    for (const std::int64_t expert : load.copied) {
      start(tape, made.name, kind, bytes, Role::expert);
      tape.back().split =
          collective::rooted(static_cast<std::uint32_t>(expert / each), static_cast<std::uint32_t>(strategy.ep), bytes);
    }
  };
  if (strategy.ep == 1 || load.copied.empty()) return made;
  every(made.forward, Kind::broadcast, kParameterBytes * parameters);
  every(made.backward, Kind::reduce, gradient_bytes(strategy) * parameters);
  join(made.backward);
  return made;
}

/// The GEMMs of a rank's experts. Grouped, the host launches one kernel for each that has tokens (Transformer Engine's
/// GroupedLinear), and as many that quantise its input.
class ExpertGemms {
 public:
  ExpertGemms(const Strategy& strategy, const Cut& rank, const RankLoad& load) : load_(load), experts_(rank.experts) {
    each_ = (load.computed + rank.experts - 1) / rank.experts;
    launches_ = load.experts.empty() ? rank.experts
                                     : std::count_if(load.experts.begin(), load.experts.end(),
                                                     [](std::int64_t rows) { return rows > 0; });
    if (strategy.expert_gemm == ExpertGemm::batched) launches_ = 1;
  }

  /// One linear layer of all experts.
  Operator linear(const Linear& of) const {
    Operator made;
    made.name = of.name;
    made.kept_bytes = stored_bytes(of.dtype, load_.computed * of.in);
    quantise_rows(made.forward, of.dtype, of.in);
    product(made.forward, of.name, of.out, of.in, of.dtype);
    quantise_rows(made.backward, of.dtype, of.out);
    product(made.backward, of.name, of.in, of.out, of.dtype);
    launch(made.backward,
           load_.experts.empty()
               ? grouped_weight_gradient(of.name, of.out, of.in, each_, experts_, of.dtype)
               : compute::grouped_weight_gradient(of.name, of.out, of.in, std::span(load_.experts), of.dtype));
    made.backward.back().of_weights = true;
    if (of.bias) made.backward.push_back(of_weights(memory_bound("bias_gradient", 2 * load_.computed * of.out)));
    made.weight_bytes = made.kept_bytes + 2 * load_.computed * of.out;
    return made;
  }

 private:
  void launch(Tape& tape, compute::Kernel one) const {
    tape.push_back(kernel(std::move(one)));
    tape.back().launches = launches_;
  }
  void product(Tape& tape, std::string_view name, std::int64_t out, std::int64_t in, compute::Dtype dtype) const {
    launch(tape, load_.experts.empty() ? grouped_gemm(name, each_, out, in, experts_, dtype)
                                       : compute::grouped_gemm(name, std::span(load_.experts), out, in, dtype));
  }
  void quantise_rows(Tape& tape, compute::Dtype dtype, std::int64_t width) const {
    const std::size_t before = tape.size();
    quantise(tape, dtype, load_.computed * width);
    if (tape.size() > before) tape.back().launches = launches_;
  }

  const RankLoad& load_;
  std::int64_t experts_ = 0, each_ = 0, launches_ = 0;
};

/// What the experts of this rank compute. Where they have more tokens than the strategy keeps activations of, their
/// input alone is kept.
void add_computation(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank,
                     const RankLoad& load, compute::Dtype dtype) {
  if (load.computed == 0) return;
  const ExpertGemms gemms(strategy, rank, load);
  const std::size_t first = operators.size();
  const std::int64_t up = model.activation == Activation::swiglu ? 2 * rank.expert_ffn : rank.expert_ffn;
  operators.push_back(gemms.linear({"expert_up", rank.hidden, up, model.biases, dtype}));
  operators.push_back(activation(model, load.computed * rank.expert_ffn));
  operators.push_back(gemms.linear({"expert_down", rank.expert_ffn, rank.hidden, model.biases, dtype}));
  if (!makes_experts_again(strategy, load)) return;
  for (std::size_t i = first; i < operators.size(); ++i) operators[i].again = true;
  operators[first + 1].kept_bytes = operators[first + 2].kept_bytes = 0;
}

/// Between the router and the sum of a token's results: what is only known once tokens are routed.
void add_routed(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const ExpertLayer& of,
                const Cut& rank, compute::Dtype dtype) {
  const ExpertLoad load = expert_load(model, strategy, of.kind);
  const RankLoad mine = rank_load(model, strategy, load, of.expert_rank);
  const bool copied = strategy.stack.dispatcher == Dispatcher::all_to_all;
  const Tokens tokens = tokens_of(model, strategy, rank, load, mine);
  const bool sorts = copied && strategy.ep * strategy.etp > 1 && rank.experts > 1;
  // Copied before they leave, or as they come.
  const std::int64_t rows = copied ? tokens.here : tokens.sent * strategy.etp;
  const Operator permuted = permute(rows, copied ? tokens.copies : mine.computed, rank.hidden);
  const std::size_t first = operators.size();
  if (copied) operators.push_back(permuted);
  if (!load.copied.empty()) operators.push_back(share_copies(model, strategy, load));
  operators.push_back(travel("dispatch", tokens, strategy, true));
  if (!copied) operators.push_back(permuted);
  if (sorts && mine.computed > 0) operators.push_back(sort("sort_by_expert", mine.computed, rank));
  add_computation(operators, model, strategy, rank, mine, dtype);
  if (sorts && mine.computed > 0) operators.push_back(sort("sort_by_rank", mine.computed, rank));
  Operator unpermuted = permuted;
  unpermuted.name = "unpermute";
  if (!copied) operators.push_back(unpermuted);
  operators.push_back(travel("combine", tokens, strategy, false));
  if (copied) operators.push_back(unpermuted);
  for (std::size_t i = first; i < operators.size(); ++i)
    for (Tape* tape : {&operators[i].forward, &operators[i].backward})
      for (Work& work : *tape) work.of_experts = true, work.of_load = !load.rows.empty();
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

void add_experts(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const ExpertLayer& of,
                 const Cut& rank, compute::Dtype dtype) {
  add_router(operators, model, rank);
  add_capacity(operators, model, strategy, rank);
  add_routed(operators, model, strategy, of, rank, dtype);
  if (model.shared_ffn_hidden == 0) return;
  const bool gated = model.activation == Activation::swiglu;
  const std::int64_t shared_up = gated ? 2 * rank.shared_ffn : rank.shared_ffn;
  operators.push_back(column_parallel(rank, {"shared_up", rank.hidden, shared_up, model.biases, dtype}));
  operators.push_back(activation(model, rank.tokens * rank.shared_ffn));
  operators.push_back(row_parallel(rank, {"shared_down", rank.shared_ffn, rank.hidden, model.biases, dtype}));
  operators.push_back(elementwise("add_shared", rank.region_tokens * rank.hidden, 6, 0, 0));
}

}  // namespace manyworlds::core::workload
