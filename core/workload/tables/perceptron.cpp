#include "core/workload/tables/perceptron.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

const OptionTable<Perceptron>& perceptron_options() {
  static const OptionTable<Perceptron> table{
      option("inputs", &Perceptron::inputs, "width of the input", {1, 10'000'000}),
      integer_list("widths", &Perceptron::widths, "outputs of each layer, in forward order", {1, 1'000'000}),
  };
  return table;
}

/// Calls `visit` with inputs and outputs of each layer.
template <class Visitor>
void for_each_layer(const Perceptron& layers, Visitor&& visit) {
  std::int64_t in = layers.inputs;
  for (const std::int64_t out : layers.widths) {
    visit(in, out);
    in = out;
  }
}

class PerceptronPart final : public LayerPart {
 public:
  explicit PerceptronPart(const Perceptron& layers) : layers_(layers) {}

  BranchNames branch_names() const override {
    return {"perceptron_norm", "perceptron_residual", recompute::layernorm, 0};
  }
  std::string missing_size(const Model&) const override {
    return layers_.inputs == 0 ? "inputs" : layers_.widths.empty() ? "widths" : "";
  }
  PartParameters parameters(const Model&) const override { return {0, layers_.parameters()}; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    return {layers_.parameters_formula(), "", "2 * sequence * (" + layers_.products_formula() + ")"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    add_perceptron(operators, on, layers_, "perceptron", false);
  }
  std::int64_t working_bytes(const PartOnRank& on) const override { return layers_.working_bytes(on.shapes); }

 private:
  Perceptron layers_;
};

}  // namespace

std::int64_t Perceptron::parameters() const {
  std::int64_t sum = 0;
  for_each_layer(*this, [&](std::int64_t in, std::int64_t out) { sum += (in + 1) * out; });
  return sum;
}

std::string Perceptron::products_formula() const {
  std::string text;
  for_each_layer(*this, [&](std::int64_t in, std::int64_t out) {
    text += fmt::format("{}{} * {}", text.empty() ? "" : " + ", in, out);
  });
  return text.empty() ? "0" : text;
}

std::string Perceptron::parameters_formula() const {
  std::string text = products_formula();
  for (const std::int64_t out : widths) text += fmt::format(" + {}", out);
  return text;
}

std::int64_t Perceptron::working_bytes(const RankShapes& shapes) const {
  std::int64_t widest = 0;
  for_each_layer(*this, [&](std::int64_t in, std::int64_t out) { widest = std::max(widest, in + out); });
  return 2 * shapes.sp_region_tokens * widest;
}

void add_perceptron(std::vector<Operator>& operators, const PartOnRank& on, const Perceptron& layers,
                    std::string_view name, bool of_data) {
  const std::int64_t rows = on.shapes.sp_region_tokens;
  Model rectified = on.model;
  rectified.activation = Activation::relu, rectified.biases = true;
  bool first = true;
  for_each_layer(layers, [&](std::int64_t in, std::int64_t out) {
    Operator linear = replicated_linear(on.shapes, {name, in, out, true, on.dtype()});
    if (of_data && first)
      std::erase_if(linear.backward, [](const WorkItem& work) { return !work.computes_weight_gradient(); });
    linear.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * rows * out)));
    operators.push_back(linear);
    operators.push_back(activation(rectified, on.shapes, rows * out));
    first = false;
  });
}

PartType perceptron_type() {
  return {"perceptron",
          "linear layers of any widths, each with a ReLU",
          perceptron_options().infos(),
          make_part<PerceptronPart, perceptron_options>,
          {{"inputs", std::int64_t{64}}, {"widths", std::string("128+64")}}};
}

}  // namespace manyworlds::core::workload
