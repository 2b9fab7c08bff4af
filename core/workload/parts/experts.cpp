// Router, shared expert, and what routed experts add to a layer.
#include "core/workload/parts/experts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/workload/parts/expert_load.hpp"
#include "core/workload/parts/routed_experts.hpp"
#include "core/workload/strategy/parameters.hpp"

namespace manyworlds::core::workload {
namespace {

/// Number of kernels of Megatron-Core's router with and without moe_router_fusion, most of them tiny
/// (NVIDIA/Megatron-LM, "Optimizing DeepSeek-V3 Training Performance on NVIDIA GB200 NVL72", section 2.1.4).
constexpr std::int64_t kRouterKernels = 31, kUnfusedRouterKernels = 72;

/// Sets the number of launches of the operator's first forward kernel.
void set_launches(Operator& each, std::int64_t launches) {
  std::get<KernelWork>(each.forward.front().action).launches = launches;
}

/// Scores of every expert for every token, and the selection of experts: logits are read and probabilities written in
/// fp32, and vice versa in the backward pass. The norm's output is saved for the router, for the following operators
/// and for the shared expert; logits and probabilities are saved, too.
void add_router(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes) {
  operators.push_back(replicated_linear(shapes, {"router", shapes.hidden, model.experts}));
  mark_input_from(operators.back(), recompute::mlp_norm);
  const std::int64_t scores = shapes.sp_region_tokens * model.experts;
  operators.push_back(elementwise("route", scores, 8, 12, 8 * scores));
  mark_input_from(operators.back(), recompute::moe);
  set_launches(operators.back(), shapes.stack.router_fusion ? kRouterKernels : kUnfusedRouterKernels);
}

/// Limits the rows of each expert to its capacity: a top-k over the tokens of every expert, by score (fp32) or by the
/// routing map as integers, and masks that are computed from it and applied (Megatron-LM, apply_router_token_dropping).
void add_capacity(std::vector<Operator>& operators, const Model& model, const Strategy& strategy,
                  const RankShapes& shapes) {
  if (strategy.capacity_factor == 0) return;
  const std::int64_t scores = shapes.sp_region_tokens * model.experts;
  const std::int64_t forward = strategy.token_drop == TokenDrop::probs ? 4 + 9 + 12 : 5 + 4 + 9 + 12;
  operators.push_back(elementwise("capacity", scores, forward, 9, scores));
  set_launches(operators.back(), strategy.token_drop == TokenDrop::probs ? 5 : 6);
  mark_input_from(operators.back(), recompute::moe);
}

/// Returns the operators of the shared expert, which every token visits. Its input is the router's, which saves it.
std::vector<Operator> shared_expert(const Model& model, const RankShapes& shapes, compute::Dtype dtype) {
  if (model.shared_ffn_hidden == 0) return {};
  const std::int64_t up = model.up_width(shapes.shared_ffn);
  std::vector<Operator> result{
      column_parallel(shapes, {"shared_up", shapes.hidden, up, model.biases, dtype}),
      activation(model, shapes, shapes.tokens * shapes.shared_ffn),
      row_parallel(shapes, {"shared_down", shapes.shared_ffn, shapes.hidden, model.biases, dtype})};
  result[0].saved_bytes = 0;
  mark_input_from(result[0], recompute::mlp_norm);
  for (std::size_t i = 1; i < 3; ++i) mark_input_from(result[i], recompute::moe | recompute::shared_experts);
  for (Operator& each : result) each.in_modules = recompute::shared_experts;
  return result;
}

const OptionTable<ExpertOptions>& expert_options() {
  static const OptionTable<ExpertOptions> table{
      option("latent", &ExpertOptions::latent,
             "width that tokens are projected to before they are sent to experts, and back from; 0: they are not",
             {0, 1'000'000}),
      option("correction_bias", &ExpertOptions::correction_bias,
             "the router adds a number for each expert to its scores before it selects"),
      option("router_bias", &ExpertOptions::router_bias, "the router's matrix has a bias in any case"),
      option("shared_gate", &ExpertOptions::shared_gate, "what the shared expert returns is multiplied by a gate"),
  };
  return table;
}

RankShapes expert_shapes(const PartOnRank& on) {
  RankShapes shapes = on.shapes;
  add_expert_shapes(shapes, on.model, on.strategy);
  return shapes;
}

class Experts final : public LayerPart {
 public:
  explicit Experts(const ExpertOptions& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"mlp_norm", "mlp_residual", recompute::mlp_norm, offload::mlp_norm};
  }
  bool has_experts() const override { return true; }
  std::int64_t expert_parameters(const Model& model, std::int64_t etp) const override {
    if (options_.latent == 0) return workload::expert_parameters(model, etp);
    return workload::expert_parameters(inner(model), etp);
  }

  std::string missing_size(const Model& model) const override { return model.experts == 0 ? "experts" : ""; }

