// The dimensions of a model. By themselves they describe a decoder-only transformer, GPT style (Brown et al. 2020) or
// Llama style (Touvron et al. 2023); with an architecture they are the defaults of the parts that it lists.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/options.hpp"
#include "core/workload/distributions/expert_routing.hpp"
#include "core/workload/model/modules.hpp"

namespace manyworlds::core::workload {

enum class Norm : std::uint8_t { layer_norm, rms_norm };
enum class Activation : std::uint8_t { gelu, swiglu, geglu, relu, squared_relu };
enum class Position : std::uint8_t { learned, rotary, none };
enum class Attention : std::uint8_t { multi_head, latent };
/// Whether a step is a forward pass alone: one that scores all tokens (their log-probabilities under the model), or one
/// that generates, which keeps keys and values in a cache and has the logits of each sample's last token.
enum class Inference : std::uint8_t { none, scoring, generation };
/// What weights that are not trained are kept in: bfloat16, or 4 bits with scales by block (Dettmers et al. 2023,
/// QLoRA).
enum class WeightFormat : std::uint8_t { bf16, nf4 };

/// The properties in which the layers of a model differ.
struct LayerKind {
  bool experts = false;     // the feed-forward part is a mixture of experts
  bool windowed = false;    // attention looks back `window` tokens
  std::uint32_t load = 0;   // index into Routing::loads, if experts get unequal numbers of tokens
  std::uint32_t block = 0;  // block of the model's architecture, counted from 1; 0: the model has none
  auto operator<=>(const LayerKind&) const = default;
};

struct Architecture;
struct Documents;

struct Model {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    // 0: as many as heads
  std::int64_t head_dim = 0;    // 0: hidden / heads
  std::int64_t ffn_hidden = 0;  // 0: 4 x hidden
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 2048;  // tokens of one sample
  Norm norm = Norm::layer_norm;
  Activation activation = Activation::gelu;
  Position position = Position::learned;
  bool tied_embeddings = true;  // the output layer shares the embedding's weights
  bool biases = true;           // linear layers carry a bias
  bool dropout = true;          // dropout masks are saved for the backward pass
  bool query_key_norm = false;  // heads of queries and keys are normalised (Qwen3)

  // Mixture of experts (Lepikhin et al. 2021, GShard): each token goes to a few of `experts` feed-forward networks.
  std::int64_t experts = 0;                          // 0: dense
  std::int64_t experts_per_token = 1;                // the router's top-k
  std::int64_t expert_groups = 1;                    // the router first chooses among so many groups of experts
  std::int64_t groups_per_token = 0;                 // groups that a token's experts are in at most; 0: all
  std::int64_t expert_ffn_hidden = 0;                // 0: as ffn_hidden
  std::int64_t shared_ffn_hidden = 0;                // width of the shared expert that every token visits; 0: none
  std::int64_t dense_layers = 0;                     // first layers, which have one feed-forward network of ffn_hidden
  std::shared_ptr<const Routing> routing = nullptr;  // null: balanced, all experts get the same number of tokens

  // Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1).
  Attention attention = Attention::multi_head;
  std::int64_t query_rank = 0;  // width of the compressed query; 0: the query is not compressed
  std::int64_t kv_rank = 0;     // width of the compressed keys and values
  std::int64_t rotary_dim = 0;  // rotary width of a head, beside head_dim
  std::int64_t value_dim = 0;   // value width of a head; 0: head_dim

  std::int64_t window = 0;        // tokens that an attention layer looks back; 0: all
  std::int64_t window_every = 1;  // one layer in so many has the window, the others see all tokens

  std::int64_t mtp_layers = 0;  // layers behind the model that predict one token further each; 0: none

  // Fine-tuning: weights that are not trained, and pairs of low rank beside them that are (Hu et al. 2021, LoRA).
  bool frozen = false;
  std::int64_t lora_rank = 0;    // 0: none
  Modules lora_weights = 0;      // a set of workload::lora_weight; none: all
  bool lora_magnitudes = false;  // the norms of weights are trained beside their directions (Liu et al. 2024, DoRA)
  WeightFormat frozen_weights = WeightFormat::bf16;

  Inference inference = Inference::none;
  std::int64_t cached_tokens = 0;  // generation: those of each sample before these, whose keys and values are cached

  // Distillation (Hinton et al. 2015): a frozen model whose output distribution this one learns.
  std::string teacher_text;                        // its options as JSON; empty: there is none
  std::shared_ptr<const Model> teacher = nullptr;  // made of it

  std::shared_ptr<const Documents> documents = nullptr;  // lengths of those that samples are packed of; null: one each

  std::string architecture_text;  // blocks and layers as JSON; empty: the transformer that these options describe
  std::shared_ptr<const Architecture> architecture = nullptr;  // made of it; null if it is empty

  std::int64_t kv() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t ffn() const { return ffn_hidden > 0 ? ffn_hidden : 4 * hidden; }
  std::int64_t head_width() const { return head_dim > 0 || heads == 0 ? head_dim : hidden / heads; }
  std::int64_t expert_ffn() const { return expert_ffn_hidden > 0 ? expert_ffn_hidden : ffn(); }
  bool has_experts() const { return experts > 0; }
  /// Whether feed-forward networks have a gate: a second matrix as the first one, whose outputs are multiplied.
  bool is_gated() const { return activation == Activation::swiglu || activation == Activation::geglu; }
  /// Columns of the first matrix, or matrices, of a feed-forward network of `width`.
  std::int64_t up_width(std::int64_t width) const { return is_gated() ? 2 * width : width; }
  bool is_latent() const { return attention == Attention::latent; }
  /// Width of a head's queries and keys, and of its values.
  std::int64_t key_width() const { return head_width() + (is_latent() ? rotary_dim : 0); }
  std::int64_t value_width() const { return is_latent() && value_dim > 0 ? value_dim : head_width(); }
  /// Returns the kind of layer `index`, counted from the embedding.
  LayerKind layer_kind(std::int64_t index) const {
    if (architecture) return described_kind(index);
    const bool routed = has_experts() && index >= dense_layers;
    return {routed, window > 0 && index % window_every == 0,
            routed && routing ? routing->load_by_layer[static_cast<std::size_t>(index)] : 0};
  }

 private:
  LayerKind described_kind(std::int64_t index) const;
};

const OptionTable<Model>& model_options();

}  // namespace manyworlds::core::workload
