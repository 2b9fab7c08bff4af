// Models with published dimensions, for the tests of workload and memory.
#pragma once

#include "core/compute/gpu.hpp"
#include "core/workload/model.hpp"
#include "core/workload/strategy.hpp"

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

inline Strategy layout(std::int64_t tp, std::int64_t pp, std::int64_t micro_batch, std::int64_t global_batch,
                       std::int64_t virtual_stages = 1) {
  Strategy strategy;
  strategy.tp = tp;
  strategy.pp = pp;
  strategy.micro_batch = micro_batch;
  strategy.global_batch = global_batch;
  strategy.virtual_stages = virtual_stages;
  if (virtual_stages > 1) strategy.schedule = ScheduleKind::interleaved;
  return strategy;
}

/// Round figures, so that times can be worked out by hand: 200 TFLOP/s of GEMM, 100 of attention, 1000 GB/s.
inline compute::Gpu round_gpu() {
  compute::Gpu gpu;
  gpu.matrix_tflops = 400;
  gpu.gemm_efficiency = 0.5;
  gpu.attention_efficiency = 0.25;
  gpu.memory_gb_per_s = 2'000;
  gpu.memory_efficiency = 0.5;
  gpu.launch_us = 2;
  return gpu;
}

}  // namespace manyworlds::core::workload
