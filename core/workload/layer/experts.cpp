// Router, permutation, all-to-all, grouped GEMMs and the shared expert.
#include "core/workload/layer/experts.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "core/workload/layer/expert_load.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::grouped_gemm;
using compute::grouped_weight_gradient;
using compute::memory_bound;

/// Kernels of Megatron-Core's router with and without moe_router_fusion, most of them tiny (NVIDIA/Megatron-LM,
/// "Optimizing DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72", section 2.1.4).
constexpr std::int64_t kRouterKernels = 31, kUnfusedRouterKernels = 72;

/// Scores of every expert for every token, and the choice among them: logits are read and probabilities written in
/// fp32, and back. The norm's output is kept for the router, what follows it and the shared expert; so are both scores.
void add_router(std::vector<Operator>& operators, const Model& model, const Cut& rank) {
  operators.push_back(whole_linear(rank, {"router", rank.hidden, model.experts}));
  takes(operators.back(), again::mlp_norm);
  const std::int64_t scores = rank.region_tokens * model.experts;
  operators.push_back(elementwise("route", scores, 8, 12, 8 * scores));
  takes(operators.back(), again::moe);
  operators.back().forward.front().launches = rank.stack.router_fusion ? kRouterKernels : kUnfusedRouterKernels;
}

/// Scores are cut down to each expert's capacity: a top-k over the tokens of every expert, of the scores (fp32) or of
/// the routing map as whole numbers, and masks made from it and applied (Megatron-LM, apply_router_token_dropping).
void add_capacity(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const Cut& rank) {
  if (strategy.capacity_factor == 0) return;
  const std::int64_t scores = rank.region_tokens * model.experts;
  const std::int64_t forward = strategy.token_drop == TokenDrop::probs ? 4 + 9 + 12 : 5 + 4 + 9 + 12;
  operators.push_back(elementwise("capacity", scores, forward, 9, scores));
  operators.back().forward.front().launches = strategy.token_drop == TokenDrop::probs ? 5 : 6;
  takes(operators.back(), again::moe);
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

/// From one row a token to a row for each of its copies, in the order of their experts; back, they are added up. Not
/// fused, as Megatron-LM writes it: the routing map is transposed and numbers of tokens are chosen by it, rows are
/// copied one by one, and added up in zeroed ones.
Operator permute(const Cut& rank, const Model& model, std::int64_t tokens, std::int64_t copies) {
  Operator made;
  made.name = "permute";
  if (rank.stack.permute_fusion) {
    const std::int64_t bytes = 2 * (tokens + copies) * rank.hidden;
    made.forward.push_back(kernel(memory_bound(made.name, bytes)));
    made.backward.push_back(kernel(memory_bound(made.name, bytes)));
    return made;
  }
  const std::int64_t map = tokens * model.experts;
  for (const std::int64_t bytes : {2 * map, 9 * map + 8 * copies, 4 * copies * rank.hidden})
    made.forward.push_back(kernel(memory_bound(made.name, bytes)));
  for (const std::int64_t bytes : {2 * tokens * rank.hidden, 6 * copies * rank.hidden})
    made.backward.push_back(kernel(memory_bound(made.name, bytes)));
  return made;
}

/// The other way round; the numbers of tokens are known.
Operator unpermute(const Cut& rank, const Operator& permuted) {
  Operator made = permuted;
  made.name = "unpermute";
  if (rank.stack.permute_fusion) return made;
  std::swap(made.forward, made.backward);
  made.backward.erase(made.backward.begin(), made.backward.end() - 1);
  return made;
}

/// What comes from another rank's tokens to be next to what belongs to the same expert: read and written once.
Operator sort(std::string_view name, std::int64_t rows, const Cut& rank) {
  return elementwise(name, rows * rank.hidden, 4, 4, 0);
}

/// To the ranks with the experts, or from them: an all-to-all over expert-parallel ranks, and where an expert is cut
/// over tensor ranks a gather of their tokens, or a sum of their results. What stands between `leave` and `come` runs
/// beside the all-to-all, in both directions.
struct Travel {
  Operator leave, come;

  Operator whole() const {
    Operator made = leave;
    append(made.forward, come.forward);
    made.backward = come.backward;
    append(made.backward, leave.backward);
    return made;
  }
};
Travel travel(std::string_view name, const Tokens& of, const Strategy& strategy, bool out) {
  Travel made;
  made.leave.name = made.come.name = name;
  const bool apart = strategy.ep > 1 && of.bytes > 0;
  const std::int64_t whole = of.received_bytes * strategy.etp;
  const auto begin = [&](Tape& tape, bool back) {
    if (!apart) return;
    start(tape, name, Kind::all_to_all, of.bytes, Role::expert);
    tape.back().split = {of.to_ranks.bytes, back && !of.to_ranks.even()};
  };
  const auto end = [&](Tape& tape) {
    if (apart) join(tape);
  };
  const auto across = [&](Tape& tape, Kind kind) {
    if (strategy.etp > 1 && whole > 0) block_on(tape, name, kind, whole, Role::expert_tensor);
  };
  // Out the tensor ranks gather what has come, back they add up what leaves.
  Tape &gathers_leave = out ? made.leave.forward : made.come.backward,
       &gathers_come = out ? made.come.forward : made.leave.backward,
       &scatters_leave = out ? made.come.backward : made.leave.forward,
       &scatters_come = out ? made.leave.backward : made.come.forward;
  begin(gathers_leave, false), end(gathers_come), across(gathers_come, Kind::all_gather);
  across(scatters_leave, Kind::reduce_scatter), begin(scatters_leave, true), end(scatters_come);
  return made;
}

/// The weights of hot experts from their owners to everybody, and the gradients of the copies back.
Operator share_copies(const Model& model, const Strategy& strategy, const ExpertLoad& load) {
  Operator made;
  made.name = "hot_experts";
  const std::int64_t parameters = expert_parameters(model, 1), each = model.experts / strategy.ep;
  made.kept_bytes = kParameterBytes * parameters;
  made.tensors = static_cast<std::int64_t>(load.copied.size());
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
  ExpertGemms(const Strategy& strategy, const Cut& rank, const RankLoad& load)
      : rank_(rank), load_(load), experts_(rank.experts) {
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
    add_weight_gradient(
        made.backward, rank_,
        load_.experts.empty()
            ? grouped_weight_gradient(of.name, of.out, of.in, each_, experts_, of.dtype)
            : compute::grouped_weight_gradient(of.name, of.out, of.in, std::span(load_.experts), of.dtype),
        launches_);
    if (of.bias) made.backward.push_back(of_weights(memory_bound("bias_gradient", 2 * load_.computed * of.out)));
    made.weight_bytes = made.kept_bytes + stored_bytes(of.dtype, load_.computed * of.out);
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

  const Cut& rank_;
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
  operators.push_back(activation(model, rank, load.computed * rank.expert_ffn));
  operators.push_back(gemms.linear({"expert_down", rank.expert_ffn, rank.hidden, model.biases, dtype}));
  const Modules many = makes_experts_again(strategy, load) ? again::many_tokens : 0;
  Operator* const made = &operators[first];
  takes(made[0], again::moe);
  takes(made[1], again::moe | many);
  takes(made[2], again::moe | many | again::moe_act);
  for (std::size_t i = 0; i < 3; ++i) {
    made[i].part_of = many | (i == 1 ? again::moe_act : 0);
    made[i].offloaded_as = away::expert_fc1 << i;
  }
}

/// What every token visits beside its experts. Its input is the router's, which keeps it.
std::vector<Operator> shared_expert(const Model& model, const Cut& rank, compute::Dtype dtype) {
  if (model.shared_ffn_hidden == 0) return {};
  const bool gated = model.activation == Activation::swiglu;
  const std::int64_t up = gated ? 2 * rank.shared_ffn : rank.shared_ffn;
  std::vector<Operator> made{column_parallel(rank, {"shared_up", rank.hidden, up, model.biases, dtype}),
                             activation(model, rank, rank.tokens * rank.shared_ffn),
                             row_parallel(rank, {"shared_down", rank.shared_ffn, rank.hidden, model.biases, dtype})};
  made[0].kept_bytes = 0;
  takes(made[0], again::mlp_norm);
  for (std::size_t i = 1; i < 3; ++i) takes(made[i], again::moe | again::shared_experts);
  for (Operator& each : made) each.part_of = again::shared_experts;
  return made;
}

/// Its forward or its backward passes alone, beside tokens that travel: what waits for tensor ranks does not wait for
/// those.
std::vector<Operator> beside_travel(std::vector<Operator> shared, bool forward) {
  for (Operator& each : shared) {
    (forward ? each.backward : each.forward).clear();
    if (!forward) each.kept_bytes = each.input_bytes = each.weight_bytes = 0;
    for (Work& work : forward ? each.forward : each.backward)
      if (work.kind == Work::Kind::join) work.awaited.role = Role::tensor;
  }
  return shared;
}

/// What makes gradients of the experts' weights, taken out of their backward passes.
Operator delayed_weights(std::vector<Operator>& experts) {
  Operator made;
  made.name = "expert_weights";
  for (auto each = experts.rbegin(); each != experts.rend(); ++each) {
    const auto of_weights = [](const Work& work) { return work.of_weights; };
    std::copy_if(each->backward.begin(), each->backward.end(), std::back_inserter(made.backward), of_weights);
    std::erase_if(each->backward, of_weights);
  }
  return made;
}

/// Between the router and the sum of a token's results: what is only known once tokens are routed; and what of `shared`
/// runs beside it.
void add_routed(std::vector<Operator>& operators, const Model& model, const Strategy& strategy, const ExpertLayer& of,
                const Cut& rank, compute::Dtype dtype, const std::vector<Operator>& shared) {
  const ExpertLoad load = expert_load(model, strategy, of.kind);
  const RankLoad mine = rank_load(model, strategy, load, of.expert_rank);
  const bool copied = strategy.stack.dispatcher == Dispatcher::all_to_all;
  const Tokens tokens = tokens_of(model, strategy, rank, load, mine);
  const bool sorts = copied && strategy.ep * strategy.etp > 1 && rank.experts > 1;
  const auto add = [&](Operator made) {
    for (Tape* tape : {&made.forward, &made.backward})
      for (Work& work : *tape) work.of_experts = true, work.of_load = !load.rows.empty();
    operators.push_back(std::move(made));
  };
  const auto beside = [&](bool forward) {
    for (Operator& each : beside_travel(shared, forward)) operators.push_back(std::move(each));
  };
  std::vector<Operator> experts;
  add_computation(experts, model, strategy, rank, mine, dtype);
  std::optional<Operator> weights;
  if (strategy.stack.delay_expert_weights) weights = delayed_weights(experts);
  // Copied before they leave, or as they come.
  const std::int64_t rows = copied ? tokens.here : tokens.sent * strategy.etp;
  Operator permuted = permute(rank, model, rows, copied ? tokens.copies : mine.computed);
  Operator unpermuted = unpermute(rank, permuted);
  // Where experts are elsewhere too, tokens are permuted here before they leave; what comes back is to be weighed by
  // probabilities. A dispatcher that copies tokens where they arrive keeps neither: it needs their places alone, and
  // experts have weighed what they send back (Megatron-Core's flex dispatcher, DeepEP).
  if (copied && strategy.ep * strategy.etp > 1) permuted.kept_bytes = 2 * tokens.copies * rank.hidden;
  if (copied) unpermuted.kept_bytes = 2 * tokens.copies * strategy.etp * rank.hidden;
  takes(permuted, again::moe);
  takes(unpermuted, again::moe);
  const Travel dispatch = travel("dispatch", tokens, strategy, true),
               combine = travel("combine", tokens, strategy, false);
  if (copied) add(permuted);
  if (!load.copied.empty()) add(share_copies(model, strategy, load));
  if (shared.empty() && !weights) {
    add(dispatch.whole());
  } else {
    add(dispatch.leave);
    beside(true);
    if (weights) add(*std::move(weights));
    add(dispatch.come);
  }
  if (!copied) add(permuted);
  if (sorts && mine.computed > 0) add(sort("sort_by_expert", mine.computed, rank));
  for (Operator& each : experts) add(std::move(each));
  if (sorts && mine.computed > 0) add(sort("sort_by_rank", mine.computed, rank));
  if (!copied) add(unpermuted);
  if (shared.empty()) {
    add(combine.whole());
  } else {
    add(combine.leave);
    beside(false);
    add(combine.come);
  }
  if (copied) add(unpermuted);
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
  const std::size_t first = operators.size();
  add_router(operators, model, rank);
  add_capacity(operators, model, strategy, rank);
  const std::vector<Operator> shared = shared_expert(model, rank, dtype);
  const bool beside = strategy.stack.overlap_shared_expert;
  add_routed(operators, model, strategy, of, rank, dtype, beside ? shared : std::vector<Operator>());
  if (!beside) operators.insert(operators.end(), shared.begin(), shared.end());
  if (!shared.empty()) operators.push_back(elementwise("add_shared", rank.region_tokens * rank.hidden, 6, 0, 0));
  for (std::size_t i = first; i < operators.size(); ++i) operators[i].part_of |= again::moe;
}

}  // namespace manyworlds::core::workload
