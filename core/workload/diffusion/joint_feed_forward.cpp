// Feed-forward networks of image and text tokens, with weights for each (MMDiT; Esser et al. 2024, section 4). Tensor
// parallelism shards both, and context parallelism divides the tokens of each.
#include <fmt/format.h>

#include <algorithm>

#include "core/workload/diffusion/token_streams.hpp"
#include "core/workload/operators/context_sizes.hpp"
#include "core/workload/operators/feed_forward_network.hpp"

namespace manyworlds::core::workload {
namespace {

class JointFeedForward final : public LayerPart, public DividesInContext {
 public:
  explicit JointFeedForward(const TokenStreams& streams) : streams_(streams) {}

  BranchNames branch_names() const override {
    return {"mlp_norm", "mlp_residual", recompute::mlp_norm, offload::mlp_norm};
  }
  std::string missing_size(const Model& model) const override { return missing_stream_size(streams_, model); }

  PartParameters parameters(const Model& model) const override {
    const std::int64_t up = model.up_width(model.ffn());
    return {2 * (model.hidden * (up + model.ffn()) + (model.biases ? up : 0)), model.biases ? 2 * model.hidden : 0};
  }

  std::string undivided_in_context(const Model&, const Strategy& strategy) const override {
    return undivided_tokens("text", streams_.text, strategy);
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    return {{"ffn_hidden", model.ffn()}, {"text", streams_.text}};
  }

  PartFormulas formulas(const Model& model) const override {
    const std::string matrices = fmt::format("{} * hidden * ffn_hidden", model.is_gated() ? 3 : 2);
    const char* biases = !model.biases      ? ""
                         : model.is_gated() ? " + 2 * ffn_hidden + hidden"
                                            : " + ffn_hidden + hidden";
    return {fmt::format("2 * ({}{})", matrices, biases), "", "2 * sequence * " + matrices};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    RankShapes shapes = on.shapes;
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    const auto add_network = [&](const RankShapes& of_stream, std::string_view up, std::string_view down) {
      add_feed_forward_network(operators, on.model, of_stream, on.dtype(), {up, down, shapes.hidden});
    };
    add_network(image_shapes(streams_, on, shapes), "mlp_up", "mlp_down");
    add_network(text_shapes(streams_, on, shapes), "text_up", "text_down");
  }

  /// Gradients before and after the activation function, of the longer stream.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    RankShapes shapes = on.shapes;
    add_feed_forward_shapes(shapes, on.model, on.strategy);
    const std::int64_t tokens =
        std::max(image_shapes(streams_, on, shapes).tokens, text_shapes(streams_, on, shapes).tokens);
    return 2 * tokens * on.model.up_width(shapes.ffn);
  }

 private:
  TokenStreams streams_;
};

}  // namespace

PartType joint_feed_forward_type() {
  return {"joint_mlp",
          "feed-forward networks of image and text tokens, with weights for each (MMDiT, Flux)",
          token_stream_options().infos(),
          make_part<JointFeedForward, token_stream_options>,
          {{"text", std::int64_t{128}}}};
}

}  // namespace manyworlds::core::workload
