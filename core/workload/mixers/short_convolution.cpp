// A short convolution between two gates in the place of attention (Liquid AI 2025, LFM2; huggingface/transformers,
// modeling_lfm2.py, Lfm2ShortConv): y = C conv(B x) of three projections of the stream, and a matrix out. Tensor
// parallelism shards channels. The last tokens of a context-parallel rank's block would have to pass to the next rank.
#include <fmt/format.h>

#include "core/workload/mixers/mixer_parts.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;
using compute::memory_bound;

struct ShortConvolution {
  std::int64_t convolution = 3;  // tokens that the convolution sees
};

const OptionTable<ShortConvolution>& short_convolution_options() {
  static const OptionTable<ShortConvolution> table{
      option("convolution", &ShortConvolution::convolution, "tokens that the convolution sees", {1, 1'024}),
  };
  return table;
}

class ShortConvolutionPart final : public LayerPart {
 public:
  explicit ShortConvolutionPart(const ShortConvolution& mixer) : mixer_(mixer) {}

  BranchNames branch_names() const override {
    return {"mixer_norm", "mixer_residual", recompute::layernorm, offload::attn_norm};
  }
  Modules data_part() const override { return data_part::mixer; }
  std::string missing_size(const Model&) const override { return ""; }
  bool shares_context() const override { return false; }

  /// Three matrices in and one out, and the convolution of each channel; all of them with biases, or none.
  PartParameters parameters(const Model& model) const override {
    return {model.hidden * (4 * model.hidden + mixer_.convolution) + (model.biases ? 4 * model.hidden : 0),
            model.biases ? model.hidden : 0};
  }

  std::vector<ShardedSize> sharded_sizes(const Model& model) const override { return {{"channels", model.hidden}}; }

  PartFormulas formulas(const Model& model) const override {
    return {fmt::format("hidden * (4 * hidden + convolution){}", model.biases ? " + 5 * hidden" : ""), "",
            "8 * sequence * hidden * hidden"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t channels = shapes.hidden / shapes.tensor_parallel;
    operators.push_back(
        column_parallel(shapes, {"mixer_in", shapes.hidden, 3 * channels, on.model.biases, on.dtype()}));
    mark_input_from(operators.back(), recompute::layernorm);
    operators.push_back(gated_convolution(shapes.tokens * channels));
    operators.push_back(row_parallel(shapes, {"mixer_out", channels, shapes.hidden, on.model.biases, on.dtype()}));
  }

  /// Gradients of the three projections and of the convolution's output, in 16 bits.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return 2 * on.shapes.tokens * 4 * on.shapes.hidden / on.shapes.tensor_parallel;
  }

 private:
  /// Both products read two tensors and write one; backward each reads three and writes two. Saved are the three
  /// projections, and the convolution's input and output.
  static Operator gated_convolution(std::int64_t elements) {
    Operator result;
    result.name = "mixer_gated_convolution";
    result.saved_bytes = 2 * 5 * elements;
    result.forward.push_back(kernel(memory_bound("mixer_gate", 6 * elements)));
    convolve(result.forward, KernelClass::state_space, elements);
    result.forward.push_back(kernel(memory_bound("mixer_gate", 6 * elements)));
    result.backward.push_back(kernel(memory_bound("mixer_gate_gradient", 10 * elements)));
    convolve_backward(result.backward, KernelClass::state_space, elements);
    result.backward.push_back(kernel(memory_bound("mixer_gate_gradient", 10 * elements)));
    return result;
  }

  ShortConvolution mixer_;
};

}  // namespace

PartType short_convolution_type() {
  return {"short_convolution",
          "a short convolution between two gates (LFM2)",
          short_convolution_options().infos(),
          make_part<ShortConvolutionPart, short_convolution_options>,
          {}};
}

}  // namespace manyworlds::core::workload
