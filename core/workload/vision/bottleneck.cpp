// The bottleneck block of ResNet (He et al. 2016, "Deep residual learning for image recognition", section 4.1):
// convolutions of 1 x 1, 3 x 3 and 1 x 1, each with a batch norm, whose sum with the input, or with a projection of it,
// goes through a ReLU. The stride is that of the 3 x 3 (ResNet v1.5, as torchvision and MLPerf have it), or of the
// first convolution, as in the paper.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/operators/part_input.hpp"
#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

/// What convolutions take over of the batch norms around them: nothing; or, behind them, the sums of statistics; or
/// that, and before them norm and ReLU as they read their input, so that only the sum at the end of the block is a
/// kernel (NormConvolution of NVIDIA's MXNet: mlcommons/training_results_v2.1,
/// NVIDIA/benchmarks/resnet/implementations/ mxnet-preview/symbols/resnet-v1b-mainloop-fl.py).
enum class FusedNorms : std::uint8_t { none, statistics, forward };

struct Bottleneck {
  std::int64_t inputs = 0;  // channels of the input; 0: those of the stream
  std::int64_t width = 0;   // channels of the 3 x 3; 0: a quarter of the stream's
  std::int64_t stride = 1;
  std::int64_t groups = 1;  // of the 3 x 3 (ResNeXt)
  bool stride_first = false;
  bool synchronised = false;
  FusedNorms fused_norms = FusedNorms::none;
};

const OptionTable<Bottleneck>& bottleneck_options() {
  static const OptionTable<Bottleneck> table{
      option("inputs", &Bottleneck::inputs, "channels of the input; 0: those of the stream", {0, 1'000'000}),
      option("width", &Bottleneck::width, "channels of the 3 x 3; 0: a quarter of the stream's", {0, 1'000'000}),
      option("stride", &Bottleneck::stride, "the input has so many times the rows and columns", {1, 64}),
      option("groups", &Bottleneck::groups, "groups of channels of the 3 x 3", {1, 1'000'000}),
      option("stride_first", &Bottleneck::stride_first,
             "the stride is that of the first convolution, not of the 3 x 3"),
      option("synchronised", &Bottleneck::synchronised, "replicas share means and variances"),
      choice("fused_norms", &Bottleneck::fused_norms, {"none", "statistics", "forward"},
             "what convolutions take over of norms: nothing, the sums of those behind them, or all forward"),
  };
  return table;
}

class BottleneckPart final : public LayerPart, public ReshapesStream {
 public:
  explicit BottleneckPart(const Bottleneck& options) : options_(options) {}

  BranchNames branch_names() const override { return kVisionNames; }
  std::string missing_size(const Model& model) const override {
    if (width(model) == 0) return "width";
    if (options_.synchronised && options_.fused_norms == FusedNorms::forward)
      return "fused_norms none or statistics, as it is synchronised";
    return width(model) % options_.groups == 0 ? "" : "groups that divide its width";
  }

  PartParameters parameters(const Model& model) const override {
    const Sizes sizes = sizes_of(model, 1);
    std::int64_t sum = 2 * (2 * sizes.width + model.hidden);
    for (const ConvolutionShape& each : {sizes.reduce, sizes.window, sizes.expand}) sum += each.weights();
    return {0, sum + (projects(model) ? sizes.project.weights() + 2 * model.hidden : 0)};
  }

  bool shares_context() const override { return false; }  // windows reach over the border of a rank's rows
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return undivided(); }

  PartFormulas formulas(const Model& model) const override {
    const char* in = options_.inputs > 0 ? "inputs" : "hidden";
    const char* width = options_.width > 0 ? "width" : "floor(hidden / 4)";
    const std::string projected = projects(model) ? fmt::format(" + {} * hidden", in) : "";
    return {fmt::format("{0} * {1} + 9 * {1} * {1} / groups + {1} * hidden{2} + 4 * {1} + {3} * hidden", in, width,
                        projected, projects(model) ? 4 : 2),
            "",
            fmt::format("2 * sequence * ({3}{0} * {1} + 9 * {1} * {1} / groups + {1} * hidden{2})", in, width,
                        projected, options_.stride_first ? "" : "stride * stride * ")};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const Sizes sizes = sizes_of(on.model, on.shapes.tokens);
    const std::int64_t replicas = options_.synchronised ? on.strategy.shards() : 1;
    const bool summed = options_.fused_norms != FusedNorms::none, inside = options_.fused_norms == FusedNorms::forward;
    const auto add = [&](const ConvolutionShape& shape, std::string_view norm, bool activate, bool saves_input) {
      const bool last = norm == "expansion_norm";
      operators.push_back(convolution(on.shapes, shape));
      if (!saves_input) operators.back().saved_bytes = 0;
      operators.push_back(
          batch_norm(on.shapes, {norm, shape.outputs, shape.positions, activate, last, summed, replicas}));
      if (inside && !last) operators.back().forward.clear();
    };
    // The first convolution saves the input for both.
    if (projects(on.model)) add(sizes.project, "projection_norm", false, false);
    // The input's gradients through the block and beside it are added up behind the backward pass of the block.
    operators.push_back(elementwise("residual_gradient", sizes.reduce.inputs * sizes.input_positions, 0, 6, 0));
    add(sizes.reduce, "reduction_norm", true, true);
    // What a convolution normalises as it reads is what the norm before it has saved.
    add(sizes.window, "window_norm", true, !inside);
    add(sizes.expand, "expansion_norm", true, !inside);
  }

  /// Gradients of the sum, beside the block, and of the expansion's output; then of what the input needs.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    const Sizes sizes = sizes_of(on.model, on.shapes.tokens);
    return std::max(2 * on.shapes.hidden_bytes(),
                    on.shapes.hidden_bytes() + 2 * sizes.reduce.inputs * sizes.input_positions);
  }

  PartInput input(const PartOnRank& on) const override {
    const Sizes sizes = sizes_of(on.model, on.shapes.tokens);
    const std::int64_t bytes = 2 * sizes.reduce.inputs * sizes.input_positions;
    return {bytes, bytes};
  }

 private:
  struct Sizes {
    std::int64_t width, input_positions;
    ConvolutionShape reduce, window, expand, project;
  };

  std::int64_t width(const Model& model) const { return options_.width > 0 ? options_.width : model.hidden / 4; }
  std::int64_t inputs(const Model& model) const { return options_.inputs > 0 ? options_.inputs : model.hidden; }
  bool projects(const Model& model) const { return inputs(model) != model.hidden || options_.stride > 1; }

  Sizes sizes_of(const Model& model, std::int64_t positions) const {
    const std::int64_t s = options_.stride, first = options_.stride_first ? s : 1, second = s / first;
    const std::int64_t in = inputs(model), wide = width(model), out = model.hidden;
    return {wide,
            positions * s * s,
            {"reduction", in, wide, 1, first, 1, positions * second * second},
            {"window", wide, wide, 3, second, options_.groups, positions},
            {"expansion", wide, out, 1, 1, 1, positions},
            {"projection", in, out, 1, s, 1, positions}};
  }

  Bottleneck options_;
};

}  // namespace

PartType bottleneck_type() {
  return {"bottleneck",
          "a block of ResNet-50 and larger ones",
          bottleneck_options().infos(),
          make_part<BottleneckPart, bottleneck_options>,
          {},
          alone_on_stream()};
}

}  // namespace manyworlds::core::workload