  /// The router's weights, those of the projections around the experts, and those of the shared expert.
  PartParameters parameters(const Model& model) const override {
    const bool router_bias = model.biases || options_.router_bias;
    PartParameters counts{0,
                          (model.hidden + (router_bias ? 1 : 0) + (options_.correction_bias ? 1 : 0)) * model.experts};
    counts.replicated += 2 * model.hidden * options_.latent;
    if (model.shared_ffn_hidden == 0) return counts;
    counts.sharded += feed_forward_parameters(model, model.shared_ffn_hidden);
    counts.replicated += (model.biases ? model.hidden : 0) + (options_.shared_gate ? model.hidden : 0);
    return counts;
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"experts", model.experts, ShardAxis::expert},
            {"expert_ffn_hidden", model.expert_ffn(), ShardAxis::expert_tensor},
            {"shared_ffn_hidden", model.shared_ffn_hidden}};
  }

  PartFormulas formulas(const Model& model) const override {
    const bool router_bias = model.biases || options_.router_bias;
    const int biases = (router_bias ? 1 : 0) + (options_.correction_bias ? 1 : 0);
    const char *matrices = model.is_gated() ? "3" : "2", *width = options_.latent > 0 ? "latent" : "hidden";
    const std::string expert = fmt::format("{} * {} * expert_ffn_hidden", matrices, width),
                      shared = fmt::format("{} * hidden * shared_ffn_hidden", matrices);
    const auto with_biases = [&](const std::string& product, const char* inner, const char* outer) {
      if (!model.biases) return product;
      return product + (model.is_gated() ? " + 2 * " : " + ") + inner + " + " + outer;
    };
    PartFormulas all;
    all.parameters = fmt::format("(hidden + {}) * experts", biases);
    all.expert_parameters = with_biases(expert, "expert_ffn_hidden", width);
    all.forward_flops = "2 * sequence * (hidden * experts + experts_per_token * " + expert;
    if (options_.latent > 0) all.parameters += " + 2 * hidden * latent", all.forward_flops += " + 2 * hidden * latent";
    if (model.shared_ffn_hidden > 0) {
      all.parameters += " + " + with_biases(shared, "shared_ffn_hidden", "hidden");
      if (options_.shared_gate) all.parameters += " + hidden";
      all.forward_flops += " + " + shared;
    }
    all.forward_flops += ")";
    return all;
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes shapes = expert_shapes(on);
    const std::size_t first = operators.size();
    add_router(operators, on.model, shapes);
    add_capacity(operators, on.model, on.strategy, shapes);
    std::vector<Operator> shared = shared_expert(on.model, shapes, on.dtype());
    if (options_.shared_gate && !shared.empty()) add_shared_gate(shared, shapes);
    const bool beside = on.strategy.stack.overlap_shared_expert;
    add_latent_routed(operators, on, shapes, beside ? shared : std::vector<Operator>());
    if (!beside) operators.insert(operators.end(), shared.begin(), shared.end());
    if (!shared.empty())
      operators.push_back(elementwise("add_shared", shapes.sp_region_tokens * shapes.hidden, 6, 0, 0));
    for (std::size_t i = first; i < operators.size(); ++i) operators[i].in_modules |= recompute::moe;
  }

  /// Gradients before and after the activation function, or of tokens before and after they are sent back to their
  /// ranks; delayed weight gradients need that of the experts' output until they are computed; and gradients of copied
  /// experts.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    if (options_.latent == 0) return working_bytes(on.model, on);
    return working_bytes(inner(on.model), on);
  }

  std::optional<std::int64_t> cached_bytes(const PartOnRank&) const override { return 0; }

 private:
  static std::int64_t working_bytes(const Model& model, const PartOnRank& on) {
    const RankShapes shapes = expert_shapes(on);
    const ExpertLoad load = expert_load(model, on.strategy, on.kind);
    const std::int64_t rows = rank_load(model, on.strategy, load, on.expert_rank).computed;
    const std::int64_t inside = rows * model.up_width(shapes.expert_ffn),
                       sent = (on.strategy.ep * on.strategy.etp > 1 ? 2 : 1) * rows * model.hidden,
                       delayed = on.strategy.stack.delay_expert_weights ? rows * model.hidden : 0;
    return 2 * (std::max(inside, sent) + delayed) + static_cast<std::int64_t>(load.copied.size()) *
                                                        gradient_bytes(on.strategy) *
                                                        workload::expert_parameters(model, on.strategy.etp);
  }

  /// The model as the routed experts see it.
  Model inner(const Model& model) const {
    Model result = model;
    if (options_.latent > 0) result.hidden = options_.latent;
    return result;
  }

  /// Adds the routed experts, between projections to a narrower width and back (NVIDIA 2025, Nemotron 3, LatentMoE).
  void add_latent_routed(std::vector<Operator>& operators, const PartOnRank& on, const RankShapes& shapes,
                         const std::vector<Operator>& shared) const {
    if (options_.latent == 0) return add_routed(operators, on, shapes, shared);
    const Model model = inner(on.model);
    const PartOnRank inside(model, on.strategy, on.kind, on.expert_rank);
    operators.push_back(replicated_linear(shapes, {"latent_down", shapes.hidden, options_.latent, false, on.dtype()}));
    mark_input_from(operators.back(), recompute::mlp_norm);
    add_routed(operators, inside, expert_shapes(inside), shared);
    operators.push_back(replicated_linear(shapes, {"latent_up", options_.latent, shapes.hidden, false, on.dtype()}));
  }

  /// A gate for each token: a product with one row of weights, a sigmoid, and the product of both.
  static void add_shared_gate(std::vector<Operator>& shared, const RankShapes& shapes) {
    shared.push_back(elementwise("shared_gate", shapes.sp_region_tokens * shapes.hidden, 6, 10,
                                 2 * shapes.sp_region_tokens * shapes.hidden));
    shared.back().in_modules = recompute::shared_experts;
  }

  ExpertOptions options_;
};

}  // namespace

PartType experts_type() {
  return {"experts",
          "routed feed-forward networks, and a shared one",
          expert_options().infos(),
          make_part<Experts, expert_options>,
          {}};
}

const LayerPart& experts_part() {
  static const Experts part{ExpertOptions{}};
  return part;
}

}  // namespace manyworlds::core::workload
