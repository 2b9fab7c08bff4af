// Interactions of features of one width: dot products of all pairs (Naumov et al. 2019, DLRM), and the
// low-rank cross network (Wang et al. 2021, DCN V2). Every rank has all weights, for its own samples.
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::batched_gemm;
using compute::memory_bound;

/// Dense feature and pooled embeddings, all as wide; and of a cross network its layers and the columns of its narrow
/// matrices.
struct Interaction {
  std::int64_t features = 0, width = 0;
  std::int64_t layers = 3, rank = 512;

  std::int64_t all() const { return features * width; }
  std::int64_t pairs() const { return features * (features - 1) / 2; }
};

const OptionTable<Interaction>& dot_options() {
  static const OptionTable<Interaction> table{
      option("features", &Interaction::features, "features: embeddings, and one of the dense inputs", {1, 100'000}),
      option("width", &Interaction::width, "width of a feature", {1, 100'000}),
  };
  return table;
}

const OptionTable<Interaction>& cross_options() {
  static const OptionTable<Interaction> table = [] {
    OptionTable<Interaction> all = dot_options();
    all.add(option("layers", &Interaction::layers, "layers of the cross network", {1, 1'000}));
    all.add(option("rank", &Interaction::rank, "width that a layer projects all features to, and back from",
                   {1, 1'000'000}));
    return all;
  }();
  return table;
}

constexpr BranchNames kNames{"interaction_norm", "interaction_residual", recompute::layernorm, 0};

std::string missing_feature_size(const Interaction& sizes) {
  return sizes.features == 0 ? "features" : sizes.width == 0 ? "width" : "";
}

/// Features of several tensors are copied into one, and gradients back.
Operator concatenate(const Interaction& sizes, std::int64_t samples) {
  return elementwise("concatenate", samples * sizes.all(), 4, 4, 0);
}

/// Z = T T^T of each sample's features T, of which the entries below the diagonal follow the dense feature in the
/// output. Autograd computes (dZ + dZ^T) T by two products (facebookresearch/dlrm, dlrm_s_pytorch.py,
/// interact_features()).
class DotInteraction final : public LayerPart {
 public:
  explicit DotInteraction(const Interaction& sizes) : sizes_(sizes) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return missing_feature_size(sizes_); }
  PartParameters parameters(const Model&) const override { return {}; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override { return {"0", "", "2 * sequence * features * features * width"}; }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t samples = on.shapes.sp_region_tokens, n = sizes_.features, width = sizes_.width;
    const std::int64_t products = samples * n * n, output = samples * (width + sizes_.pairs());
    operators.push_back(concatenate(sizes_, samples));
    Operator dots;
    dots.name = "dot_products";
    dots.saved_bytes = 2 * samples * sizes_.all();
    dots.forward.push_back(kernel(batched_gemm(dots.name, n, n, width, samples)));
    dots.forward.push_back(kernel(memory_bound("select_pairs", 4 * output)));
    dots.backward.push_back(kernel(memory_bound("select_pairs", 2 * (output + products))));
    for (int side = 0; side < 2; ++side) dots.backward.push_back(kernel(batched_gemm(dots.name, n, width, n, samples)));
    dots.backward.push_back(kernel(memory_bound("add_gradients", 6 * samples * sizes_.all())));
    operators.push_back(dots);
  }

  /// Gradients of the products, and of the features from both sides.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return 2 * on.shapes.sp_region_tokens * (sizes_.features * sizes_.features + 2 * sizes_.all());
  }

 private:
  Interaction sizes_;
};

/// A layer is x' = x0 * (W (V x) + b) + x with the element-wise product *, x0 all features, V of rank x width and W of
/// width x rank (TorchRec, modules/crossnet.py, LowRankCrossNet).
class CrossInteraction final : public LayerPart {
 public:
  explicit CrossInteraction(const Interaction& sizes) : sizes_(sizes) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return missing_feature_size(sizes_); }
  PartParameters parameters(const Model&) const override {
    return {0, sizes_.layers * sizes_.all() * (2 * sizes_.rank + 1)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    return {"layers * features * width * (2 * rank + 1)", "", "2 * sequence * layers * 2 * features * width * rank"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t all = sizes_.all(), elements = on.shapes.sp_region_tokens * all;
    operators.push_back(concatenate(sizes_, on.shapes.sp_region_tokens));
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      operators.push_back(replicated_linear(on.shapes, {"cross_down", all, sizes_.rank, false, on.dtype()}));
      operators.push_back(replicated_linear(on.shapes, {"cross_up", sizes_.rank, all, true, on.dtype()}));
      // Forward: W (V x), x0 and x are read, x' is written. Backward: gradient of x', x0, the saved sum and x0's
      // gradient so far are read, two gradients are written (12); the gradient that bypassed the matrices is added (6).
      operators.push_back(elementwise("cross", elements, 8, 18, 2 * elements));
      operators.back().backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * elements)));
    }
  }

  /// Gradients of a layer's output, of x0 and of the sum.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return 2 * on.shapes.sp_region_tokens * (3 * sizes_.all() + sizes_.rank);
  }

 private:
  Interaction sizes_;
};

}  // namespace

PartType dot_interaction_type() {
  return {"dot_interaction",
          "dot products of all pairs of features (DLRM)",
          dot_options().infos(),
          make_part<DotInteraction, dot_options>,
          {{"features", std::int64_t{8}}, {"width", std::int64_t{32}}}};
}

PartType cross_interaction_type() {
  return {"cross_interaction",
          "a cross network of low rank over all features (DCNv2)",
          cross_options().infos(),
          make_part<CrossInteraction, cross_options>,
          {{"features", std::int64_t{8}}, {"width", std::int64_t{32}}, {"rank", std::int64_t{64}}}};
}

}  // namespace manyworlds::core::workload
