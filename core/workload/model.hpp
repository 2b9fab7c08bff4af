// A decoder-only transformer by its dimensions: GPT style (Brown et al. 2020) or Llama style (Touvron et al. 2023).
#pragma once

#include <cstdint>
#include <string>

#include "core/options.hpp"

namespace manyworlds::core::workload {

enum class Norm : std::uint8_t { layer_norm, rms_norm };
enum class Activation : std::uint8_t { gelu, swiglu };
enum class Position : std::uint8_t { learned, rotary };

struct Model {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    // 0: as many as heads
  std::int64_t ffn_hidden = 0;  // 0: 4 x hidden
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 2048;  // tokens of one sample
  Norm norm = Norm::layer_norm;
  Activation activation = Activation::gelu;
  Position position = Position::learned;
  bool tied_embeddings = true;  // the output layer shares the embedding's weights
  bool biases = true;           // linear layers carry a bias
  bool dropout = true;          // dropout masks are kept for the backward pass

  std::int64_t kv() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t ffn() const { return ffn_hidden > 0 ? ffn_hidden : 4 * hidden; }
  std::int64_t head_dim() const { return hidden / heads; }
};

const OptionTable<Model>& model_options();

}  // namespace manyworlds::core::workload
