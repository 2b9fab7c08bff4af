#include "core/workload/parts/embeddings.hpp"

#include "core/workload/model/fine_tuning.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::memory_bound;

const OptionTable<TokenEmbedding>& token_embedding_options() {
  static const OptionTable<TokenEmbedding> table{
      option("own_table", &TokenEmbedding::own_table, "the network has a table of its own, not the model's"),
      option("types", &TokenEmbedding::types, "kinds of segments that a token may belong to; 0: none", {0, 1'000}),
  };
  return table;
}

const OptionTable<PatchEmbedding>& patch_embedding_options() {
  static const OptionTable<PatchEmbedding> table{
      option("inputs", &PatchEmbedding::inputs, "numbers of a patch: channels x height x width x frames",
             {1, 10'000'000}),
      option("extra_tokens", &PatchEmbedding::extra_tokens, "learned tokens before the patches", {0, 10'000}),
      option("bias", &PatchEmbedding::bias, "the patches' matrix has a bias"),
      option("activate", &PatchEmbedding::activate, "the model's activation function follows"),
  };
  return table;
}

/// Parts that begin a stream have no norm before them, and nothing to be added to.
constexpr BranchNames kNames{"embedding_norm", "embedding_residual", 0, 0};

/// Leaves out the backward passes of an embedding whose weights are frozen: nothing is trained before it.
void freeze_embedding(std::vector<Operator>& operators, std::size_t first, const Model& model) {
  if (!is_frozen(model)) return;
  for (std::size_t i = first; i < operators.size(); ++i) {
    operators[i].backward.clear();
    operators[i].saved_bytes = operators[i].weight_gradient_input_bytes = 0;
  }
}

class TokenEmbeddingPart final : public LayerPart {
 public:
  explicit TokenEmbeddingPart(const TokenEmbedding& options) : options_(options) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return ""; }
  PartParameters parameters(const Model& model) const override {
    return {options_.own_table ? model.vocabulary * model.hidden : 0,
            position_parameters(model) + options_.types * model.hidden};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model& model) const override {
    std::string parameters = options_.own_table ? "vocabulary * hidden + types * hidden" : "types * hidden";
    if (model.position == Position::learned) parameters += " + sequence * hidden";
    return {parameters, "", "0"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const std::size_t first = operators.size();
    add_embedding(operators, on.model, on.shapes);
    if (options_.types > 0)
      operators.push_back(elementwise("type_embedding", on.shapes.sp_region_tokens * on.shapes.hidden, 6, 10, 0));
    freeze_embedding(operators, first, on.model);
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  TokenEmbedding options_;
};

/// Every tensor-parallel rank multiplies all patches by the whole matrix. No gradient of the patches is needed.
class PatchEmbeddingPart final : public LayerPart {
 public:
  explicit PatchEmbeddingPart(const PatchEmbedding& options) : options_(options) {}

  BranchNames branch_names() const override { return kNames; }
  std::string missing_size(const Model&) const override { return options_.inputs == 0 ? "inputs" : ""; }
  PartParameters parameters(const Model& model) const override {
    return {0, model.hidden * (options_.inputs + options_.extra_tokens + (options_.bias ? 1 : 0)) +
                   position_parameters(model)};
  }
  std::vector<ShardedSize> sharded_sizes(const Model&) const override { return {}; }
  PartFormulas formulas(const Model& model) const override {
    std::string parameters = "hidden * (inputs + extra_tokens)";
    if (options_.bias) parameters += " + hidden";
    if (model.position == Position::learned) parameters += " + sequence * hidden";
    return {parameters, "", "2 * (sequence - extra_tokens) * hidden * inputs"};
  }
  void add_operators(std::vector<Operator>& operators, const PartOnRank& on) const override {
    const RankShapes& shapes = on.shapes;
    const std::size_t first = operators.size();
    const std::int64_t patches = shapes.samples * (shapes.sequence - options_.extra_tokens);
    Operator embedding;
    embedding.name = "patch_embedding";
    embedding.saved_bytes = 2 * patches * options_.inputs;
    embedding.weight_gradient_input_bytes = embedding.saved_bytes + 2 * patches * shapes.hidden;
    embedding.forward.push_back(kernel(compute::gemm(embedding.name, patches, shapes.hidden, options_.inputs)));
    if (options_.bias)
      embedding.backward.push_back(weight_gradient_kernel(memory_bound("bias_gradient", 2 * patches * shapes.hidden)));
    add_weight_gradient(embedding.backward, shapes,
                        compute::weight_gradient(embedding.name, shapes.hidden, options_.inputs, patches));
    operators.push_back(embedding);
    if (options_.activate) operators.push_back(activation(on.model, shapes, patches * shapes.hidden));
    if (on.model.position == Position::learned)
      operators.push_back(elementwise("position_embedding", shapes.sp_region_tokens * shapes.hidden, 6, 10, 0));
    freeze_embedding(operators, first, on.model);
  }
  std::int64_t working_bytes(const PartOnRank&) const override { return 0; }

 private:
  PatchEmbedding options_;
};

}  // namespace

PartType token_embedding_type() {
  return {"token_embedding",
          "tokens at the entrance of a network",
          token_embedding_options().infos(),
          make_part<TokenEmbeddingPart, token_embedding_options>,
          {}};
}

PartType patch_embedding_type() {
  return {"patch_embedding",
          "patches of images or videos at the entrance of a network",
          patch_embedding_options().infos(),
          make_part<PatchEmbeddingPart, patch_embedding_options>,
          {{"inputs", std::int64_t{64}}}};
}

void add_embedding(std::vector<Operator>& operators, const Model& model, const RankShapes& shapes) {
  using collective::Kind;
  const std::int64_t whole = shapes.tokens * shapes.hidden, sp_elements = shapes.sp_region_tokens * shapes.hidden;
  const std::size_t first = operators.size();
  // Each rank looks up its shard of the vocabulary; the gradient adds fp32 rows (read, write) to the table's.
  Operator lookup = elementwise("embedding_lookup", whole, 4, 10, 0);
  if (shapes.tensor_parallel > 1)
    block_on(lookup.forward, lookup.name, shapes.sequence_parallel ? Kind::reduce_scatter : Kind::all_reduce,
             2 * whole);
  if (shapes.sequence_parallel) {
    OpList gathered;
    block_on(gathered, lookup.name, Kind::all_gather, 2 * whole);
    lookup.backward.insert(lookup.backward.begin(), gathered.begin(), gathered.end());
  }
  operators.push_back(lookup);
  if (model.position == Position::learned)
    operators.push_back(elementwise("position_embedding", sp_elements, 6, 10, 0));
  if (model.dropout) operators.push_back(elementwise("embedding_dropout", sp_elements, 5, 5, sp_elements));
  freeze_embedding(operators, first, model);
}

}  // namespace manyworlds::core::workload
