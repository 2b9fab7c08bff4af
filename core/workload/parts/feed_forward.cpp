#include "core/workload/parts/feed_forward.hpp"

#include <fmt/format.h>

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

  std::string missing_size(const Model&) const override { return ""; }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t wider = options_.inputs > 0 ? options_.inputs - model.hidden : 0;
    return {feed_forward_parameters(model, model.ffn()) + wider * model.up_width(model.ffn()),
            model.biases ? model.hidden : 0};
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
    const bool biases = on.model.biases;
    Linear up{"mlp_up", options_.inputs > 0 ? options_.inputs : shapes.hidden, on.model.up_width(shapes.ffn), biases,
              on.dtype()};
    if (on.model.is_gated() && !shapes.stack.projection_fusion) up.parts = {shapes.ffn, shapes.ffn};
    const std::size_t first = operators.size();
    operators.push_back(column_parallel(shapes, up));
    operators.push_back(activation(on.model, shapes, shapes.tokens * shapes.ffn));
    operators.push_back(row_parallel(shapes, {"mlp_down", shapes.ffn, shapes.hidden, biases, on.dtype()}));
    Operator* const mlp = &operators[first];
    mark_input_from(mlp[0], recompute::mlp_norm);
    mark_input_from(mlp[1], recompute::mlp);
    mark_input_from(mlp[2], recompute::mlp | recompute::mlp_act);
    for (std::size_t i = 0; i < 3; ++i) {
      mlp[i].in_modules = recompute::mlp | (i == 1 ? recompute::mlp_act : 0);
      mlp[i].offload_module = offload::mlp_fc1 << i;
    }
  }

  /// Gradients before and after the activation function, the latter in the place of the function's output.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    RankShapes shapes = on.shapes;
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    return 2 * shapes.tokens * on.model.up_width(shapes.ffn);
  }

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
