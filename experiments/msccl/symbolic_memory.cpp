#include "experiments/msccl/symbolic_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

namespace manyworlds::experiments::msccl {

using core::collective::Kind;

SymbolicMemory::SymbolicMemory(const Algorithm& algorithm, bool in_place)
    : algorithm_(algorithm), in_place_(in_place), all_gpus_(algorithm.gpus.size()) {
  std::iota(all_gpus_.begin(), all_gpus_.end(), 0u);
  for (const Gpu& gpu : algorithm.gpus) {
    cells_.emplace_back(static_cast<std::size_t>(in_place ? algorithm.chunks : algorithm.input_chunks()));
    cells_.emplace_back(static_cast<std::size_t>(in_place ? 0 : algorithm.output_chunks()));
    cells_.emplace_back(static_cast<std::size_t>(gpu.scratch_chunks));
  }
  for (std::uint32_t gpu = 0; gpu < algorithm.gpus.size(); ++gpu)
    for (std::int64_t chunk = 0; chunk < algorithm.input_chunks(); ++chunk)
      at(gpu, {Buffer::input, 0}, chunk).value = std::make_shared<const Contributions>(Contributions{chunk, {gpu}});
}

Cell& SymbolicMemory::at(std::size_t gpu, const Place& place, std::int64_t index) {
  std::int64_t chunk = place.offset + index;
  Buffer buffer = place.buffer;
  if (in_place_ && buffer != Buffer::scratch) {
    // The smaller of the two is the GPU's part of the other.
    const std::int64_t size = buffer == Buffer::input ? algorithm_.input_chunks() : algorithm_.output_chunks();
    if (size < algorithm_.chunks) chunk += static_cast<std::int64_t>(gpu) * size;
    buffer = Buffer::input;
  }
  return cells_[gpu * kBuffers + static_cast<std::size_t>(buffer)][static_cast<std::size_t>(chunk)];
}

Contributions SymbolicMemory::wanted(std::size_t gpu, std::int64_t chunk) const {
  const std::int64_t part = algorithm_.chunks / std::ssize(algorithm_.gpus), own = static_cast<std::int64_t>(gpu);
  switch (algorithm_.kind) {
    case Kind::all_gather:
      return {chunk % part, {static_cast<std::uint32_t>(chunk / part)}};
    case Kind::reduce_scatter:
      return {own * part + chunk, all_gpus_};
    case Kind::all_to_all:
      return {own * part + chunk % part, {static_cast<std::uint32_t>(chunk / part)}};
    default:
      return {chunk, all_gpus_};
  }
}

std::string text_of(const Contributions& value) {
  if (value.gpus.size() == 1) return fmt::format("chunk {} of gpu {}", value.chunk, value.gpus.front());
  constexpr std::size_t kMaxListed = 16;
  if (value.gpus.size() > kMaxListed)
    return fmt::format("chunk {}, the sum of {} gpus", value.chunk, value.gpus.size());
  return fmt::format("chunk {}, the sum of gpus {}", value.chunk, fmt::join(value.gpus, ", "));
}

}  // namespace manyworlds::experiments::msccl
