// The option table of an accelerator. A figure whose default (0) lies outside its range is absent until given.
#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

const OptionTable<Gpu>& gpu_options() {
  static const OptionTable<Gpu> table{
      option("matrix_tflops", &Gpu::matrix_tflops, "dense 16-bit matrix peak", {0.001, 1e6}, "TFLOP/s"),
      option("memory_gib", &Gpu::memory_gib, "usable device memory", {0.001, 1e6}, "GiB"),
      option("memory_gb_per_s", &Gpu::memory_gb_per_s, "peak memory bandwidth", {0.001, 1e7}, "GB/s"),
      option("gemm_efficiency", &Gpu::gemm_efficiency, "share of the peak that a large GEMM reaches", {0.001, 1}),
      option("attention_efficiency", &Gpu::attention_efficiency, "share of the peak that the attention core reaches",
             {0.001, 1}),
      option("memory_efficiency", &Gpu::memory_efficiency,
             "share of the memory bandwidth that element-wise operators reach", {0.001, 1}),
      option("launch_us", &Gpu::launch_us, "GPU time lost per kernel launch", {0, 1e6}, "us"),
      option("scale_up_gb_per_s", &Gpu::scale_up_gb_per_s, "scale-up bandwidth of one GPU, one direction", {0.001, 1e6},
             "GB/s"),
      option("scale_up_latency_us", &Gpu::scale_up_latency_us, "latency of one scale-up link", {0.000001, 1e6}, "us"),
      choice("scale_up", &Gpu::scale_up, {"nvswitch", "full_mesh"}, "shape of the scale-up fabric"),
      option("scale_up_planes", &Gpu::scale_up_planes,
             "scale-up switches that share a GPU's rate; 1: packets spread over all of them as over one", {1, 64}),
      option("scale_up_domain", &Gpu::scale_up_domain, "GPUs that the scale-up fabric joins", {1, 1'024}),
  };
  return table;
}

}  // namespace manyworlds::core::compute
