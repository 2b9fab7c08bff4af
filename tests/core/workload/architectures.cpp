// Layers that are given as parts: the same as those that a model's options describe, and what holds for every part.
#include "core/workload/model/architecture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "core/memory/activations.hpp"
#include "core/memory/footprint.hpp"
#include "core/workload/build/build_program.hpp"
#include "core/workload/layer/layer_parameters.hpp"
#include "core/workload/layer/operators.hpp"
#include "tests/core/workload/architecture_models.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::workload;

namespace {

/// A model all of whose sizes are multiples of 8 and whose parts are small.
Model small_model() {
  Model model = llama(4, 256, 16, 8, 512, 1'024);
  model.sequence = 512;
  model.head_dim = 32;
  model.query_key_norm = true;
  model.experts = 16;
  model.experts_per_token = 2;
  model.expert_ffn_hidden = 128;
  model.shared_ffn_hidden = 256;
  return model;
}

/// The small model with what the example of a type of part needs.
Model model_for(const std::string& type) {
  OptionSet options = model_options().read(small_model());
  for (const auto& [name, value] : find_part_type(type)->example_model) options[name] = value;
  return model_options().make(options);
}

Model of_one_part(const std::string& type, const OptionSet& own, const BranchOptions& options = {}) {
  const Model model = model_for(type);
  return described(model, {{branch_of(model, type, own, options)}}, {0, 0, 0, 0});
}

std::vector<Operator> layer_of(const Model& model, const Strategy& strategy) {
  return layer_operators(model, strategy, model.layer_kind(0));
}

/// What kernels compute, without the index of sparse attention, which every rank computes whole.
std::int64_t divided_flops(const std::vector<Operator>& operators, OpList Operator::*direction) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    for (const WorkItem& work : each.*direction)
      if (const KernelWork* kernel = work.kernel())
        if (!kernel->shape.name.starts_with("index_") || kernel->shape.name == "index_target")
          sum += kernel->shape.flops;
  return sum;
}

/// Everything of an operator that a step or a footprint depends on, as text.
std::string text_of(const OpList& ops) {
  std::string text;
  for (const WorkItem& work : ops) {
    if (const KernelWork* kernel = work.kernel())
      text += std::string(kernel->shape.name) + " " + std::to_string(kernel->shape.flops) + " " +
              std::to_string(kernel->shape.bytes) + " " + std::to_string(kernel->launches) +
              (kernel->weight_gradient ? "w " : " ");
    else if (const CollectiveStart* start = work.start())
      text += std::string(start->name) + " of " + std::to_string(start->bytes) + " " +
              std::to_string(static_cast<int>(start->kind)) + " ";
    else
      text += "join ";
  }
  return text;
}
std::vector<std::string> texts_of(const std::vector<Operator>& operators) {
  std::vector<std::string> all;
  for (const Operator& each : operators)
    all.push_back(std::string(each.name) + ": " + text_of(each.forward) + "| " + text_of(each.backward) + "| " +
                  std::to_string(each.saved_bytes) + " " + std::to_string(each.attention_core_bytes) + " " +
                  std::to_string(each.in_modules) + " " + std::to_string(each.input_from) + " " +
                  std::to_string(each.offload_module));
  return all;
}

std::vector<Strategy> some_strategies() {
  std::vector<Strategy> all{layout(1, 1, 1, 8), layout(2, 2, 1, 8), layout(4, 1, 2, 8)};
  all.push_back(layout(2, 2, 1, 8));
  all.back().sequence_parallel = true;
  all.push_back(all.back());
  all.back().recompute = Recompute::selective;
  all.push_back(all.front());
  all.back().recompute = Recompute::full;
  all.back().dp = 4, all.back().zero = 1;
  return all;
}

}  // namespace

TEST_CASE("blocks of attention and mlp are the layers that the model's options describe") {
  Model dense = small_model();
  dense.experts = 0, dense.shared_ffn_hidden = 0;
  const Model listed = described(dense, {{branch_of(dense, "attention"), branch_of(dense, "mlp")}}, {0, 0, 0, 0});
  CHECK(model_parameters(listed) == model_parameters(dense));
  CHECK(model_flops_per_sequence(listed) == model_flops_per_sequence(dense));
  for (const Strategy& strategy : some_strategies()) {
    CAPTURE(strategy.tp, strategy.pp, strategy.sequence_parallel, strategy.recompute);
    CHECK(texts_of(layer_of(listed, strategy)) == texts_of(layer_of(dense, strategy)));
    CHECK(stage_parameters(listed, strategy, 0).total() == stage_parameters(dense, strategy, 0).total());
    CHECK(memory::peak(listed, strategy, round_gpu()).total() == memory::peak(dense, strategy, round_gpu()).total());
  }
}

