// What networks end with, where that is not the model's own head: a linear layer, a norm whose output other networks
// read, or a classifier of whole samples.
#include <fmt/format.h>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::gemm;
using compute::memory_bound;
using compute::weight_gradient;

struct LinearLayer {
  std::int64_t inputs = 0;  // width of the input; 0: that of the stream
  bool activate = false;    // the model's activation function follows
  bool bias = true;
};

struct Classifier {
  std::int64_t classes = 0;
  std::int64_t hidden = 0;  // width of a layer with tanh before it (the pooler of BERT); 0: none
};

const OptionTable<LinearLayer>& linear_options() {
  static const OptionTable<LinearLayer> table{
      option("inputs", &LinearLayer::inputs, "width of the input; 0: that of the stream", {0, 10'000'000}),
      option("activate", &LinearLayer::activate, "the model's activation function follows"),
      option("bias", &LinearLayer::bias, "the matrix has a bias"),
  };
  return table;
}

const OptionTable<Classifier>& classifier_options() {
  static const OptionTable<Classifier> table{
      option("classes", &Classifier::classes, "classes of a sample", {1, 10'000'000}),
      option("hidden_layer", &Classifier::hidden, "width of a layer before it; 0: none", {0, 1'000'000}),
  };
  return table;
}

constexpr BranchNames kNames{"linear_norm", "linear_residual", recompute::layernorm, 0};

/// A linear layer that every tensor-parallel rank has whole.
class LinearPart final : public LayerPart {
 public:
  explicit LinearPart(const LinearLayer& options) : options_(options) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override {
    return {0, model.hidden * (inputs(model) + (options_.bias ? 1 : 0))};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    const char* width = options_.inputs > 0 ? "inputs" : "hidden";
    return {fmt::format("hidden * {}{}", width, options_.bias ? " + hidden" : ""), "",
            fmt::format("2 * sequence * hidden * {}", width)};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(
        replicated_linear(on.shapes, {"linear", inputs(on.model), on.shapes.hidden, options_.bias, on.dtype()}));
    if (options_.activate)
      operators.push_back(activation(on.model, on.shapes, on.shapes.sp_region_tokens * on.shapes.hidden));
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  std::int64_t inputs(const Model& model) const { return options_.inputs > 0 ? options_.inputs : model.hidden; }

  LinearLayer options_;
};

/// A norm whose output is saved once for all layers of other networks that read it.
class OutputNorm final : public LayerPart {
 public:
  BranchNames branch_names() const override { return {"final_norm", "final_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override { return {0, norm_parameters(model)}; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model& model) const override {
    return {model.norm == Norm::layer_norm ? "2 * hidden" : "hidden", "", "0"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(norm("final_norm", on.model, on.shapes, on.shapes.sp_region_tokens, on.shapes.hidden));
    operators.back().saved_bytes += on.shapes.boundary_bytes();
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }
};

/// Linear layers over one token, or the mean, of each sample, and their loss.
class ClassifierPart final : public LayerPart {
 public:
  explicit ClassifierPart(const Classifier& options) : options_(options) {}

  BranchNames branch_names() const override { return {"final_norm", "final_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return options_.classes == 0 ? "classes" : ""; }
  PartParameters parameters(const Model& model) const override {
    const std::int64_t layer = options_.hidden > 0 ? options_.hidden * (model.hidden + 1) : 0;
    return {0, layer + options_.classes * (inputs(model) + 1)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    if (options_.hidden == 0) return {"classes * (hidden + 1)", "", "2 * classes * hidden"};
    return {"hidden_layer * (hidden + 1) + classes * (hidden_layer + 1)", "",
            "2 * hidden_layer * hidden + 2 * classes * hidden_layer"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t samples = on.shapes.samples;
    if (options_.hidden > 0)
      operators.push_back(product(on.shapes, "pooler", samples, on.shapes.hidden, options_.hidden));
    operators.push_back(product(on.shapes, "classifier", samples, inputs(on.model), options_.classes));
    operators.push_back(
        elementwise("cross_entropy", samples * options_.classes, 14, 6, 4 * samples * options_.classes));
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  std::int64_t inputs(const Model& model) const { return options_.hidden > 0 ? options_.hidden : model.hidden; }

  static Operator product(const RankShapes& shapes, std::string_view name, std::int64_t rows, std::int64_t in,
                          std::int64_t out) {
    Operator result;
    result.name = name;
    result.saved_bytes = 2 * rows * in;
    result.weight_gradient_input_bytes = 2 * rows * (in + out);
    result.forward.push_back(kernel(gemm(name, rows, out, in)));
    result.backward.push_back(kernel(gemm(name, rows, in, out)));
    add_weight_gradient(result.backward, shapes, weight_gradient(name, out, in, rows));
    return result;
  }

  Classifier options_;
};

}  // namespace

PartType linear_type() {
  return {"linear",
          "a linear layer, with an activation function or without",
          linear_options().infos(),
          make_part<LinearPart, linear_options>,
          {}};
}

PartType output_norm_type() {
  return {"output_norm", "the norm at the end of a network that others read", {}, make_part<OutputNorm>, {}};
}

PartType classifier_type() {
  return {"classifier",
          "classes of whole samples, with their loss",
          classifier_options().infos(),
          make_part<ClassifierPart, classifier_options>,
          {{"classes", std::int64_t{8}}}};
}

}  // namespace manyworlds::core::workload
