// Division of a chunk's gradients into buckets.
#include "core/workload/build/buckets.hpp"

#include "core/base/error.hpp"

namespace manyworlds::core::workload {

std::vector<Bucket> buckets(const std::vector<std::int64_t>& parts, std::int64_t bucket_parameters) {
  MANYWORLDS_CHECK(bucket_parameters > 0, "bucket_parameters = {}", bucket_parameters);
  std::vector<Bucket> all;
  std::int64_t open = 0;  // parameters in the bucket being filled
  for (std::size_t i = 0; i < parts.size(); ++i) {
    open += parts[i];
    for (; open >= bucket_parameters; open -= bucket_parameters) all.push_back({bucket_parameters, i});
  }
  if (open > 0) all.push_back({open, parts.size() - 1});
  return all;
}

}  // namespace manyworlds::core::workload
