#include "core/workload/parts/feed_forward.hpp"

#include <fmt/format.h>

#include "core/workload/model/fine_tuning.hpp"
#include "core/workload/operators/feed_forward_network.hpp"

namespace manyworlds::core::workload {
namespace {

struct FeedForwardOptions {
  std::int64_t inputs = 0;  // width of the input; 0: that of the stream
};

const OptionTable<FeedForwardOptions>& feed_forward_options() {
  static const OptionTable<FeedForwardOptions> table{
      option("inputs", &FeedForwardOptions::inputs,
             "width of the input, as of a projector behind another network; 0: that of the stream", {0, 10'000'000}),
  };
  return table;
}

class FeedForward final : public LayerPart {
 public:
  explicit FeedForward(const FeedForwardOptions& options) : options_(options) {}

  BranchNames branch_names() const override {
    return {"mlp_norm", "mlp_residual", recompute::mlp_norm, offload::mlp_norm};
  }
  Modules data_part() const override { return data_part::feed_forward; }

  std::string missing_size(const Model&) const override { return ""; }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t wider = options_.inputs > 0 ? options_.inputs - model.hidden : 0;
    return {feed_forward_parameters(model, model.ffn()) + wider * model.up_width(model.ffn()),
            model.biases ? model.hidden : 0};
  }

  PartParameters lora_parameters(const Model& model) const override {
    const std::int64_t inputs = options_.inputs > 0 ? options_.inputs : model.hidden;
    std::int64_t halves = 0;
    if (model.is_gated())
      for (const Modules half : {lora_weight::linear_fc1_gate, lora_weight::linear_fc1_up})
        halves += pair_parameters(model, half, inputs, model.ffn());
    return {halves + pair_parameters(model, lora_weight::linear_fc1, inputs, model.up_width(model.ffn())) +
                pair_parameters(model, lora_weight::linear_fc2, model.ffn(), model.hidden) +
                magnitude_parameters(model, lora_weight::linear_fc1, model.up_width(model.ffn())),
            magnitude_parameters(model, lora_weight::linear_fc2, model.hidden)};
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override { return {{"ffn_hidden", model.ffn()}}; }

  PartFormulas formulas(const Model& model) const override {
    const std::string width = options_.inputs > 0 ? "inputs" : "hidden",
                      matrices = fmt::format("ffn_hidden * ({}{} + hidden)", model.is_gated() ? "2 * " : "", width);
    const char* biases = !model.biases      ? ""
                         : model.is_gated() ? " + 2 * ffn_hidden + hidden"
                                            : " + ffn_hidden + hidden";
    return {matrices + biases, "", "2 * sequence * " + matrices};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    RankShapes shapes = on.shapes;
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    add_feed_forward_network(operators, on.model, shapes, on.dtype(),
                             {"mlp_up", "mlp_down", options_.inputs > 0 ? options_.inputs : shapes.hidden});
  }

  /// Gradients before and after the activation function, the latter in the place of the function's output.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    RankShapes shapes = on.shapes;
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    return 2 * shapes.tokens * on.model.up_width(shapes.ffn);
  }

  std::optional<std::int64_t> cached_bytes(const PartOnRank&) const override { return 0; }

 private:
  FeedForwardOptions options_;
};

}  // namespace

PartType feed_forward_type() {
  return {"mlp",
          "a feed-forward network",
          feed_forward_options().infos(),
          make_part<FeedForward, feed_forward_options>,
          {}};
}

const LayerPart& feed_forward_part() {
  static const FeedForward part{FeedForwardOptions{}};
  return part;
}

}  // namespace manyworlds::core::workload
