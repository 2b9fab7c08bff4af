// What a program asks of its kernels: attributes, and how many blocks fit on a multiprocessor. Registers and static
// shared memory stand in a kernel's device code, which is not read: they are assumed, and every line that an assumption
// is in says so. Limits are those of CUDA's occupancy calculator (cuda_occupancy.h of CUDA 12.5, compute capabilities
// 8.0 and 9.0).
#include <algorithm>

#include "experiments/capture/call_lines.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

/// So many that they never limit: 2,048 threads of a multiprocessor have 65,536 registers.
constexpr int kAssumedRegisters = 32;
constexpr const char* kAssumption = "at most 32 registers a thread, no static shared memory";
constexpr std::int64_t kSharedUnit = 128;

/// Blocks of so many threads, with so much dynamic shared memory, that a multiprocessor has at once.
int active_blocks(const DeviceProperties13& of, const Kernel& kernel, int threads, std::int64_t shared_bytes) {
  if (threads > of.max_threads_per_block || shared_bytes > kernel.max_dynamic_shared_bytes) return 0;
  const int warps = (threads + of.warp_size - 1) / of.warp_size;
  const int by_threads = of.max_threads_per_multiprocessor / of.warp_size / warps;
  const auto reserved = static_cast<std::int64_t>(of.reserved_shared_per_block_bytes);
  const std::int64_t each = (shared_bytes + reserved + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  const auto by_memory = static_cast<int>(static_cast<std::int64_t>(of.shared_per_multiprocessor_bytes) / each);
  return std::min({by_threads, by_memory, of.max_blocks_per_multiprocessor});
}

Error occupancy(const char* call, int* out, const void* function, int threads, std::size_t shared_bytes) {
  const std::lock_guard lock(session().mutex);
  const Kernel& kernel = registered_kernel(call, function);
  Line line("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  line.text("kernel", kernel.name).number("threads", threads);
  line.number("shared_bytes", static_cast<std::int64_t>(shared_bytes));
  if (out == nullptr || threads <= 0) return recorded(line, kInvalidValue);
  *out = active_blocks(device_properties<DeviceProperties13>(session().settings), kernel, threads,
                       static_cast<std::int64_t>(shared_bytes));
  return recorded(line.number("blocks", *out).text("assumed", kAssumption));
}

}  // namespace

extern "C" {

Error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out, const void* function, int threads,
                                                    std::size_t shared_bytes) {
  return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessor", out, function, threads, shared_bytes);
}
/// The flag is of caches that the devices known here have not (cudaOccupancyDisableCachingOverride).
Error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* out, const void* function, int threads,
                                                             std::size_t shared_bytes, unsigned) {
  return occupancy("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", out, function, threads, shared_bytes);
}

Error cudaFuncGetAttributes(FunctionAttributes* out, const void* function) {
  const std::lock_guard lock(session().mutex);
  const Kernel& kernel = registered_kernel("cudaFuncGetAttributes", function);
  Line line("cudaFuncGetAttributes");
  line.text("kernel", kernel.name);
  if (out == nullptr) return recorded(line, kInvalidValue);
  const auto of = device_properties<DeviceProperties13>(session().settings);
  *out = {};
  out->max_threads_per_block = of.max_threads_per_block;
  out->registers = kAssumedRegisters;
  out->ptx_version = out->binary_version = 10 * of.major + of.minor;
  out->max_dynamic_shared_bytes = static_cast<int>(kernel.max_dynamic_shared_bytes);
  out->preferred_carveout = -1;  // the driver's choice
  return recorded(line.text("assumed", kAssumption));
}

/// How much dynamic shared memory a launch may have is kept; other attributes are recorded and have no effect.
Error cudaFuncSetAttribute(const void* function, int attribute, int value) {
  Session& of = session();
  const std::lock_guard lock(of.mutex);
  const auto found = of.kernels.find(function);
  Line line("cudaFuncSetAttribute");
  if (found == of.kernels.end()) return recorded(line, kInvalidValue);
  line.text("kernel", found->second.name).number("attribute", attribute).number("value", value);
  if (attribute != kMaxDynamicShared) return recorded(line);
  if (value < 0 || value > of.settings.device->shared_per_block_optin_bytes) return recorded(line, kInvalidValue);
  found->second.max_dynamic_shared_bytes = value;
  return recorded(line);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
