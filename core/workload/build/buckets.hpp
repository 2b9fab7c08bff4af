// Gradient buckets of a model chunk: parameters in the order their gradients appear, cut every bucket_parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace manyworlds::core::workload {

struct Bucket {
  std::int64_t parameters = 0;
  std::size_t ready_after = 0;  // index of the part, in backward order, that brings its last gradient
};

/// `parts`: parameters of each part in backward order. Buckets are full but for the last one.
std::vector<Bucket> buckets(const std::vector<std::int64_t>& parts, std::int64_t bucket_parameters);

}  // namespace manyworlds::core::workload
