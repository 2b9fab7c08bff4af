#include "experiments/astra_sim/files/memory_file.hpp"

#include <algorithm>
#include <array>

#include "experiments/astra_sim/files/json_keys.hpp"
#include "experiments/programs/ranks_text.hpp"

namespace manyworlds::experiments::astra_sim {
namespace {

/// In the order of MemoryType.
constexpr std::array<const char*, 4> kTypes{"NO_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION",
                                            "PER_NPU_MEMORY_EXPANSION", "MEMORY_POOL"};
constexpr std::int64_t kLargest = 1'000'000'000'000;

}  // namespace

std::int64_t Memory::access_ns(std::int64_t bytes) const {
  return latency_ns + static_cast<std::int64_t>(static_cast<double>(bytes) / static_cast<double>(bytes_per_ns));
}

Memory parse_memory_file(std::string_view text, const std::string& name, std::uint32_t ranks) {
  const JsonKeys keys(text, name);
  keys.check({"memory-type", "num-nodes", "num-npus-per-node", "remote-mem-latency", "remote-mem-bw"},
             "ASTRA-sim's remote memory file");
  Memory memory;
  const std::string type = keys.text("memory-type").value_or("");
  const auto found = std::find(kTypes.begin(), kTypes.end(), type);
  if (found == kTypes.end())
    keys.fail("memory-type", "NO_MEMORY_EXPANSION, PER_NODE_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION or MEMORY_POOL");
  memory.type = static_cast<MemoryType>(found - kTypes.begin());
  memory.latency_ns = keys.whole("remote-mem-latency", 0, 0, kLargest);
  if (memory.type != MemoryType::none && !keys.has("remote-mem-bw"))
    keys.fail("remote-mem-bw", "GB/s as an integer above 0");
  memory.bytes_per_ns = keys.whole("remote-mem-bw", 1, memory.type == MemoryType::none ? 0 : 1, kLargest);
  const std::int64_t nodes = keys.whole("num-nodes", 0, 0, programs::kMaxRanks);
  memory.ranks_per_node = keys.whole("num-npus-per-node", 0, 0, programs::kMaxRanks);
  if (memory.type == MemoryType::per_node && (memory.ranks_per_node == 0 || ranks > nodes * memory.ranks_per_node))
    keys.fail(memory.ranks_per_node == 0 ? "num-npus-per-node" : "num-nodes",
              "such that nodes times ranks per node are the ranks of the network");
  return memory;
}

}  // namespace manyworlds::experiments::astra_sim
