// A convolution over two dimensions, and a ReLU behind it.
#include <fmt/format.h>

#include "core/workload/operators/part_input.hpp"
#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

struct Convolution {
  std::int64_t inputs = 0;  // channels of the input; 0: those of the stream
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool bias = true;
  bool activate = false;       // a ReLU follows
  bool input_gradient = true;  // false for a network's first one
};

const OptionTable<Convolution>& convolution_options() {
  static const OptionTable<Convolution> table{
      option("inputs", &Convolution::inputs, "channels of the input; 0: those of the stream", {0, 1'000'000}),
      option("kernel", &Convolution::kernel, "rows and columns of a window", {1, 1'024}),
      option("stride", &Convolution::stride, "the input has so many times the rows and columns", {1, 1'024}),
      option("groups", &Convolution::groups, "groups of channels; as many as inputs: depthwise", {1, 1'000'000}),
      option("bias", &Convolution::bias, "output channels have a bias"),
      option("activate", &Convolution::activate, "a ReLU follows"),
      option("input_gradient", &Convolution::input_gradient,
             "the input needs a gradient; false for a network's first convolution, of images"),
  };
  return table;
}

class ConvolutionPart final : public LayerPart, public ReshapesStream {
 public:
  explicit ConvolutionPart(const Convolution& options) : options_(options) {}

  BranchNames branch_names() const override { return kVisionNames; }
  std::string missing_size(const Model& model) const override {
    const bool divides = inputs(model) % options_.groups == 0 && model.hidden % options_.groups == 0;
    return divides ? "" : "groups that divide its channels";
  }
  PartParameters parameters(const Model& model) const override {
    return {0, shape(model, 1).weights() + (options_.bias ? model.hidden : 0)};
  }
  bool shares_context() const override { return false; }  // windows reach over the border of a rank's rows
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return undivided(); }

  PartFormulas formulas(const Model&) const override {
    const std::string weights =
        fmt::format("hidden * {} * kernel * kernel / groups", options_.inputs > 0 ? "inputs" : "hidden");
    return {weights + (options_.bias ? " + hidden" : ""), "", "2 * sequence * " + weights};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(convolution(on.shapes, shape(on.model, on.shapes.tokens)));
    if (!options_.activate) return;
    Operator after = relu(on.shapes.tokens * on.shapes.hidden);
    if (on.shapes.stack.bias_activation_fusion) after.forward.clear();  // inside the GEMM
    operators.push_back(after);
  }

  /// The gradient of the input.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const ConvolutionShape each = shape(on.model, on.shapes.tokens);
    return options_.input_gradient ? 2 * each.inputs * each.input_positions() : 0;
  }

  PartInput input(const PartOnRank& on) const override {
    const ConvolutionShape each = shape(on.model, on.shapes.tokens);
    const std::int64_t bytes = 2 * each.inputs * each.input_positions();
    return {bytes, bytes};
  }

 private:
  std::int64_t inputs(const Model& model) const { return options_.inputs > 0 ? options_.inputs : model.hidden; }
  ConvolutionShape shape(const Model& model, std::int64_t positions) const {
    return {"convolution",   inputs(model), model.hidden,  options_.kernel,        options_.stride,
            options_.groups, positions,     options_.bias, options_.input_gradient};
  }

  Convolution options_;
};

}  // namespace

PartType convolution_type() {
  return {"convolution",
          "a convolution over height and width",
          convolution_options().infos(),
          make_part<ConvolutionPart, convolution_options>,
          {},
          alone_on_stream()};
}

}  // namespace manyworlds::core::workload
