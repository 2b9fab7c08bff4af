// Which sections of the model lie where on the ranks of a pipeline.
#pragma once

#include <cstdint>
#include <optional>

#include "core/workload/schedule/schedule.hpp"

namespace manyworlds::core::workload {

/// A model chunk of a pipeline rank.
struct ChunkAt {
  std::int64_t rank = 0, chunk = 0;
  auto operator<=>(const ChunkAt&) const = default;
};

class Sections {
 public:
  Sections(Folding folding, std::int64_t ranks, std::int64_t chunks)
      : folding_(folding), ranks_(ranks), chunks_(chunks) {}

  std::int64_t count() const { return folding_ == Folding::mirror ? ranks_ : ranks_ * chunks_; }
  /// The section that a chunk is.
  std::int64_t of(std::int64_t rank, std::int64_t chunk) const {
    switch (folding_) {
      case Folding::loop:
        return chunk * ranks_ + rank;
      case Folding::vee:
        return chunk == 0 ? rank : 2 * ranks_ - 1 - rank;
      case Folding::mirror:
        break;
    }
    return chunk == 0 ? rank : ranks_ - 1 - rank;
  }
  bool is_first(std::int64_t rank, std::int64_t chunk) const { return of(rank, chunk) == 0; }
  bool is_last(std::int64_t rank, std::int64_t chunk) const { return of(rank, chunk) == count() - 1; }
  /// Whether a chunk of the rank is the first section, or the last.
  bool has_first(std::int64_t rank) const { return any(rank, 0); }
  bool has_last(std::int64_t rank) const { return any(rank, count() - 1); }
  /// Whether one rank has both.
  bool ends_meet() const { return ranks_ == 1 || folding_ != Folding::loop; }
  /// Whether the chunk's forward passes go to the rank before, and not to the rank after it.
  bool goes_back(std::int64_t chunk) const { return folding_ != Folding::loop && chunk == 1; }

  /// The chunk that a chunk's forward passes go on to, if any.
  std::optional<ChunkAt> after(std::int64_t rank, std::int64_t chunk) const {
    if (is_last(rank, chunk)) return std::nullopt;
    if (folding_ == Folding::loop) return rank + 1 < ranks_ ? ChunkAt{rank + 1, chunk} : ChunkAt{0, chunk + 1};
    if (chunk == 1) return ChunkAt{rank - 1, 1};
    return rank + 1 < ranks_ ? ChunkAt{rank + 1, 0} : ChunkAt{rank, 1};
  }
  /// The chunk that its forward passes come from, if any.
  std::optional<ChunkAt> before(std::int64_t rank, std::int64_t chunk) const {
    if (is_first(rank, chunk)) return std::nullopt;
    if (folding_ == Folding::loop) return rank > 0 ? ChunkAt{rank - 1, chunk} : ChunkAt{ranks_ - 1, chunk - 1};
    if (chunk == 0) return ChunkAt{rank - 1, 0};
    return rank + 1 < ranks_ ? ChunkAt{rank + 1, 1} : ChunkAt{rank, 0};
  }

 private:
  bool any(std::int64_t rank, std::int64_t section) const {
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk)
      if (of(rank, chunk) == section) return true;
    return false;
  }

  Folding folding_;
  std::int64_t ranks_, chunks_;
};

}  // namespace manyworlds::core::workload
