#include "experiments/measured/test_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/key_contents/architecture.hpp"

namespace manyworlds::experiments::measured {
namespace {

using core::workload::Activation;
using core::workload::Model;
using core::workload::Norm;
using core::workload::Position;

std::int64_t given(const import::CsvRow& row, std::string_view column, std::int64_t otherwise) {
  const auto value = row.integer(column);
  return value && *value > 0 && *value <= 1 << 20 ? *value : otherwise;
}

/// Sets the sizes of a row's GPT-like layers, with Megatron-LM's defaults of 2019 for the rest.
void set_sizes(Model& model, const import::CsvRow& row) {
  model.hidden = given(row, "hidden-size", 0), model.heads = given(row, "num-attention-heads", 0);
  model.kv_heads = given(row, "num-query-groups", 0), model.head_dim = given(row, "kv-channels", 0);
  model.ffn_hidden = given(row, "ffn-hidden-size", 0);
  model.norm = Norm::layer_norm, model.activation = Activation::gelu, model.position = Position::learned;
  model.tied_embeddings = model.biases = true;
  model.dropout = row.text("hidden-dropout") != "0.0";
}

void set_layers(Model& model, std::string text, std::int64_t layers) {
  model.layers = layers;
  model.architecture_text = std::move(text);
  model.architecture = architecture_of(model);
}

/// Returns tokens of BERT's vocabularies: the cased one of the A100 runs, and the uncased one of later runs, as the
/// bytes that Adam's moments add after the first step tell.
std::int64_t bert_tokens(const import::CsvRow& row) {
  return row.text("device").starts_with("a100") ? 28'996 : 30'522;
}

std::int64_t padded(std::int64_t tokens, const import::CsvRow& row) {
  const std::int64_t multiple = 128 * given(row, "tensor-model-parallel-size", 1);
  return (tokens + multiple - 1) / multiple * multiple;
}

/// BertModel: layers with a norm before each part, a final norm, a transform of masked words, and the tied table.
void set_bert(Model& model, const import::CsvRow& row) {
  set_sizes(model, row);
  model.sequence = given(row, "seq-length", 512);
  model.vocabulary = padded(bert_tokens(row), row);
  const std::int64_t layers = given(row, "num-layers", 24);
  set_layers(
      model,
      fmt::format("{{blocks: {{layer: [{{attention: {{causal: false}}}}, mlp], last: [{{attention: {{causal: "
                  "false}}}}, mlp, {{linear: {{activate: true, residual: false}}}}]}}, layers: [{{repeat: {}, of: "
                  "layer}}, last]}}",
                  layers - 1),
      layers);
}

/// T5Model: twelve layers of an encoder of 512 tokens and of a decoder of 128, one table of tokens and one of 512
/// positions for both; 100 tokens mask spans, and two begin and end a text.
void set_t5(Model& model, const import::CsvRow& row) {
  set_sizes(model, row);
  model.sequence = 128;
  model.vocabulary = padded(28'996 + 102, row);
  const char* layer = "{attention: {causal: false}}, mlp";
  set_layers(
      model,
      fmt::format("{{networks: {{encoder: {{sequence: 512, blocks: {{first: [{{token_embedding: {{norms: none, "
                  "residual: false}}}}, {0}], middle: [{0}], last: [{0}, {{output_norm: {{norms: none, residual: "
                  "false}}}}]}}, layers: [first, {{repeat: 10, of: middle}}, last]}}, decoder: {{blocks: {{layer: "
                  "[attention, {{cross_attention: {{keys: 512}}}}, mlp]}}, layers: [{{repeat: 12, of: "
                  "layer}}]}}}}}}",
                  layer),
      24);
}

/// MambaModel of the tests hybrid_mr: 20 mixers, 20 feed-forward networks and 4 attentions.
void set_hybrid(Model& model, const import::CsvRow& row) {
  set_sizes(model, row);
  model.sequence = given(row, "seq-length", 1'024);
  model.vocabulary = padded(50'257, row);
  model.ffn_hidden = 4 * model.hidden;
  set_layers(
      model,
      fmt::format("{{blocks: {{M: {{mamba2: {{heads: {}, head_dim: 64, state: 128, groups: 8}}}}, '*': attention, "
                  "'-': mlp}}, layers: 'M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-'}}",
                  2 * model.hidden / 64),
      44);
}

/// LLaVAModel of pretrain_vlm.py, whose vision tower has the width and the layers of the language model: patches of 14
/// x 14 of an image of 336 x 336, and a class token; a projector; tokens of text behind those of the image.
void set_llava(Model& model, const import::CsvRow& row) {
  set_sizes(model, row);
  const std::int64_t layers = given(row, "num-layers", 12), image = 577;
  model.sequence = given(row, "seq-length", 1'024) + image;
  model.vocabulary = padded(8'193, row);
  model.tied_embeddings = false;
  const char* layer = "{attention: {causal: false}}, mlp";
  set_layers(
      model,
      fmt::format("{{networks: {{vision: {{sequence: {1}, blocks: {{first: [{{patch_embedding: {{inputs: 588, "
                  "extra_tokens: 1, bias: false, norms: after, residual: false}}}}, {0}], middle: [{0}]}}, layers: "
                  "[first, {{repeat: {2}, of: middle}}]}}, projector: {{sequence: {1}, blocks: {{layer: {{mlp: "
                  "{{norms: none, residual: false}}}}}}, layers: [layer]}}, text: {{blocks: {{layer: [attention, "
                  "mlp]}}, layers: [{{repeat: {3}, of: layer}}]}}}}}}",
                  layer, image, layers - 1, layers),
      2 * layers + 1);
}

struct TestModel {
  std::string_view prefix;  // of test_case
  void (*describe)(Model&, const import::CsvRow&);
};
constexpr std::array kTestModels{TestModel{"bert/bert_", set_bert}, TestModel{"t5/t5_", set_t5},
                                 TestModel{"hybrid/hybrid_mr_", set_hybrid},
                                 TestModel{"multimodal-llava/multimodal_llava_", set_llava}};

}  // namespace

void restrict_kernels(core::workload::Stack& stack, const Model& model) {
  if (model.head_width() % 8 == 0) return;
  stack.attention = core::workload::AttentionKernel::unfused;
  if (model.sequence % 8 != 0) stack.masked_softmax_fusion = false;
}

bool describe_test_model(Model& model, const import::CsvRow& row) {
  const std::string_view test = row.text("test_case");
  const auto known = std::find_if(kTestModels.begin(), kTestModels.end(),
                                  [&](const TestModel& one) { return test.starts_with(one.prefix); });
  if (known == kTestModels.end() || given(row, "hidden-size", 0) == 0 || given(row, "num-attention-heads", 0) == 0)
    return false;
  known->describe(model, row);
  return true;
}

}  // namespace manyworlds::experiments::measured
