// ASTRA-sim's remote memory file (astra-sim/astra-memory-analytical, AnalyticalRemoteMemory.cc): what nodes that load
// from and store to memory behind the GPU's own take.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace manyworlds::experiments::astra_sim {

/// None; one per node, whose accesses are one after the other; one per rank; one for all ranks, as per node.
enum class MemoryType : std::uint8_t { none, per_node, per_rank, pool };

struct Memory {
  MemoryType type = MemoryType::none;
  std::int64_t ranks_per_node = 0;                // of per_node
  std::int64_t latency_ns = 0, bytes_per_ns = 1;  // GB/s of 10^9

  std::int64_t access_ns(std::int64_t bytes) const;
};

/// Parses the file for a job of `ranks`; `name` is its name in messages. Throws InputError with the key for what the
/// backend does not have, and for numbers that it would not stand.
Memory parse_memory_file(std::string_view text, const std::string& name, std::uint32_t ranks);

}  // namespace manyworlds::experiments::astra_sim
