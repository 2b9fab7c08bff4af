// The convolution module of a Conformer (Gulati et al. 2020, "Conformer: Convolution-augmented Transformer for Speech
// Recognition", section 2.2): a convolution of width 1 to twice the channels, a gated linear unit, a convolution of
// each channel by itself, a norm, swish and a convolution of width 1.
#include <fmt/format.h>

#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

/// The norm behind the channels' own convolutions: of each channel over all tokens, or of each token over its channels.
enum class ModuleNorm : std::uint8_t { batch, layer };

struct ConformerConvolution {
  std::int64_t kernel = 31;
  bool bias = true;
  ModuleNorm norm = ModuleNorm::batch;
};

const OptionTable<ConformerConvolution>& conformer_convolution_options() {
  static const OptionTable<ConformerConvolution> table{
      option("kernel", &ConformerConvolution::kernel, "tokens of a window", {1, 65'536}, "tokens"),
      option("bias", &ConformerConvolution::bias, "its three convolutions have biases"),
      choice("norm", &ConformerConvolution::norm, {"batch", "layer"},
             "the norm inside: of each channel over all tokens of a rank, or of each token over its channels"),
  };
  return table;
}

class ConformerConvolutionPart final : public LayerPart {
 public:
  explicit ConformerConvolutionPart(const ConformerConvolution& options) : options_(options) {}

  BranchNames branch_names() const override { return {"convolution_norm", "convolution_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override {
    const std::int64_t h = model.hidden;
    return {0, 3 * h * h + options_.kernel * h + (options_.bias ? 4 * h : 0) + 2 * h};
  }

  bool shares_context() const override { return false; }  // windows reach over the border of a rank's tokens
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return undivided(); }

  PartFormulas formulas(const Model&) const override {
    return {fmt::format("3 * hidden * hidden + kernel * hidden + {} * hidden", options_.bias ? 6 : 2), "",
            "2 * sequence * (3 * hidden * hidden + kernel * hidden)"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t h = on.shapes.hidden, elements = on.shapes.tokens * h;
    const auto convolve = [&](std::string_view name, std::int64_t out, std::int64_t kernel, std::int64_t groups) {
      operators.push_back(
          convolution(on.shapes, {name, h, out, kernel, 1, groups, on.shapes.tokens, options_.bias, true, true}));
    };
    convolve("pointwise_in", 2 * h, 1, 1);
    operators.push_back(elementwise("gated_linear_unit", elements, 6, 10, 4 * elements));
    convolve("depthwise", h, options_.kernel, h);
    if (options_.norm == ModuleNorm::batch)
      operators.push_back(batch_norm(on.shapes, {.name = "batch_norm", .channels = h, .positions = on.shapes.tokens}));
    else
      operators.push_back(elementwise("channel_norm", elements, 4, 6, 2 * elements));
    operators.push_back(elementwise("swish", elements, 4, 6, 2 * elements));
    convolve("pointwise_out", h, 1, 1);
  }

  /// Gradients before and behind the gated linear unit.
  std::int64_t working_bytes(const PartOnRank& on) const override { return 3 * on.shapes.hidden_bytes(); }

 private:
  ConformerConvolution options_;
};

}  // namespace

PartType conformer_convolution_type() {
  return {"conformer_convolution",
          "the convolution module of a Conformer",
          conformer_convolution_options().infos(),
          make_part<ConformerConvolutionPart, conformer_convolution_options>,
          {{"kernel", std::int64_t{8}}}};
}

}  // namespace manyworlds::core::workload
