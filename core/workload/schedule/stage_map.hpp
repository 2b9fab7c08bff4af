// Placement of a model's virtual stages on the ranks of a pipeline.
#pragma once

#include <cstdint>
#include <optional>

#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// A model chunk of a pipeline rank.
struct ChunkLocation {
  std::int64_t rank = 0, chunk = 0;
  auto operator<=>(const ChunkLocation&) const = default;
};

class StageMap {
 public:
  StageMap(StagePlacement stage_placement, std::int64_t ranks, std::int64_t chunks)
      : stage_placement_(stage_placement), ranks_(ranks), chunks_(chunks) {}

  std::int64_t count() const { return stage_placement_ == StagePlacement::bidirectional ? ranks_ : ranks_ * chunks_; }
  /// Returns the virtual stage of a chunk.
  std::int64_t of(std::int64_t rank, std::int64_t chunk) const {
    switch (stage_placement_) {
      case StagePlacement::loop:
        return chunk * ranks_ + rank;
      case StagePlacement::v_shape:
        return chunk == 0 ? rank : 2 * ranks_ - 1 - rank;
      case StagePlacement::bidirectional:
        break;
    }
    return chunk == 0 ? rank : ranks_ - 1 - rank;
  }
  bool is_first(std::int64_t rank, std::int64_t chunk) const { return of(rank, chunk) == 0; }
  bool is_last(std::int64_t rank, std::int64_t chunk) const { return of(rank, chunk) == count() - 1; }
  /// Whether one of the rank's chunks is the first, or the last, virtual stage.
  bool has_first(std::int64_t rank) const { return holds(rank, 0); }
  bool has_last(std::int64_t rank) const { return holds(rank, count() - 1); }
  /// Whether one rank has both the first and the last virtual stage.
  bool first_and_last_share_rank() const { return ranks_ == 1 || stage_placement_ != StagePlacement::loop; }
  /// Whether the chunk's forward passes go to the previous rank, instead of the next.
  bool is_reversed(std::int64_t chunk) const { return stage_placement_ != StagePlacement::loop && chunk == 1; }

  /// Returns the chunk that a chunk's forward passes send to, if any.
  std::optional<ChunkLocation> after(std::int64_t rank, std::int64_t chunk) const {
    if (is_last(rank, chunk)) return std::nullopt;
    if (stage_placement_ == StagePlacement::loop)
      return rank + 1 < ranks_ ? ChunkLocation{rank + 1, chunk} : ChunkLocation{0, chunk + 1};
    if (chunk == 1) return ChunkLocation{rank - 1, 1};
    return rank + 1 < ranks_ ? ChunkLocation{rank + 1, 0} : ChunkLocation{rank, 1};
  }
  /// Returns the chunk that a chunk's forward passes receive from, if any.
  std::optional<ChunkLocation> before(std::int64_t rank, std::int64_t chunk) const {
    if (is_first(rank, chunk)) return std::nullopt;
    if (stage_placement_ == StagePlacement::loop)
      return rank > 0 ? ChunkLocation{rank - 1, chunk} : ChunkLocation{ranks_ - 1, chunk - 1};
    if (chunk == 0) return ChunkLocation{rank - 1, 0};
    return rank + 1 < ranks_ ? ChunkLocation{rank + 1, 1} : ChunkLocation{rank, 0};
  }

 private:
  bool holds(std::int64_t rank, std::int64_t virtual_stage) const {
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      if (of(rank, chunk) == virtual_stage) return true;
    return false;
  }

  StagePlacement stage_placement_;
  std::int64_t ranks_, chunks_;
};

}  // namespace manyworlds::core::workload
