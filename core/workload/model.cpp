// The option table of a model's dimensions.
#include "core/workload/model.hpp"

namespace manyworlds::core::workload {

const OptionTable<Model>& model_options() {
  static const OptionTable<Model> table{
      option("layers", &Model::layers, "transformer layers", {1, 10'000}),
      option("hidden", &Model::hidden, "width of the residual stream", {1, 1'000'000}),
      option("heads", &Model::heads, "attention heads", {1, 10'000}),
      option("kv_heads", &Model::kv_heads, "key and value heads (grouped-query attention); 0: as many as heads",
             {0, 10'000}),
      option("head_dim", &Model::head_dim, "width of an attention head; 0: hidden / heads", {0, 65'536}),
      option("ffn_hidden", &Model::ffn_hidden, "width of the feed-forward layer; 0: 4 x hidden", {0, 10'000'000}),
      option("vocabulary", &Model::vocabulary,
             "tokens of the vocabulary; the table is padded to a multiple of 128 x tp", {1, 10'000'000}),
      option("sequence", &Model::sequence, "tokens of one sample", {1, 16'777'216}, "tokens"),
      choice("norm", &Model::norm, {"layer_norm", "rms_norm"}, "normalisation"),
      choice("activation", &Model::activation, {"gelu", "swiglu"}, "feed-forward activation; swiglu has a gate matrix"),
      choice("position", &Model::position, {"learned", "rotary"}, "position encoding"),
      option("tied_embeddings", &Model::tied_embeddings, "the output layer shares the embedding's weights"),
      option("biases", &Model::biases, "linear layers carry a bias"),
      option("dropout", &Model::dropout, "dropout masks are kept for the backward pass"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
