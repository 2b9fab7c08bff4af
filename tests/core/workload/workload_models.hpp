// Models with published dimensions, for the tests of workload and memory.
#pragma once

#include "core/compute/gpu.hpp"
#include "core/workload/model/model.hpp"
#include "core/workload/strategy/strategy.hpp"

namespace manyworlds::core::workload {

inline Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocabulary = 51'200) {
  Model model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocabulary = vocabulary;
  return model;
}

inline Model llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                   std::int64_t ffn_hidden, std::int64_t vocabulary) {
  Model model = gpt(layers, hidden, heads, vocabulary);
  model.kv_heads = kv_heads;
  model.ffn_hidden = ffn_hidden;
  model.sequence = 4096;
  model.norm = Norm::rms_norm;
  model.activation = Activation::swiglu;
  model.position = Position::rotary;
  model.tied_embeddings = model.biases = model.dropout = false;
  return model;
}

/// Korthikanti et al. 2022, table 3.
inline Model megatron_22b() {
  return gpt(48, 6'144, 64);
}
inline Model gpt3_175b() {
  return gpt(96, 12'288, 96);
}
inline Model megatron_530b() {
  return gpt(105, 20'480, 128);
}
inline Model megatron_1t() {
  return gpt(128, 25'600, 160);
}
inline Model llama3_70b() {
  return llama(80, 8'192, 64, 8, 28'672, 128'256);
}

/// Qwen Team 2025 (arXiv 2505.09388), table 2 and the released configurations.
inline Model qwen3_moe(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t expert_ffn_hidden) {
  Model model = llama(layers, hidden, heads, 4, 0, 151'936);
  model.head_dim = 128;
  model.query_key_norm = true;
  model.experts = 128;
  model.experts_per_token = 8;
  model.expert_ffn_hidden = expert_ffn_hidden;
  return model;
}
inline Model qwen3_30b_a3b() {
  return qwen3_moe(48, 2'048, 32, 768);
}
inline Model qwen3_235b_a22b() {
  return qwen3_moe(94, 4'096, 64, 1'536);
}

/// DeepSeek-AI 2024 (arXiv 2412.19437), section 4.2, without its multi-token prediction module.
inline Model deepseek_v3() {
  Model model = llama(61, 7'168, 128, 0, 18'432, 129'280);
  model.head_dim = 128;
  model.attention = Attention::latent;
  model.query_rank = 1'536;
  model.kv_rank = 512;
  model.rotary_dim = 64;
  model.experts = 256;
  model.experts_per_token = 8;
  model.expert_ffn_hidden = model.shared_ffn_hidden = 2'048;
  model.dense_layers = 3;
  return model;
}

/// Jiang et al. 2024 (arXiv 2401.04088), table 1.
inline Model mixtral_8x7b() {
  Model model = llama(32, 4'096, 32, 8, 14'336, 32'000);
  model.experts = 8;
  model.experts_per_token = 2;
  return model;
}

/// OpenAI 2025 (arXiv 2508.10925), section 2 and the released configuration.
inline Model gpt_oss_120b() {
  Model model = llama(36, 2'880, 64, 8, 2'880, 201'088);
  model.head_dim = 64;
  model.biases = true;
  model.experts = 128;
  model.experts_per_token = 4;
  model.window = 128;
  model.window_every = 2;
  return model;
}

/// A layout whose host is never late.
inline Strategy layout(std::int64_t tp, std::int64_t pp, std::int64_t micro_batch, std::int64_t global_batch,
                       std::int64_t virtual_stages = 1) {
  Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.micro_batch = micro_batch;
  strategy.global_batch = global_batch;
  strategy.virtual_stages = virtual_stages;
  strategy.stack.host_kernel_us = strategy.stack.host_collective_us = 0;
  if (virtual_stages > 1) strategy.schedule = schedule_by_name("interleaved");
  return strategy;
}

/// Round figures, so that times can be worked out by hand: 200 TFLOP/s of GEMM, 100 of attention, 1000 GB/s.
inline compute::Gpu round_gpu() {
  compute::Gpu gpu;
  gpu.matrix_tflops = 400;
  gpu.compute_units = 100;
  gpu.clock_ghz = 1;
  gpu.sustained_rate = 1;
  for (compute::GemmRates& rates : gpu.gemm) {
    rates.efficiency = rates.memory_efficiency = 0.5;
    rates.prologue_k = rates.epilogue_clocks = rates.throttle = 0;
    rates.load_bytes_per_clock = 1e9;
    rates.wave_loss = 1;
  }
  gpu.communication_slowdown = 0;
  gpu.memory_gb_per_s = 2'000;
  gpu.memory_efficiency = 0.5;
  gpu.launch_us = 2;
  return gpu;
}

}  // namespace manyworlds::core::workload