TEST_CASE("blocks with experts behind dense ones are those of dense_layers") {
  Model routed = small_model();
  routed.dense_layers = 1;
  Model dense = routed;
  const Model listed = described(routed,
                                 {{branch_of(routed, "attention"), branch_of(routed, "mlp")},
                                  {branch_of(routed, "attention"), branch_of(routed, "experts")}},
                                 {0, 1, 1, 1});
  CHECK(model_parameters(listed) == model_parameters(routed));
  CHECK(active_parameters(listed) == active_parameters(routed));
  for (Strategy strategy : some_strategies()) {
    strategy.ep = strategy.tp * strategy.dp;
    CAPTURE(strategy.tp, strategy.pp, strategy.ep);
    for (std::int64_t layer = 0; layer < 4; ++layer)
      CHECK(texts_of(layer_operators(listed, strategy, listed.layer_kind(layer))) ==
            texts_of(layer_operators(routed, strategy, routed.layer_kind(layer))));
    CHECK(memory::peak(listed, strategy, round_gpu()).total() == memory::peak(routed, strategy, round_gpu()).total());
  }
}

TEST_CASE("a window of a part is that of windowed layers") {
  Model windowed = small_model();
  windowed.experts = 0, windowed.shared_ffn_hidden = 0, windowed.window = 128, windowed.window_every = 2;
  Model whole = windowed;
  whole.window = 0, whole.window_every = 1;
  const Model listed = described(whole,
                                 {{branch_of(windowed, "attention"), branch_of(windowed, "mlp")},
                                  {branch_of(whole, "attention"), branch_of(whole, "mlp")}},
                                 {0, 1, 0, 1});
  for (const Strategy& strategy : some_strategies())
    for (std::int64_t layer = 0; layer < 2; ++layer)
      CHECK(texts_of(layer_operators(listed, strategy, listed.layer_kind(layer))) ==
            texts_of(layer_operators(windowed, strategy, windowed.layer_kind(layer))));
}

TEST_CASE("tensor-parallel ranks share out what every type of part computes and has") {
  for (const auto& [type, own] : parts_with_options()) {
    if (!is_divided(type, own, model_for(type))) continue;
    const Model model = of_one_part(type, own);
    CAPTURE(type);
    const std::vector<Operator> whole = layer_of(model, layout(1, 1, 1, 8));
    const LayerKind kind = model.layer_kind(0);
    for (const std::int64_t tp : {2, 4, 8}) {
      Strategy strategy = layout(tp, 1, 1, 8);
      strategy.etp = tp;
      strategy.sequence_parallel = true;
      const std::vector<Operator> one = layer_of(model, strategy);
      CAPTURE(tp);
      CHECK(divided_flops(one, &Operator::forward) * tp == divided_flops(whole, &Operator::forward));
      CHECK(divided_flops(one, &Operator::backward) * tp == divided_flops(whole, &Operator::backward));
      const Parameters all = layer_parameters(model, layout(1, 1, 1, 8), kind),
                       share = layer_parameters(model, strategy, kind);
      const std::int64_t replicated = replicated_layer_parameters(model, strategy, kind);
      CHECK((share.dense - replicated) * tp == all.dense - replicated);
      CHECK(share.experts * tp == all.experts);
    }
  }
}

TEST_CASE("context-parallel ranks of every type of part compute it together") {
  for (const auto& [type, own] : parts_with_options()) {
    const Model model = of_one_part(type, own);
    const auto part = model.architecture->blocks[0].branches[0].part;
    if (!is_divided(type, own, model_for(type)) || !part->shares_context() || part->tables() != nullptr) continue;
    if (own.contains("whole") || type == "modulation") continue;  // every rank has the text, or the sample's vector
    CAPTURE(type);
    for (const std::int64_t cp : {2, 4}) {
      Strategy strategy = layout(2, 1, 1, 8);
      strategy.sequence_parallel = true;
      const std::vector<Operator> whole = layer_of(model, strategy);
      strategy.cp = cp;
      const std::vector<Operator> one = layer_of(model, strategy);
      CAPTURE(cp);
      CHECK(divided_flops(one, &Operator::forward) * cp == divided_flops(whole, &Operator::forward));
      CHECK(divided_flops(one, &Operator::backward) * cp == divided_flops(whole, &Operator::backward));
    }
  }
}

