#include "experiments/profiler_events/event_kinds.hpp"

#include <array>
#include <charconv>

namespace manyworlds::experiments::profiler {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct NamedCategory {
  std::string_view name;
  Category category;
};
constexpr std::array kCategories{
    NamedCategory{"kernel", Category::kernel},     NamedCategory{"Kernel", Category::kernel},
    NamedCategory{"gpu_memcpy", Category::copy},   NamedCategory{"Memcpy", Category::copy},
    NamedCategory{"gpu_memset", Category::set},    NamedCategory{"Memset", Category::set},
    NamedCategory{"cuda_runtime", Category::call}, NamedCategory{"cuda_driver", Category::call},
    NamedCategory{"hip_runtime", Category::call},  NamedCategory{"Runtime", Category::call},
    NamedCategory{"cuda_sync", Category::sync},    NamedCategory{"user_annotation", Category::annotation},
    NamedCategory{"cpu_op", Category::op},         NamedCategory{"Operator", Category::op}};

/// A part of a call's name, in the order in which they are looked for.
struct NamedCall {
  std::string_view part;
  CallKind kind;
};
constexpr std::array kCalls{NamedCall{"DeviceSynchronize", CallKind::sync_device},
                            NamedCall{"CtxSynchronize", CallKind::sync_device},
                            NamedCall{"StreamSynchronize", CallKind::sync_stream},
                            NamedCall{"EventSynchronize", CallKind::sync_event},
                            NamedCall{"EventRecord", CallKind::record},
                            NamedCall{"StreamWaitEvent", CallKind::wait},
                            NamedCall{"Launch", CallKind::launch},
                            NamedCall{"MemcpyWithStream", CallKind::blocking_copy},
                            NamedCall{"Async", CallKind::launch},
                            NamedCall{"Memcpy", CallKind::blocking_copy},
                            NamedCall{"Memset", CallKind::launch}};
/// Calls that are named like the above.
constexpr std::array<std::string_view, 5> kOther{"MallocAsync", "FreeAsync", "LaunchHostFunc", "MemPool",
                                                 "MemPrefetchAsync"};

/// A part of the driver's name of a GPU, and its name in the catalog, in the order in which they are looked for.
struct NamedGpu {
  std::string_view driver, catalog;
};
constexpr std::array kGpus{NamedGpu{"A100-SXM4-80GB", "a100_80"},
                           NamedGpu{"A100-SXM4-40GB", "a100_40"},
                           NamedGpu{"A100 80GB PCIe", "a100_pcie_80"},
                           NamedGpu{"A100-PCIE-40GB", "a100_pcie_40"},
                           NamedGpu{"A800-SXM4-80GB", "a800_sxm"},
                           NamedGpu{"H100 80GB HBM3", "h100_sxm"},
                           NamedGpu{"H100 PCIe", "h100_pcie"},
                           NamedGpu{"GB200", "gb200_nvl72"},
                           NamedGpu{"GB300", "gb300_nvl72"},
                           NamedGpu{"V100-SXM2-32GB", "v100_32"},
                           NamedGpu{"V100-SXM3-32GB", "v100_32"},
                           NamedGpu{"MI300X", "mi300x"},
                           NamedGpu{"MI325X", "mi325x"},
                           NamedGpu{"MI355X", "mi355x"}};
/// Names that stand for one GPU only as a whole, as there are other boards whose names begin so.
constexpr std::array kWholeNames{NamedGpu{"NVIDIA H800", "h800_sxm"}, NamedGpu{"NVIDIA H200", "h200_sxm"},
                                 NamedGpu{"NVIDIA H20", "h20_sxm"},   NamedGpu{"NVIDIA B200", "b200_hgx"},
                                 NamedGpu{"NVIDIA B300", "b300_hgx"}, NamedGpu{"NVIDIA L40S", "l40s"}};

}  // namespace

Category category_of(std::string_view name) {
  for (const NamedCategory& one : kCategories)
    if (one.name == name) return one.category;
  return Category::other;
}

std::optional<CallKind> call_kind(std::string_view name) {
  for (const std::string_view other : kOther)
    if (has(name, other)) return std::nullopt;
  for (const NamedCall& one : kCalls)
    if (has(name, one.part)) return one.kind;
  return std::nullopt;
}

programs::CopyDirection copy_direction(std::string_view name) {
  using programs::CopyDirection;
  if (has(name, "HtoD")) return CopyDirection::host_to_device;
  if (has(name, "DtoH")) return CopyDirection::device_to_host;
  if (has(name, "PtoP")) return CopyDirection::peer;
  return CopyDirection::device_to_device;
}

bool is_collective_kernel(std::string_view name) {
  return has(name, "ncclKernel") || has(name, "ncclDevKernel") || has(name, "rcclGenericKernel") ||
         has(name, "mscclKernel");
}

bool is_expert_exchange_kernel(std::string_view name) {
  if (has(name, "get_dispatch_layout")) return false;  // counts tokens, on its own GPU
  return has(name, "ep::internode::") || has(name, "ep::intranode::") || has(name, "ep::internode_ll::") ||
         has(name, "hybrid_ep::dispatch") || has(name, "hybrid_ep::combine");
}

std::string catalog_gpu(std::string_view name) {
  for (const NamedGpu& one : kWholeNames)
    if (one.driver == name) return std::string(one.catalog);
  for (const NamedGpu& one : kGpus)
    if (has(name, one.driver)) return std::string(one.catalog);
  return {};
}

std::optional<std::int64_t> step_number(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  if (!name.starts_with(kStep)) return std::nullopt;
  std::int64_t number = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kStep.size(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

}  // namespace manyworlds::experiments::profiler
