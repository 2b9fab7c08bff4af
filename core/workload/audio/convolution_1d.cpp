// A convolution over the tokens of a sample, as at the entrance of encoders of speech (Radford et al. 2022, "Robust
// Speech Recognition via Large-Scale Weak Supervision", section 2.2; Baevski et al. 2020, "wav2vec 2.0", section 2).
// Causal or not, zeros at the borders are computed as other inputs are, so that it costs the same.
#include <fmt/format.h>

#include <utility>

#include "core/workload/operators/part_input.hpp"
#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

/// Layer norms are over the channels of a token; group norms, as in the first layer of wav2vec 2.0, over the tokens of
/// a channel.
enum class ChannelNorm : std::uint8_t { none, layer, group };
/// A vector for each token that is added: weights, or sines that are given (Whisper).
enum class AddedPositions : std::uint8_t { none, fixed, learned };

struct Convolution1d {
  std::int64_t inputs = 0;  // channels of the input; 0: those of the stream
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  bool bias = true;
  ChannelNorm norm = ChannelNorm::none;
  bool activate = false;  // the model's activation function follows
  AddedPositions positions = AddedPositions::none;
  bool input_gradient = true;  // false for a network's first one
};

const OptionTable<Convolution1d>& convolution_1d_options() {
  static const OptionTable<Convolution1d> table{
      option("inputs", &Convolution1d::inputs, "channels of the input; 0: those of the stream", {0, 1'000'000}),
      option("kernel", &Convolution1d::kernel, "tokens of a window", {1, 65'536}, "tokens"),
      option("stride", &Convolution1d::stride, "the input has so many times the tokens", {1, 1'024}),
      option("groups", &Convolution1d::groups, "groups of channels; as many as inputs: depthwise", {1, 1'000'000}),
      option("bias", &Convolution1d::bias, "output channels have a bias"),
      choice("norm", &Convolution1d::norm, {"none", "layer", "group"},
             "a norm behind it, over the channels of each token or over the tokens of each channel"),
      option("activate", &Convolution1d::activate, "the model's activation function follows, without a gate"),
      choice("positions", &Convolution1d::positions, {"none", "fixed", "learned"},
             "a vector for each token is added at last: one that is given, or a row of weights"),
      option("input_gradient", &Convolution1d::input_gradient,
             "the input needs a gradient; false for a network's first convolution, of audio"),
  };
  return table;
}

class Convolution1dPart final : public LayerPart, public ReshapesStream {
 public:
  explicit Convolution1dPart(const Convolution1d& options) : options_(options) {}

  BranchNames branch_names() const override { return {"convolution_norm", "convolution_residual", 0, 0}; }

  std::string missing_size(const Model& model) const override {
    const bool divides = inputs(model) % options_.groups == 0 && model.hidden % options_.groups == 0;
    return divides ? "" : "groups that divide its channels";
  }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t rows = (options_.bias ? 1 : 0) + (options_.norm != ChannelNorm::none ? 2 : 0) +
                              (options_.positions == AddedPositions::learned ? model.sequence : 0);
    return {0, shape(model, 1).weights() + rows * model.hidden};
  }

  /// A window that is no longer than the stride is inside the tokens of one rank; others reach over their border.
  bool shares_context() const override { return !reaches_over_border(); }

  /// Every tensor-parallel rank has it whole.
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }

  PartFormulas formulas(const Model&) const override {
    const std::string weights = fmt::format("hidden * {} * kernel / groups", options_.inputs > 0 ? "inputs" : "hidden");
    return {fmt::format("{}{}{}{}", weights, options_.bias ? " + hidden" : "",
                        options_.norm != ChannelNorm::none ? " + 2 * hidden" : "",
                        options_.positions == AddedPositions::learned ? " + sequence * hidden" : ""),
            "", "2 * sequence * " + weights};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(convolution_on(on));
    const std::int64_t elements = on.shapes.sp_region_tokens * on.shapes.hidden;
    if (options_.norm == ChannelNorm::layer)
      operators.push_back(elementwise("channel_norm", elements, 4, 6, 2 * elements));
    if (options_.norm == ChannelNorm::group)
      operators.push_back(batch_norm(
          on.shapes, {.name = "group_norm", .channels = on.shapes.hidden, .positions = positions_on(on.shapes)}));
    if (options_.activate) operators.push_back(elementwise("convolution_activation", elements, 4, 6, 2 * elements));
    if (options_.positions != AddedPositions::none)
      operators.push_back(
          elementwise("position_embedding", elements, 6, options_.positions == AddedPositions::learned ? 10 : 0, 0));
  }

  /// The gradient of the input.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return options_.input_gradient ? input_bytes(on) : 0;
  }

  PartInput input(const PartOnRank& on) const override { return {input_bytes(on), input_bytes(on)}; }

 private:
  std::int64_t inputs(const Model& model) const { return options_.inputs > 0 ? options_.inputs : model.hidden; }
  bool reaches_over_border() const { return options_.kernel > options_.stride; }

  /// Tokens that a rank delivers: under sequence parallelism its own, unless it needs all tokens for its windows.
  std::int64_t positions_on(const RankShapes& shapes) const {
    return reaches_over_border() || options_.norm == ChannelNorm::group ? shapes.tokens : shapes.sp_region_tokens;
  }

  ConvolutionShape shape(const Model& model, std::int64_t positions) const {
    return {"convolution_1d", inputs(model), model.hidden,  options_.kernel,         options_.stride,
            options_.groups,  positions,     options_.bias, options_.input_gradient, true};
  }

  std::int64_t input_bytes(const PartOnRank& on) const {
    const ConvolutionShape each = shape(on.model, positions_on(on.shapes));
    return 2 * each.inputs * each.input_positions();
  }

  /// Ranks that share out the tokens gather those of the input, unless it is audio, which all have, and the gradients
  /// of the output, and compute all of it. The gathered input is what they save.
  Operator convolution_on(const PartOnRank& on) const {
    const ConvolutionShape each = shape(on.model, positions_on(on.shapes));
    Operator result = convolution(on.shapes, each);
    if (each.positions == on.shapes.sp_region_tokens) return result;
    const auto gather_before = [&](OpList& ops, std::int64_t bytes) {
      OpList gathered;
      block_on(gathered, result.name, collective::Kind::all_gather, bytes);
      ops.insert(ops.begin(), gathered.begin(), gathered.end());
    };
    if (options_.input_gradient) gather_before(result.forward, 2 * each.inputs * each.input_positions());
    gather_before(result.backward, 2 * each.outputs * each.positions);
    return result;
  }

  Convolution1d options_;
};

}  // namespace

PartType convolution_1d_type() {
  return {"convolution_1d",
          "a convolution over the tokens of a sample",
          convolution_1d_options().infos(),
          make_part<Convolution1dPart, convolution_1d_options>,
          {},
          alone_on_stream()};
}

}  // namespace manyworlds::core::workload