TEST_CASE("a rank saves less of every type of part, the more ranks there are and the more it recomputes") {
  for (const auto& [type, own] : parts_with_options()) {
    if (!is_divided(type, own, model_for(type))) continue;
    const Model model = of_one_part(type, own);
    CAPTURE(type);
    const LayerKind kind = model.layer_kind(0);
    std::int64_t before = 0;
    for (const std::int64_t tp : {8, 4, 2, 1}) {
      Strategy strategy = layout(tp, 1, 1, 8);
      strategy.sequence_parallel = tp > 1;
      strategy.etp = tp;
      const std::int64_t saved = memory::activation_bytes_per_layer(model, strategy, kind);
      CHECK(saved > before);
      before = saved;
      strategy.recompute = Recompute::selective;
      const std::int64_t selective = memory::activation_bytes_per_layer(model, strategy, kind);
      strategy.recompute = Recompute::full;
      const std::int64_t full = memory::activation_bytes_per_layer(model, strategy, kind);
      CHECK(selective <= saved);
      CHECK(full == 2 * 512 * 256);  // 2sbh, whole on every rank (Korthikanti et al. 2022, table 2)
      if (tp == 1) CHECK(full < saved);
    }
  }
}

TEST_CASE("every weight of a part has a gradient of its size") {
  // GEMMs of weight gradients have as many results as the part has weights, but for vectors and what no GEMM has.
  for (const auto& [type, own] : parts_with_options()) {
    BranchOptions bare;
    bare.norms = BranchNorms::none;
    const Model model = of_one_part(type, own, bare);
    CAPTURE(type);
    std::int64_t results = 0;
    for (const Operator& each : layer_of(model, layout(1, 1, 1, 8)))
      for (const WorkItem& work : each.backward)
        if (const KernelWork* kernel = work.kernel();
            kernel && kernel->weight_gradient && kernel->shape.kernel_class == compute::KernelClass::gemm)
          results += kernel->shape.m * kernel->shape.n * kernel->shape.batch;
    const std::int64_t parameters = layer_parameters(model, layout(1, 1, 1, 8), model.layer_kind(0)).total();
    CHECK(results <= parameters);
    if (results == 0) {
      CHECK(parameters <= 2 * model.hidden);  // a norm, with a shift or not, or a look-up in the model's table
      continue;
    }
    CHECK(static_cast<double>(parameters - results) <= 0.03 * static_cast<double>(parameters));
  }
}

TEST_CASE("norms around a part are counted, and move bytes, where they are") {
  const auto norms_of = [](BranchNorms norms, bool residual) {
    BranchOptions options;
    options.norms = norms, options.residual = residual;
    return of_one_part("mlp", {}, options);
  };
  const Strategy strategy = layout(1, 1, 1, 8);
  const auto parameters = [&](const Model& model) {
    return layer_parameters(model, strategy, model.layer_kind(0)).total();
  };
  const std::int64_t bare = parameters(norms_of(BranchNorms::none, true)), hidden = small_model().hidden;
  CHECK(parameters(norms_of(BranchNorms::before, true)) == bare + hidden);
  CHECK(parameters(norms_of(BranchNorms::after, true)) == bare + hidden);
  CHECK(parameters(norms_of(BranchNorms::both, true)) == bare + 2 * hidden);
  const auto names = [&](const Model& model) {
    std::vector<std::string> all;
    for (const Operator& each : layer_of(model, strategy)) all.emplace_back(each.name);
    return all;
  };
  using Names = std::vector<std::string>;
  CHECK(names(norms_of(BranchNorms::before, true)) ==
        Names{"mlp_norm", "mlp_up", "swiglu", "mlp_down", "mlp_residual"});
  CHECK(names(norms_of(BranchNorms::both, true)) ==
        Names{"mlp_norm", "mlp_up", "swiglu", "mlp_down", "output_norm", "mlp_residual"});
  CHECK(names(norms_of(BranchNorms::after, true)) ==
        Names{"residual_gradient", "mlp_up", "swiglu", "mlp_down", "mlp_residual", "output_norm"});
  CHECK(names(norms_of(BranchNorms::none, false)) == Names{"mlp_up", "swiglu", "mlp_down"});
}

namespace {

std::int64_t flops_of_operator(const std::vector<Operator>& operators, std::string_view name,
                               OpList Operator::*direction) {
  std::int64_t sum = 0;
  for (const Operator& each : operators)
    if (each.name == name)
      for (const WorkItem& work : each.*direction)
        if (const KernelWork* kernel = work.kernel()) sum += kernel->shape.flops;
  return sum;
}

}  // namespace

