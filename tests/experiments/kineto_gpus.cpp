// GPUs as traces of PyTorch's profiler name them.
#include <catch2/catch.hpp>

#include "experiments/catalog/catalog.hpp"
#include "experiments/profiler_events/event_kinds.hpp"

using namespace manyworlds::experiments;

TEST_CASE("GPUs that traces name are in the catalog") {
  const Catalog catalog;
  for (const char* name :
       {"NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 80GB HBM3", "NVIDIA H800", "NVIDIA H200",
        "NVIDIA B200", "AMD Instinct MI300X", "Tesla V100-SXM2-32GB", "NVIDIA L40S", "NVIDIA GB200", "NVIDIA H100 PCIe",
        "NVIDIA A100 80GB PCIe", "NVIDIA B300", "NVIDIA H20", "AMD Instinct MI325X", "AMD Instinct MI355X",
        "NVIDIA A800-SXM4-80GB", "NVIDIA GB300", "NVIDIA A100-PCIE-40GB"}) {
    INFO(name);
    CHECK(catalog.entries("gpus").contains(profiler::catalog_gpu(name)));
  }
  CHECK(profiler::catalog_gpu("NVIDIA A100-PG509-200").empty());
  CHECK(profiler::catalog_gpu("AMD Radeon Graphics").empty());
}
