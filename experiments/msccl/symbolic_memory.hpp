// The buffers of all GPUs in a symbolic run: of each chunk its contributions, and who wrote and read it last.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/msccl/algorithm.hpp"

namespace manyworlds::experiments::msccl {

/// A step of a thread block: of all GPUs' blocks, `block` is the number.
struct StepId {
  std::uint32_t block = 0, step = 0;
};

/// The sum of one chunk of the inputs of some GPUs.
struct Contributions {
  std::int64_t chunk = 0;           // of the input of each
  std::vector<std::uint32_t> gpus;  // ascending
  bool operator==(const Contributions&) const = default;
};
using Value = std::shared_ptr<const Contributions>;  // null: nothing was written

struct Cell {
  Value value;
  std::optional<StepId> writer;   // nullopt: it is as it was in the beginning
  std::vector<StepId> readers{};  // since then, the last of each thread block
};

/// In place, input and output are one buffer: of the whole collective, in which a GPU's part is at its place.
class SymbolicMemory {
 public:
  SymbolicMemory(const Algorithm& algorithm, bool in_place);

  /// Returns the chunk of a GPU that is `index` after a place.
  Cell& at(std::size_t gpu, const Place& place, std::int64_t index);
  /// Returns what a chunk of a GPU's output has to hold in the end.
  Contributions wanted(std::size_t gpu, std::int64_t chunk) const;

 private:
  const Algorithm& algorithm_;
  bool in_place_;
  std::vector<std::vector<Cell>> cells_;  // by GPU and buffer
  std::vector<std::uint32_t> all_gpus_;
};

/// Returns "chunk 3 of gpu 1", "chunk 3, the sum of gpus 0, 1 and 2".
std::string text_of(const Contributions& value);

}  // namespace manyworlds::experiments::msccl
