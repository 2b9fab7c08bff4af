// An accelerator as the cost model and the memory check see it. Figures that nobody publishes are absent (0).
#pragma once

#include <cstdint>

#include "core/options.hpp"
#include "core/units.hpp"

namespace manyworlds::core::compute {

enum class ScaleUp : std::uint8_t { nvswitch, full_mesh };

struct Gpu {
  double matrix_tflops = 0;           // dense 16-bit matrix peak, TFLOP/s
  double memory_gib = 0;              // usable device memory, GiB
  double memory_gb_per_s = 0;         // peak memory bandwidth, GB/s
  double gemm_efficiency = 0.75;      // share of the peak a large GEMM reaches
  double attention_efficiency = 0.5;  // share of the peak the attention core reaches
  double memory_efficiency = 0.8;     // share of memory bandwidth that element-wise operators reach
  double launch_us = 3;               // GPU time lost per kernel launch, microseconds
  double scale_up_gb_per_s = 0;       // one direction, per GPU, GB/s
  double scale_up_latency_us = 0.5;   // one link, microseconds
  ScaleUp scale_up = ScaleUp::nvswitch;
  std::int64_t scale_up_domain = 8;  // GPUs that the scale-up fabric joins
  std::int64_t scale_up_planes = 1;  // switches of the domain, each with an equal share of every GPU's rate
};

const OptionTable<Gpu>& gpu_options();

}  // namespace manyworlds::core::compute
