// The option table of a model's dimensions.
#include "core/workload/model/model.hpp"

#include "core/workload/model/fine_tuning.hpp"

namespace manyworlds::core::workload {

namespace {

/// Returns the row of a set of weights whose default are all of them, so that none can be told from it.
OptionTable<Model>::Row lora_weights_row() {
  OptionTable<Model>::Row row = flag_list(
      "lora_weights", &Model::lora_weights, lora_weight_names(),
      "linear layers of attention and feed-forward networks that have such a pair, by default the first four, "
      "or projections in them that have one each; none: no pair");
  row.set = [listed = row.set](Model& model, const OptionValue& value) {
    listed(model, value);
    if (model.lora_weights == 0)
      model.lora_weights = kNoLoraWeights;
    else if (model.lora_weights == kAllLoraWeights)
      model.lora_weights = 0;
  };
  row.get = [listed = row.get](const Model& model) {
    Model with_bits = model;
    if (with_bits.lora_weights == 0) with_bits.lora_weights = kAllLoraWeights;
    return listed(with_bits);
  };
  return row;
}

}  // namespace

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
      choice("activation", &Model::activation, {"gelu", "swiglu", "geglu", "relu", "squared_relu"},
             "feed-forward activation; swiglu and geglu have a gate matrix"),
      choice("position", &Model::position, {"learned", "rotary", "none"}, "position encoding"),
      option("tied_embeddings", &Model::tied_embeddings, "the output layer shares the embedding's weights"),
      option("biases", &Model::biases, "linear layers carry a bias"),
      option("dropout", &Model::dropout, "dropout masks are saved for the backward pass"),
      option("query_key_norm", &Model::query_key_norm, "the heads of queries and keys are normalised"),
      option("experts", &Model::experts, "feed-forward networks of a layer that share its tokens; 0: dense",
             {0, 100'000}),
      option("experts_per_token", &Model::experts_per_token, "experts that a token goes to", {1, 1'000}),
      option("expert_groups", &Model::expert_groups,
             "equal groups of consecutive experts, among which the router chooses first", {1, 10'000}),
      option("groups_per_token", &Model::groups_per_token,
             "groups that a token's experts lie in at most (node-limited routing); 0: all", {0, 10'000}),
      option("expert_ffn_hidden", &Model::expert_ffn_hidden, "width of an expert; 0: as ffn_hidden", {0, 10'000'000}),
      option("shared_ffn_hidden", &Model::shared_ffn_hidden, "width of the expert that every token visits; 0: none",
             {0, 10'000'000}),
      option("dense_layers", &Model::dense_layers,
             "the first layers, which have one feed-forward network of ffn_hidden instead of experts", {0, 10'000}),
      choice("attention", &Model::attention, {"multi_head", "latent"},
             "latent: queries, keys and values are made from narrow vectors (DeepSeek-V2)"),
      option("query_rank", &Model::query_rank, "latent attention: width of the compressed query; 0: not compressed",
             {0, 1'000'000}),
      option("kv_rank", &Model::kv_rank, "latent attention: width of the compressed keys and values", {0, 1'000'000}),
      option("rotary_dim", &Model::rotary_dim, "latent attention: rotary part of a query and key, beside head_dim",
             {0, 65'536}),
      option("value_dim", &Model::value_dim, "latent attention: width of a value; 0: head_dim", {0, 65'536}),
      option("window", &Model::window, "tokens that attention looks back where it has a window; 0: all",
             {0, 16'777'216}, "tokens"),
      option("window_every", &Model::window_every, "one layer in so many, from the first on, has the window",
             {1, 10'000}),
      option("mtp_layers", &Model::mtp_layers,
             "layers behind the model that predict one token further each (multi-token prediction); 0: none", {0, 100}),
      option("frozen", &Model::frozen,
             "weights are not trained: they have no gradients and no optimizer, and the linear layers save no inputs"),
      option("lora_rank", &Model::lora_rank,
             "rank of the pairs of matrices that are trained beside frozen linear layers (LoRA); 0: there are none",
             {0, 100'000}),
      lora_weights_row(),
      option("lora_magnitudes", &Model::lora_magnitudes,
             "the norm of each output's weights is trained as well, beside the direction that the pair changes (DoRA)"),
      choice("frozen_weights", &Model::frozen_weights, {"bf16", "nf4"},
             "what the weights of frozen linear layers are kept in: 16 bits, or 4 with constants by block, which are "
             "written in 16 bits before every GEMM (QLoRA)"),
      choice("inference", &Model::inference, {"none", "scoring", "generation"},
             "a step is a forward pass alone: scoring: of all tokens, which get log-probabilities; generation: of "
             "`sequence` new tokens of each sample, whose last one gets logits, with a cache of keys and values"),
      option("cached_tokens", &Model::cached_tokens,
             "generation: tokens of each sample before the new ones, whose keys and values are cached", {0, 16'777'216},
             "tokens"),
      option(
          "architecture", &Model::architecture_text,
          "blocks of parts, and which of them each layer is, where layers are not attention and a feed-forward network "
          "or experts",
          {}, "structure"),
      option("teacher", &Model::teacher_text,
             "distillation: the frozen model whose output distribution this one learns, a name of the catalog, or "
             "options of a model, of which those that are not given are this model's; none: there is none",
             {}, "structure"),
  };
  return table;
}

}  // namespace manyworlds::core::workload
