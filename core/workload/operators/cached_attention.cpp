// One kernel over the samples of a micro-batch, whose thread blocks have equally many keys.
#include "core/workload/operators/cached_attention.hpp"

#include <algorithm>

#include "core/compute/attention_tiles.hpp"

namespace manyworlds::core::workload {
namespace {

using compute::KernelClass;

/// Keys of a thread block where the queries of a head of keys fill one tile; it has as many times more as there are
/// tiles, which fill the compute units by themselves.
constexpr std::int64_t kKeysOfBlock = 512;

std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}

KernelClass forward_class(AttentionKernel kind) {
  if (kind == AttentionKernel::flash) return KernelClass::flash_forward;
  return kind == AttentionKernel::flash2 ? KernelClass::flash2_forward : KernelClass::cudnn_forward;
}

}  // namespace

Operator cached_attention(const RankShapes& shapes, CachedValues values) {
  const std::int64_t group = shapes.heads / shapes.kv_heads, rows = group * shapes.sequence,
                     row_tiles = ceil_div(rows, compute::kQueryTile), block = kKeysOfBlock * row_tiles,
                     seen = ceil_div(shapes.pairs, shapes.sequence);  // keys of a token, rounded up
  compute::DocumentTiles of_sample = compute::unmasked_tiles(rows, std::min(block, seen));
  of_sample.forward_blocks = static_cast<double>(row_tiles * ceil_div(seen, block));
  for (std::size_t i = 0; i < of_sample.forward.size(); ++i)
    of_sample.forward[i] = static_cast<double>(row_tiles * ceil_div(seen, compute::DocumentTiles::kKeyTiles[i]));
  compute::DocumentTiles tiles;
  tiles.add(of_sample, static_cast<double>(shapes.samples));
  WorkItem work = kernel(compute::packed_attention(
      "attention", forward_class(shapes.stack.attention),
      {shapes.samples * rows, shapes.samples * shapes.keys, shapes.samples * group * shapes.pairs, shapes.head_dim,
       shapes.value_dim, shapes.kv_heads, shapes.kv_heads, 0, false},
      tiles, std::min(block, seen)));
  compute::Kernel& shape = work.kernel()->shape;
  if (values == CachedValues::in_keys)
    shape.bytes -= 2 * shapes.samples * shapes.keys * shapes.kv_heads * shapes.value_dim;
  work.kernel()->depends_on_load = true;  // no row of measured times tells the cache
  Operator result;
  result.name = "attention";
  result.saved_bytes = 2 * shapes.tokens * shapes.qkv_width();
  result.forward.push_back(std::move(work));
  return result;
}

Operator cache_write(const RankShapes& shapes, std::int64_t width) {
  Operator result;
  result.name = "cache_write";
  result.forward.push_back(kernel(compute::memory_bound(result.name, 4 * shapes.tokens * width)));
  return result;
}

}  // namespace manyworlds::core::workload
