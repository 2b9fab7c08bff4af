// Means of pairs and tiles over packed samples.
#include "core/workload/operators/document_attention.hpp"

#include <algorithm>

#include "core/base/units.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::DocumentTiles;

/// Twice the pairs of a document, about the square of its tokens, which are less with a window.
Int128 twice_pairs(std::int64_t length, std::int64_t window) {
  const std::int64_t reach = window > 0 ? std::min(window, length) : length;
  return Int128{reach} * (2 * length - reach);
}

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

/// The mean over samples, or groups of them, of a largest number of tokens.
struct MeanOfLargest {
  std::int64_t sum = 0, count = 0;
  void add(std::int64_t largest) { sum += largest, ++count; }
  std::int64_t mean() const { return ceil_div(sum, count); }
};

/// Returns the mean of the longest document in so many samples after one another.
std::int64_t mean_longest(const Documents& documents, std::int64_t samples) {
  MeanOfLargest longest;
  const auto count = static_cast<std::int64_t>(documents.samples.size());
  for (std::int64_t first = 0; first < count; first += samples) {
    std::int64_t most = 0;
    for (std::int64_t i = first; i < first + samples; ++i)  // the last group goes on with the first samples
      for (const std::int64_t each : documents.samples[static_cast<std::size_t>(i % count)])
        most = std::max(most, each);
    longest.add(most);
  }
  return longest.mean();
}

/// Tiles of a document's block in a context ring: the rank's queries and half of the block's keys, or half of the
/// queries and the whole block, of which either is as many tokens. A window leaves its share of them.
DocumentTiles ring_tiles(std::int64_t length, std::int64_t window, std::int64_t cp) {
  const std::int64_t share = ceil_div(length, cp), half = ceil_div(length, 2 * cp);
  DocumentTiles tiles = compute::unmasked_tiles(share, half);
  const DocumentTiles other = compute::unmasked_tiles(half, share);
  tiles.backward = other.backward, tiles.backward_blocks = other.backward_blocks;
  const double left = static_cast<double>(twice_pairs(length, window)) / static_cast<double>(twice_pairs(length, 0));
  for (double& each : tiles.forward) each *= left;
  tiles.backward *= left;
  return tiles;
}

/// Adds the tiles of one chunk of a sample, and returns the tokens that its longest thread blocks walk.
std::pair<std::int64_t, std::int64_t> add_chunk(DocumentTiles& tiles, const std::vector<std::int64_t>& sample,
                                                std::int64_t begin, std::int64_t end, std::int64_t window) {
  std::int64_t at = 0, keys = 0, queries = 0;
  for (const std::int64_t length : sample) {
    const std::int64_t first = std::max(begin, at) - at, last = std::min(end, at + length) - at;
    at += length;
    if (last <= first) continue;
    tiles.add(compute::causal_tiles(first, last, window), 1);
    keys = std::max(keys, last), queries = std::max(queries, last - first);
  }
  return {keys, queries};
}

/// Sets tiles of the mean rank, summed over all samples, whose queries are chunks of samples.
void add_chunks(DocumentWork& work, const Documents& documents, std::int64_t window, std::int64_t cp) {
  DocumentTiles all;
  MeanOfLargest keys, queries;
  const auto start = [&](std::int64_t chunk) { return chunk * documents.sequence / (2 * cp); };
  for (const auto& sample : documents.samples)
    for (std::int64_t rank = 0; rank < cp; ++rank) {
      std::pair<std::int64_t, std::int64_t> most{0, 0};
      for (const std::int64_t chunk : {rank, 2 * cp - 1 - rank}) {
        const auto longest = add_chunk(all, sample, start(chunk), start(chunk + 1), window);
        most = {std::max(most.first, longest.first), std::max(most.second, longest.second)};
      }
      keys.add(most.first), queries.add(most.second);
    }
  work.tiles.add(all, 1 / static_cast<double>(cp));
  work.longest_keys = keys.mean(), work.longest_queries = queries.mean();
}

}  // namespace

DocumentWork document_work(const Documents& documents, std::int64_t samples, std::int64_t window, DocumentShare share,
                           std::int64_t cp) {
  DocumentWork work;
  DocumentTiles all;
  Int128 pairs = 0;
  for (const auto& [length, times] : documents.lengths) {
    pairs += times * twice_pairs(length, window);
    if (share == DocumentShare::whole) all.add(compute::causal_tiles(0, length, window), static_cast<double>(times));
    if (share == DocumentShare::ring_block) all.add(ring_tiles(length, window, cp), static_cast<double>(times));
  }
  work.tiles = all;
  if (share == DocumentShare::chunks) {
    add_chunks(work, documents, window, cp);
  } else {
    const std::int64_t longest = mean_longest(documents, samples);
    work.longest_keys = share == DocumentShare::whole ? longest : ceil_div(longest, 2 * cp);
    work.longest_queries = work.longest_keys;
  }
  const auto packed = static_cast<std::int64_t>(documents.samples.size());
  const Int128 parts =
      Int128{2} * packed * (share == DocumentShare::whole ? 1 : cp) * (share == DocumentShare::ring_block ? cp : 1);
  work.pairs = static_cast<std::int64_t>((2 * pairs * samples + parts) / (2 * parts));
  DocumentTiles mean;
  mean.add(work.tiles, static_cast<double>(samples) / static_cast<double>(packed));
  work.tiles = mean;
  return work;
}

}  // namespace manyworlds::core::workload
