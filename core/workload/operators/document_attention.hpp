// The attention work of packed documents on one rank: pairs and tiles of a micro-batch, as the mean over packed
// samples. All micro-batches and ranks get that mean: how unequal they are is workload::document_spread().
#pragma once

#include <cstdint>

#include "core/compute/attention_tiles.hpp"
#include "core/workload/distributions/documents.hpp"

namespace manyworlds::core::workload {

/// What of documents the kernels of a context-parallel rank see. whole: all of them, alone or with a share of the
/// heads. ring_block: of every document its share of the queries and one block of its keys, as Transformer Engine
/// partitions each document by itself (thd_get_partitioned_indices()). chunks: the queries of two of 2 cp chunks of the
/// sample, one from each end, and all keys before them (Dubey et al. 2024, The Llama 3 Herd of Models, section 3.3.2);
/// ranks then differ, and this is their mean.
enum class DocumentShare : std::uint8_t { whole, ring_block, chunks };

/// One head's attention to the documents of a micro-batch.
struct DocumentWork {
  std::int64_t pairs = 0;  // rounded to a whole number
  compute::DocumentTiles tiles;
  std::int64_t longest_keys = 0, longest_queries = 0;  // that the longest thread block walks, forward and backward
};

/// Returns the work of `samples` samples on one of `cp` ranks; a query sees at most `window` keys (0: all).
DocumentWork document_work(const Documents& documents, std::int64_t samples, std::int64_t window, DocumentShare share,
                           std::int64_t cp);

}  // namespace manyworlds::core::workload
