// A matrix product as both libraries of cuBLAS ask for it, and how it stands in the record.
#pragma once

#include <cstdint>

#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {

/// D[m, n] = A[m, k] B[k, n] + C, `batch` times; types are values of cudaDataType_t, and C is D in cuBLAS proper.
struct MatrixProduct {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  int type_a = 0, type_b = 0, type_d = 0;
  bool transposes_a = false, transposes_b = false;
  const void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
};

/// Adds the members of a product to the line.
void describe(Line& line, const MatrixProduct& product);

}  // namespace manyworlds::experiments::capture
