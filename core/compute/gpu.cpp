// The option table of an accelerator. A value whose default (0) lies outside its range is unknown until it is given.
#include "core/compute/gpu.hpp"

namespace manyworlds::core::compute {

const OptionTable<Gpu>& gpu_options() {
  static const OptionTable<Gpu> table{
      option("matrix_tflops", &Gpu::matrix_tflops, "dense 16-bit matrix peak", {0.001, 1e6}, "TFLOP/s"),
      option("fp8_tflops", &Gpu::fp8_tflops, "dense 8-bit matrix peak; 0: twice matrix_tflops", {0, 1e6}, "TFLOP/s"),
      option("fp4_tflops", &Gpu::fp4_tflops, "dense 4-bit matrix peak; 0: four times matrix_tflops", {0, 1e6},
             "TFLOP/s"),
      flag_list("precisions", &Gpu::precisions, precision_names(), "number formats that the matrix units support"),
      option("memory_gib", &Gpu::memory_gib, "usable device memory", {0.001, 1e6}, "GiB"),
      option("gemm_workspace_mib", &Gpu::gemm_workspace_mib,
             "workspace of the matrix library for each thread that launches GEMMs", {0, 1e6}, "MiB"),
      option("engine_workspace_mib", &Gpu::engine_workspace_mib, "workspace of Transformer Engine's GEMMs", {0, 1e6},
             "MiB"),
      option("communicator_mib", &Gpu::communicator_mib, "buffers of the communication library per communicator",
             {0, 1e6}, "MiB"),
      option("context_mib", &Gpu::context_mib, "context of the driver: code and stacks", {0, 1e6}, "MiB"),
      option("memory_gb_per_s", &Gpu::memory_gb_per_s, "peak memory bandwidth", {0.001, 1e7}, "GB/s"),
      option("compute_units", &Gpu::compute_units, "streaming multiprocessors or compute units", {1, 100'000}, "units"),
      option("gemm_efficiency", &Gpu::gemm_efficiency,
             "share of the peak in the main loop of a large GEMM, power limits included", {0.001, 1}, "share"),
      option("gemm_prologue_k", &Gpu::gemm_prologue_k, "cost of a GEMM tile besides its main loop, as additional K",
             {0, 100'000}, "K"),
      option("fp8_gain", &Gpu::fp8_gain, "rate of a GEMM's main loop in FP8 relative to BF16", {0.1, 16}, "ratio"),
      option("fp4_gain", &Gpu::fp4_gain, "rate of a GEMM's main loop in FP4 relative to FP8", {0.1, 16}, "ratio"),
      option("memory_efficiency", &Gpu::memory_efficiency,
             "bytes that operators read and write, relative to the peak bandwidth; cache hits may raise it above 1",
             {0.001, 2}, "ratio"),
      option("flash_forward_efficiency", &Gpu::flash_forward_efficiency,
             "share of the peak of first-generation fused attention kernels, forward", {0.001, 1}, "share"),
      option("flash_backward_efficiency", &Gpu::flash_backward_efficiency,
             "share of the peak of first-generation fused attention kernels, backward", {0.001, 1}, "share"),
      option("cudnn_forward_efficiency", &Gpu::cudnn_forward_efficiency,
             "share of the peak of later fused attention kernels (FlashAttention 2 and 3, cuDNN), forward", {0.001, 1},
             "share"),
      option("cudnn_backward_efficiency", &Gpu::cudnn_backward_efficiency,
             "share of the peak of later fused attention kernels (FlashAttention 2 and 3, cuDNN), backward", {0.001, 1},
             "share"),
      option("launch_us", &Gpu::launch_us, "GPU time per kernel besides its computation", {0, 1e6}, "us"),
      option("host_kernel_us", &Gpu::host_kernel_us, "host time to launch a kernel", {0, 1e6}, "us"),
      option("host_collective_us", &Gpu::host_collective_us, "host time to launch a tensor-parallel collective",
             {0, 1e6}, "us"),
      option("communication_slowdown", &Gpu::communication_slowdown,
             "additional time of kernels while a collective runs on their GPU, as a share of their time", {0, 10},
             "share"),
      option("host_gb_per_s", &Gpu::host_gb_per_s,
             "rate at which a copy engine moves activations to the host's memory or back, all GPUs at once, one "
             "direction",
             {0.001, 1e6}, "GB/s"),
      option("scale_up_gb_per_s", &Gpu::scale_up_gb_per_s, "scale-up bandwidth of one GPU, one direction", {0.001, 1e6},
             "GB/s"),
      option("scale_up_latency_us", &Gpu::scale_up_latency_us, "latency of one scale-up link", {0.000001, 1e6}, "us"),
      choice("scale_up", &Gpu::scale_up, {"nvswitch", "full_mesh", "pcie", "nvlink_pairs"},
             "shape of the scale-up fabric; pcie: a tree of PCIe switches at scale_up_gb_per_s; nvlink_pairs: bridges "
             "of two GPUs at that rate, and a tree of PCIe switches at host_gb_per_s"),
      option("pcie_switch_gpus", &Gpu::pcie_switch_gpus,
             "GPUs per PCIe switch; they share its one link to the root complex", {1, 576}, "GPUs"),
      option("scale_up_planes", &Gpu::scale_up_planes,
             "scale-up switches that share a GPU's rate; 1: all switches are modelled as one", {1, 64}, "switches"),
      option("scale_up_domain", &Gpu::scale_up_domain, "GPUs that the scale-up fabric connects", {1, 1'024}, "GPUs"),
  };
  return table;
}

double peak_tflops(const Gpu& gpu, Precision precision) {
  if (precision == Precision::fp8 || precision == Precision::mxfp8)
    return gpu.fp8_tflops > 0 ? gpu.fp8_tflops : 2 * gpu.matrix_tflops;
  if (precision == Precision::nvfp4) return gpu.fp4_tflops > 0 ? gpu.fp4_tflops : 4 * gpu.matrix_tflops;
  return gpu.matrix_tflops;
}

}  // namespace manyworlds::core::compute
