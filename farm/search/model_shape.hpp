// What of a model bounds the layouts that a search looks through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/catalog/catalog.hpp"
#include "farm/search/search_space.hpp"

namespace manyworlds::farm {

struct ModelShape {
  std::string name, like;    // of the model, and how a document names it
  bool has_sequence = true;  // false: the document says nothing of it, and it is assumed
  std::int64_t layers = 0, experts = 0, sequence = 0;
  std::vector<std::int64_t> tensor_sizes;  // which tensor-parallel ranks divide: heads, widths of parts
  std::vector<std::int64_t> key_heads;     // which they divide, or share with each other
  bool has_tables = false;                 // embedding tables, which all data-parallel ranks share out

  bool divides_over(std::int64_t tensor_ranks) const;
};

/// Returns the shape of the job's model, or of the catalog's. Throws InputError for names that the catalog lacks, and
/// models without layers, heads or a sequence.
ModelShape model_shape_of(const SearchOptions& options, const experiments::Catalog& catalog);

}  // namespace manyworlds::farm
