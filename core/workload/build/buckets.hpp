// Gradient buckets of a model chunk: parameters in the order of their gradients, divided every bucket_parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyworlds::core::workload {

struct Bucket {
  std::int64_t parameters = 0;
  std::size_t ready_after = 0;  // index of the part, in backward order, that completes the bucket's gradients
};

/// Returns the buckets of a chunk; `parts` has the parameters of each part in backward order. All but the last are
/// full.
std::vector<Bucket> buckets(const std::vector<std::int64_t>& parts, std::int64_t bucket_parameters);

}  // namespace manyworlds::core::workload
