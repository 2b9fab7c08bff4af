// A pass through a model chunk as the operations it becomes: kernels that run back to back are merged.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/compute/gpu.hpp"
#include "core/workload/build/stage_work.hpp"

namespace manyworlds::core::workload {

struct Piece {
  enum class Kind : std::uint8_t { compute, start };
  Kind kind = Kind::compute;
  bool joined = false;                                         // needs collectives started before it
  Awaited awaited;                                             // those
  Booking booking = Booking::forward;                          // compute
  Time duration_ps = 0;                                        // compute
  collective::Kind collective = collective::Kind::all_reduce;  // start
  std::int64_t bytes = 0;                                      // start
  collective::Split split;                                     // start
  Role role = Role::tensor;                                    // start
  std::string_view name;                                       // start
  std::int32_t finished_parts = 0;                             // parts of the chunk that end with this piece (split)
};

/// A chunk's pass. Backward passes take the parts in reverse; `split` breaks them where a part ends, so that parameters
/// can come and gradients leave part by part.
std::vector<Piece> pieces_of(const StageWork& work, const std::vector<Part>& chunk, PassKind kind,
                             const compute::Gpu& gpu, bool split);

}  // namespace manyworlds::core::workload