TEST_CASE("attention without a causal mask reads all pairs, in chunks those of a chunk") {
  const Strategy strategy = layout(1, 1, 1, 1);
  const auto core = [&](const OptionSet& own) {
    return flops_of_operator(layer_of(of_one_part("attention", own), strategy), "attention", &Operator::forward);
  };
  const std::int64_t causal = core({});
  CHECK(core({{"causal", false}}) == 2 * causal);
  CHECK(core({{"chunk", std::int64_t{128}}}) == causal / 4);
  CHECK(core({{"chunk", std::int64_t{512}}}) == causal);
}

TEST_CASE("experts of a latent width compute and send that width") {
  using I = std::int64_t;
  const auto of_width = [](I latent) { return of_one_part("experts", {{"latent", latent}}); };
  Strategy strategy = layout(1, 1, 1, 8);
  strategy.dp = strategy.ep = 4;
  const auto sent = [&](const Model& model) {
    I bytes = 0;
    for (const Operator& each : layer_of(model, strategy))
      for (const WorkItem& work : each.forward)
        if (work.start() && work.start()->kind == collective::Kind::all_to_all) bytes += work.start()->bytes;
    return bytes;
  };
  CHECK(sent(of_width(0)) == 4 * sent(of_width(64)));
  const auto experts = [&](const Model& model) {
    return layer_parameters(model, layout(1, 1, 1, 8), model.layer_kind(0)).experts;
  };
  CHECK(experts(of_width(0)) == 16 * 3 * 256 * 128);
  CHECK(experts(of_width(64)) == 16 * 3 * 64 * 128);
}

namespace {

/// The multiplications and additions of sparse latent attention, one by one: of attention, and of its index.
struct SparseCount {
  std::int64_t attention = 0, index = 0, target = 0;
};

SparseCount counted_sparse(std::int64_t sequence, std::int64_t heads, std::int64_t rank, std::int64_t rotary,
                           std::int64_t index_heads, std::int64_t index_width, std::int64_t index_keys) {
  SparseCount count;
  for (std::int64_t query = 0; query < sequence; ++query) {
    for (std::int64_t key = 0; key < query; ++key) count.index += 2 * index_heads * index_width;
    for (std::int64_t key = 0; key < std::min(query, index_keys); ++key) {
      count.target += 2 * heads * (rank + rotary);            // scores, for the distribution that the index learns
      count.attention += 2 * heads * (rank + rotary + rank);  // scores and values
    }
  }
  return count;
}

}  // namespace

TEST_CASE("sparse attention takes the FLOPs of its loops, and its index those of all pairs") {
  using I = std::int64_t;
  const PartType& type = *find_part_type("sparse_attention");
  const Model model = of_one_part(type.name, type.example);
  const std::vector<Operator> layer = layer_of(model, layout(1, 1, 1, 1));
  // Kernels count pairs as an integral: half a pair for each query less than the loops, which leave out the diagonal.
  const SparseCount count = counted_sparse(512, 16, 32, 16, 8, 32, 128);
  CHECK(flops_of_operator(layer, "attention", &Operator::forward) ==
        count.attention + 2 * 16 * (32 + 16 + 32) * 128 / 2);
  CHECK(flops_of_operator(layer, "index_scores", &Operator::forward) ==
        count.index + count.target + 2 * 8 * 32 * 512 / 2 + 2 * 16 * (32 + 16) * 128 / 2);
  CHECK(flops_of_operator(layer, "query_absorb", &Operator::forward) == 2 * I{512} * 16 * 32 * 32);
  CHECK(flops_of_operator(layer, "query_absorb", &Operator::backward) == 2 * 2 * I{512} * 16 * 32 * 32);
  CHECK(flops_of_operator(layer, "value_up", &Operator::forward) == 2 * I{512} * 16 * 32 * 32);
  // One of a layer before has nothing of the index.
  OptionSet shared = type.example;
  shared["own_index"] = false;
  const Model reader = of_one_part(type.name, shared);
  const auto parameters = [](const Model& of) {
    return layer_parameters(of, layout(1, 1, 1, 1), of.layer_kind(0)).total();
  };
  CHECK(parameters(model) - parameters(reader) == 64 * 8 * 32 + 256 * (32 + 8) + 2 * 32);
  CHECK(flops_of_operator(layer_of(reader, layout(1, 1, 1, 1)), "index_scores", &Operator::forward) == 0);
}
