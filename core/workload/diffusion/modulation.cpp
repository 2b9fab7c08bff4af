// What makes the vectors that modulate a diffusion transformer's layers: the conditioning of a sample, once for the
// network, and of every layer a linear layer of it (Peebles and Xie 2023, section 3.2) or a table (Wan Team 2025,
// "Wan", section 4.2).
#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/workload/diffusion/sample_vectors.hpp"
#include "core/workload/operators/part.hpp"

namespace manyworlds::core::workload {
namespace {

struct Conditioning {
  std::int64_t time = 256;          // sines and cosines of the time step
  std::int64_t guidance = 0;        // of the scale of guidance; 0: none
  std::int64_t pooled = 0;          // width of a vector of the text; 0: none
  std::int64_t classes = 0;         // rows of a table of classes; 0: none
  std::int64_t shared_vectors = 0;  // vectors that a linear layer makes for the tables of all layers; 0: none
};

const OptionTable<Conditioning>& conditioning_options() {
  static const OptionTable<Conditioning> table{
      option("time", &Conditioning::time, "sines and cosines that encode the time step", {1, 1'000'000}),
      option("guidance", &Conditioning::guidance, "sines and cosines that encode the scale of guidance; 0: none",
             {0, 1'000'000}),
      option("pooled", &Conditioning::pooled, "width of a vector of the text, which is given; 0: none", {0, 1'000'000}),
      option("classes", &Conditioning::classes, "rows of a table of classes; 0: none", {0, 100'000'000}),
      option("shared_vectors", &Conditioning::shared_vectors,
             "vectors of modulation that a linear layer makes, to which every layer adds a table; 0: none", {0, 64}),
  };
  return table;
}

const OptionTable<ModulationVectors>& modulation_options() {
  static const OptionTable<ModulationVectors> table{
      option("vectors", &ModulationVectors::count, "shifts, scales and gates: three for each part that they modulate",
             {1, 64}),
      option("table", &ModulationVectors::table, "a table is added to the vectors that all layers share"),
  };
  return table;
}

constexpr BranchNames kNames{"modulation_norm", "modulation_residual", 0, 0};

/// Of each encoded number or given vector two linear layers with a SiLU between them, all of which are added up.
class ConditioningPart final : public LayerPart {
 public:
  explicit ConditioningPart(const Conditioning& options) : options_(options) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override {
    const std::int64_t hidden = model.hidden;
    std::int64_t sum = hidden * (options_.classes + options_.shared_vectors * (hidden + 1));
    for (const std::int64_t width : widths())
      if (width > 0) sum += hidden * (width + 1) + hidden * (hidden + 1);
    return {0, sum};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model&) const override {
    std::string parameters = "hidden * (classes + shared_vectors * (hidden + 1))",
                flops = "2 * hidden * hidden * shared_vectors";
    for (const auto& [name, width] :
         {std::pair{"time", options_.time}, {"guidance", options_.guidance}, {"pooled", options_.pooled}})
      if (width > 0)
        parameters += fmt::format(" + hidden * ({} + hidden + 2)", name),
            flops += fmt::format(" + 2 * hidden * ({} + hidden)", name);
    return {parameters, "", flops};
  }

  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::int64_t hidden = shapes.hidden, elements = shapes.samples * hidden;
    for (const std::int64_t width : widths()) {
      if (width == 0) continue;
      operators.push_back(sample_linear(shapes, "vector_in", width, hidden, false));
      operators.push_back(sample_silu(shapes, hidden));
      operators.push_back(sample_linear(shapes, "vector_out", hidden, hidden));
      operators.push_back(elementwise("vector_sum", elements, 6, 0, 0));
    }
    if (options_.classes > 0) operators.push_back(elementwise("class_lookup", elements, 6, 10, 0));
    if (options_.shared_vectors > 0) {
      operators.push_back(sample_silu(shapes, hidden));
      operators.push_back(sample_linear(shapes, "shared_vectors", hidden, options_.shared_vectors * hidden));
    }
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  std::array<std::int64_t, 3> widths() const { return {options_.time, options_.guidance, options_.pooled}; }

  Conditioning options_;
};

class ModulationPart final : public LayerPart {
 public:
  explicit ModulationPart(const ModulationVectors& vectors) : vectors_(vectors) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return vectors_.count == 0 ? "vectors" : ""; }
  PartParameters parameters(const Model& model) const override {
    const std::int64_t count = modulation_parameters(vectors_, model.hidden);
    return vectors_.table ? PartParameters{0, count} : PartParameters{count, 0};
  }
  std::vector<ShardedSize> sharded_sizes(const Model& model) const override {
    if (vectors_.table) return {};
    return {{"vectors x hidden", vectors_.count * model.hidden}};
  }
  PartFormulas formulas(const Model&) const override {
    if (vectors_.table) return {"vectors * hidden", "", "0"};
    return {"vectors * hidden * (hidden + 1)", "", "2 * vectors * hidden * hidden"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    add_modulation(operators, on.shapes, vectors_, on.shapes.tensor_parallel);
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  ModulationVectors vectors_;
};

}  // namespace

PartType conditioning_type() {
  return {"conditioning",
          "the vector of a sample: its time step, guidance, text or class",
          conditioning_options().infos(),
          make_part<ConditioningPart, conditioning_options>,
          {}};
}

PartType modulation_type() {
  return {"modulation",
          "shifts, scales and gates of a layer, from the vector of a sample",
          modulation_options().infos(),
          make_part<ModulationPart, modulation_options>,
          {{"vectors", std::int64_t{6}}}};
}

}  // namespace manyworlds::core::workload
