// The end of a diffusion transformer (Peebles and Xie 2023, "Scalable Diffusion Models with Transformers", section 3.2,
// transformer decoder): a modulated norm, a linear layer to the numbers of each patch, and the mean squared error.
// Every tensor-parallel rank has it whole.
#include "core/workload/diffusion/modulated_norm.hpp"
#include "core/workload/diffusion/sample_vectors.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

struct DenoisingHead {
  std::int64_t outputs = 0;  // numbers of a patch
  bool table = false;        // modulation is a table, as ModulationVectors::table
};

const OptionTable<DenoisingHead>& denoising_head_options() {
  static const OptionTable<DenoisingHead> table{
      option("outputs", &DenoisingHead::outputs, "numbers of a patch", {1, 10'000'000}),
      option("table", &DenoisingHead::table, "a table is added to the vector of the sample"),
  };
  return table;
}

class DenoisingHeadPart final : public LayerPart {
 public:
  explicit DenoisingHeadPart(const DenoisingHead& options) : options_(options) {}

  BranchNames branch_names() const override { return {"final_norm", "final_residual", 0, 0}; }
  std::string missing_size(const Model&) const override { return options_.outputs == 0 ? "outputs" : ""; }
  PartParameters parameters(const Model& model) const override {
    return {0, modulation_parameters(vectors(), model.hidden) + options_.outputs * (model.hidden + 1)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    const std::string modulation = options_.table ? "2 * hidden" : "2 * hidden * (hidden + 1)";
    return {modulation + " + outputs * (hidden + 1)", "",
            std::string("2 * sequence * hidden * outputs") + (options_.table ? "" : " + 4 * hidden * hidden")};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    add_modulation(operators, shapes, vectors(), 1);
    add_modulated_norm(operators, "final_norm", on.model, shapes, false);
    operators.push_back(replicated_linear(shapes, {"patch_output", shapes.hidden, options_.outputs, true}));
    operators.back().backward.push_back(
        weight_gradient_kernel(compute::memory_bound("bias_gradient", 2 * shapes.sp_region_tokens * options_.outputs)));
    // Both sides of the difference are cast to fp32 and saved; it is squared and added up, backward multiplied and
    // cast.
    const std::int64_t elements = shapes.sp_region_tokens * options_.outputs;
    operators.push_back(chain("squared_error", elements, {6, 6, 8}, {12, 6}, 8 * elements));
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  ModulationVectors vectors() const { return {2, options_.table}; }

  DenoisingHead options_;
};

}  // namespace

PartType denoising_head_type() {
  return {"denoising_head",
          "a modulated norm, a linear layer to patches, and their squared error",
          denoising_head_options().infos(),
          make_part<DenoisingHeadPart, denoising_head_options>,
          {{"outputs", std::int64_t{64}}}};
}

}  // namespace manyworlds::core::workload
