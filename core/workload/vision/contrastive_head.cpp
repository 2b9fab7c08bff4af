// The end of a tower that learns which texts belong to which images (Radford et al. 2021, CLIP, section 2.3): one token
// of each sample is projected, and projections of all samples of both towers are compared, by two softmaxes over each
// other. Replicas gather the projections of all; each one computes the rows of its own samples (open_clip, loss.py,
// gather_features() and ClipLoss with local_loss and gather_with_grad).
#include <fmt/format.h>

#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

using collective::Kind;
using compute::gemm;
using compute::weight_gradient;

struct ContrastiveHead {
  std::int64_t width = 0;
  bool loss = true;
};

const OptionTable<ContrastiveHead>& contrastive_head_options() {
  static const OptionTable<ContrastiveHead> table{
      option("width", &ContrastiveHead::width, "width of a projection", {1, 1'000'000}),
      option("loss", &ContrastiveHead::loss, "projections of both towers are compared behind; of one of two towers"),
  };
  return table;
}

class ContrastiveHeadPart final : public LayerPart {
 public:
  explicit ContrastiveHeadPart(const ContrastiveHead& options) : options_(options) {}

  BranchNames branch_names() const override { return {"projection_norm", "projection_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return options_.width == 0 ? "width" : ""; }
  /// The projection has no bias; the loss has the scale of its logits.
  PartParameters parameters(const Model& model) const override {
    return {0, model.hidden * options_.width + (options_.loss ? 1 : 0)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  /// FLOPs of the loss are those of one sample alone, with itself.
  PartFormulas formulas(const Model&) const override {
    return {options_.loss ? "hidden * width + 1" : "hidden * width", "",
            options_.loss ? "2 * hidden * width + 4 * width" : "2 * hidden * width"};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::int64_t samples = on.shapes.samples, in = on.shapes.hidden, out = options_.width;
    Operator projection;
    projection.name = "sample_projection";
    projection.saved_bytes = 2 * samples * in;
    projection.weight_gradient_input_bytes = 2 * samples * (in + out);
    projection.forward.push_back(kernel(gemm(projection.name, samples, out, in)));
    projection.backward.push_back(kernel(gemm(projection.name, samples, in, out)));
    add_weight_gradient(projection.backward, on.shapes, weight_gradient(projection.name, out, in, samples));
    operators.push_back(projection);
    operators.push_back(elementwise("projection_norm", samples * out, 4, 6, 2 * samples * out));
    if (options_.loss) operators.push_back(comparison(on));
  }

  /// Logits of both softmaxes in fp32, and their gradients.
  std::int64_t working_bytes(const PartOnRank& on) const override {
    return options_.loss ? 2 * 4 * 2 * on.shapes.samples * all_samples(on) : 0;
  }

 private:
  static std::int64_t all_samples(const PartOnRank& on) { return on.shapes.samples * on.strategy.shards(); }

  /// Images of this rank with all texts, and texts of this rank with all images.
  Operator comparison(const PartOnRank& on) const {
    const std::int64_t own = on.shapes.samples, all = all_samples(on), width = options_.width, logits = 2 * own * all;
    const std::int64_t gathered = 2 * 2 * all * width;  // projections of both towers, in 16 bits
    Operator result;
    result.name = "contrastive_loss";
    result.saved_bytes = gathered + 4 * logits;
    if (all > own) block_on(result.forward, "contrastive_gather", Kind::all_gather, gathered, Role::data);
    for (int tower = 0; tower < 2; ++tower) {
      result.forward.push_back(kernel(gemm("contrastive_logits", own, all, width)));
      result.backward.push_back(kernel(gemm("contrastive_gradient", own, width, all)));
      result.backward.push_back(kernel(gemm("contrastive_gradient", all, width, own)));
    }
    result.forward.push_back(kernel(compute::memory_bound("contrastive_softmax", 14 * logits)));
    result.backward.insert(result.backward.begin(), kernel(compute::memory_bound("contrastive_softmax", 6 * logits)));
    if (all > own) block_on(result.backward, "contrastive_scatter", Kind::reduce_scatter, gathered, Role::data);
    return result;
  }

  ContrastiveHead options_;
};

}  // namespace

PartType contrastive_head_type() {
  return {"contrastive_head",
          "projections of samples, and the loss that compares those of two towers",
          contrastive_head_options().infos(),
          make_part<ContrastiveHeadPart, contrastive_head_options>,
          {{"width", std::int64_t{64}}},
          {{"norms", "none"}, {"residual", false}}};
}

}  // namespace manyworlds::core::workload
