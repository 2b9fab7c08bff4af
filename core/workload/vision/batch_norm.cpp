// Batch normalisation (Ioffe and Szegedy 2015), of the samples of a rank or, synchronised, of all replicas.
#include "core/workload/vision/vision_parts.hpp"

namespace manyworlds::core::workload {
namespace {

struct BatchNorm {
  bool synchronised = false;
  bool activate = false;
  bool summed_before = false;
};

const OptionTable<BatchNorm>& batch_norm_options() {
  static const OptionTable<BatchNorm> table{
      option("synchronised", &BatchNorm::synchronised, "replicas share mean and variance"),
      option("activate", &BatchNorm::activate, "a ReLU follows"),
      option("summed_before", &BatchNorm::summed_before, "the convolution before it takes its statistics"),
  };
  return table;
}

class BatchNormPart final : public LayerPart {
 public:
  explicit BatchNormPart(const BatchNorm& options) : options_(options) {}

  BranchNames branch_names() const override { return kVisionNames; }
  std::string missing_size(const Model&) const override { return ""; }
  /// A scale and a shift; running statistics are no parameters.
  PartParameters parameters(const Model& model) const override { return {0, 2 * model.hidden}; }
  bool shares_context() const override { return false; }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return undivided(); }
  PartFormulas formulas(const Model&) const override { return {"2 * hidden", "", "0"}; }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    operators.push_back(batch_norm(on.shapes, {.name = "batch_norm",
                                               .channels = on.shapes.hidden,
                                               .positions = on.shapes.tokens,
                                               .activate = options_.activate,
                                               .summed_before = options_.summed_before,
                                               .replicas = options_.synchronised ? on.strategy.shards() : 1}));
  }

  std::int64_t working_bytes(const PartOnRank& on) const override { return on.shapes.hidden_bytes(); }

 private:
  BatchNorm options_;
};

}  // namespace

PartType batch_norm_type() {
  return {
      "batch_norm", "batch normalisation", batch_norm_options().infos(), make_part<BatchNormPart, batch_norm_options>,
      {},           alone_on_stream()};
}

}  // namespace manyworlds::core::workload
