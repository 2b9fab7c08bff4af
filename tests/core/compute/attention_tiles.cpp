// Tiles of packed documents against tiles counted one by one.
#include "core/compute/attention_tiles.hpp"

#include <catch2/catch.hpp>

#include "core/compute/attention.hpp"
#include "tests/core/workload/workload_models.hpp"

using namespace manyworlds::core;
using namespace manyworlds::core::compute;

namespace {

/// Pairs of a tile of queries [first, first + rows) and one of keys, of which the mask leaves at least one pair; keys
/// of a document count from its first token, queries from `begin`.
double tiles_by_hand(std::int64_t begin, std::int64_t end, std::int64_t rows, std::int64_t width, std::int64_t window) {
  double tiles = 0;
  for (std::int64_t first = begin; first < end; first += rows)
    for (std::int64_t key = 0; key < end; key += width) {
      bool seen = false;
      for (std::int64_t q = first; q < std::min(first + rows, end); ++q)
        for (std::int64_t k = key; k < std::min(key + width, end); ++k)
          seen |= k <= q && (window == 0 || k > q - window);
      tiles += seen;
    }
  return tiles;
}

}  // namespace

TEST_CASE("a document has the tiles that its mask leaves a pair of") {
  for (const auto& [begin, end] :
       {std::pair{0, 1}, {0, 63}, {0, 64}, {0, 65}, {0, 300}, {0, 641}, {128, 300}, {70, 500}})
    for (const std::int64_t window : {0, 40, 200}) {
      CAPTURE(begin, end, window);
      const DocumentTiles tiles = causal_tiles(begin, end, window);
      CHECK(tiles.forward_blocks == (end - begin + 63) / 64);
      CHECK(tiles.backward_blocks == (end + 127) / 128);
      for (std::size_t i = 0; i < tiles.forward.size(); ++i)
        CHECK(tiles.forward[i] == tiles_by_hand(begin, end, 64, DocumentTiles::kKeyTiles[i], window));
      CHECK(tiles.backward == tiles_by_hand(begin, end, 128, 128, window));
    }
}

TEST_CASE("queries that see all keys have as many tiles as both sides together") {
  const DocumentTiles tiles = unmasked_tiles(100, 130);
  CHECK(tiles.forward_blocks == 2);
  CHECK(tiles.forward == std::array<double, 4>{2 * 5, 2 * 3, 2 * 2, 2 * 1});
  CHECK(tiles.backward_blocks == 2);
  CHECK(tiles.backward == 2 * 1);
}

TEST_CASE("a packed kernel of one document takes as long as one that is not packed") {
  Gpu gpu = workload::round_gpu();
  gpu.compute_units = 132;
  for (const std::int64_t window : {0, 512})
    for (const std::int64_t sequence : {512, 1'000, 4'096, 16'384})
      for (const KernelClass each : {KernelClass::flash_forward, KernelClass::flash_backward}) {
        CAPTURE(window, sequence, static_cast<int>(each));
        const std::int64_t reach = window > 0 ? window : sequence;
        const AttentionShape shape{sequence, sequence, reach * (2 * sequence - reach) / 2, 128, 128,
                                   32,       8,        window < sequence ? window : 0};
        const Kernel plain = fused_attention("a", each, shape);
        const Kernel packed = packed_attention("a", each, shape, causal_tiles(0, sequence, window), sequence);
        CHECK(packed.flops == plain.flops);
        CHECK(packed.bytes == plain.bytes);
        const auto plain_ps = static_cast<double>(modelled_time(plain, gpu));
        // Without a window to the picosecond; with one, its mean over alignments stands in the other.
        CHECK(static_cast<double>(modelled_time(packed, gpu)) == Approx(plain_ps).epsilon(window > 0 ? 0.03 : 1e-9));
      }
}

TEST_CASE("many short documents take less than a long one, and more than their share of its pairs") {
  const Gpu gpu = workload::round_gpu();
  const auto time_of = [&](std::int64_t length) {
    DocumentTiles tiles;
    tiles.add(causal_tiles(0, length, 0), 8'192 / static_cast<double>(length));
    const AttentionShape shape{8'192, 8'192, 8'192 * length / 2, 128, 128, 32, 8, 0};
    return static_cast<double>(
        modelled_time(packed_attention("a", KernelClass::flash2_forward, shape, tiles, length), gpu));
  };
  double before = 0;
  for (const std::int64_t length : {128, 256, 1'024, 4'096, 8'192}) {  // of 64 tokens: as many tiles as of 128
    CAPTURE(length);
    CHECK(time_of(length) > before);
    before = time_of(length);
    if (length < 8'192) CHECK(time_of(length) > time_of(8'192) * static_cast<double>(length) / 8'192);
  }
}
