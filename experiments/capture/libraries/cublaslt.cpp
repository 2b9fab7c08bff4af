// Matrix products of cuBLASLt: the shapes, types and epilogue of each are recorded, and no algorithm is chosen. After
// the cuBLAS documentation, section "Using the cuBLASLt API".
#include <cstring>

#include "experiments/capture/libraries/library_types.hpp"
#include "experiments/capture/libraries/matrix_product.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

using namespace cublas;  // values of its boundary

struct Product {
  int compute_type = 0, transpose_a = 0, transpose_b = 0;
  unsigned epilogue = kDefaultEpilogue;
};

struct Layout {
  int type = 0;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  int batch = 1;
  std::int64_t batch_stride = 0;
};

template <typename T>
Status take(T& into, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes < sizeof into) return kInvalidArgument;
  std::memcpy(&into, from, sizeof into);
  return kFine;
}

template <typename T>
Status destroy(void* object) {
  delete static_cast<T*>(object);
  return kFine;
}

struct Extents {
  std::uint64_t m, n, k;
  bool agree;
};

/// D[m, n] = A[m, k] B[k, n], each as its transpose says.
Extents extents(const Product& of, const Layout& a, const Layout& b, const Layout& d) {
  const std::uint64_t m = of.transpose_a == 0 ? a.rows : a.columns, k = of.transpose_a == 0 ? a.columns : a.rows;
  const std::uint64_t n = of.transpose_b == 0 ? b.columns : b.rows, k_of_b = of.transpose_b == 0 ? b.rows : b.columns;
  return {m, n, k, k == k_of_b && d.rows == m && d.columns == n && a.batch == d.batch && b.batch == d.batch};
}

}  // namespace

extern "C" {

Status cublasLtCreate(void** out) {
  *out = new int(0);
  return kFine;
}
Status cublasLtDestroy(void* handle) {
  return destroy<int>(handle);
}

Status cublasLtMatmulDescCreate(void** out, int compute_type, int) {
  *out = new Product{.compute_type = compute_type};
  return kFine;
}
Status cublasLtMatmulDescDestroy(void* product) {
  return destroy<Product>(product);
}

/// Scales, pointers of bias and auxiliary outputs, and modes are taken and have no effect: the epilogue names them.
Status cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* from, std::size_t bytes) {
  if (product == nullptr) return kInvalidArgument;
  Product& of = *static_cast<Product*>(product);
  if (attribute == kTransposeA) return take(of.transpose_a, from, bytes);
  if (attribute == kTransposeB) return take(of.transpose_b, from, bytes);
  if (attribute == kEpilogue) return take(of.epilogue, from, bytes);
  return kFine;
}

Status cublasLtMatrixLayoutCreate(void** out, int type, std::uint64_t rows, std::uint64_t columns,
                                  std::int64_t leading) {
  *out = new Layout{.type = type, .rows = rows, .columns = columns, .leading = leading};
  return kFine;
}
Status cublasLtMatrixLayoutDestroy(void* layout) {
  return destroy<Layout>(layout);
}

Status cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* from, std::size_t bytes) {
  if (layout == nullptr) return kInvalidArgument;
  Layout& of = *static_cast<Layout*>(layout);
  switch (attribute) {
    case kType:
      return take(of.type, from, bytes);
    case kRows:
      return take(of.rows, from, bytes);
    case kColumns:
      return take(of.columns, from, bytes);
    case kLeading:
      return take(of.leading, from, bytes);
    case kBatch:
      return take(of.batch, from, bytes);
    case kBatchStride:
      return take(of.batch_stride, from, bytes);
    case kOrder: {
      int order = 0;
      const Status status = take(order, from, bytes);
      if (status == kFine && order != kOrderByColumns)
        end_capture("cublasLtMatrixLayoutSetAttribute: only the order by columns is modelled, not " +
                    std::to_string(order));
      return status;
    }
    default:
      end_capture("cublasLtMatrixLayoutSetAttribute: attribute " + std::to_string(attribute) + " is not modelled");
  }
}

Status cublasLtMatmulPreferenceCreate(void** out) {
  return cublasLtCreate(out);
}
Status cublasLtMatmulPreferenceDestroy(void* preference) {
  return destroy<int>(preference);
}
/// Preferences choose among algorithms, of which the capture has one.
Status cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) {
  return kFine;
}

Status cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int asked, Heuristic* out,
                                      int* found) {
  if (asked < 1 || out == nullptr || found == nullptr) return kInvalidArgument;
  *out = {};
  *found = 1;
  return kFine;
}

Status cublasLtMatmul(void*, void* product, const void*, const void* a, void* a_layout, const void* b, void* b_layout,
                      const void*, const void* c, void* c_layout, void* d, void* d_layout, const void*, void*,
                      std::size_t workspace_bytes, void* stream) {
  const std::lock_guard lock(session().mutex);
  Line line("cublasLtMatmul");
  if (!product || !a_layout || !b_layout || !c_layout || !d_layout) return recorded(line), kInvalidArgument;
  const Product& of = *static_cast<Product*>(product);
  const Layout &of_a = *static_cast<Layout*>(a_layout), &of_b = *static_cast<Layout*>(b_layout),
               &of_d = *static_cast<Layout*>(d_layout);
  const Extents shape = extents(of, of_a, of_b, of_d);
  describe(line,
           {static_cast<std::int64_t>(shape.m), static_cast<std::int64_t>(shape.n), static_cast<std::int64_t>(shape.k),
            of_d.batch, of_a.type, of_b.type, of_d.type, of.transpose_a != 0, of.transpose_b != 0, a, b, c, d});
  line.number("epilogue", of.epilogue).number("compute_type", of.compute_type);
  line.number("workspace_bytes", static_cast<std::int64_t>(workspace_bytes)).number("stream", stream_number(stream));
  const Status status = shape.agree && stream_number(stream) >= 0 ? kFine : kInvalidArgument;
  if (status != kFine) line.number("cublas_error", status);
  recorded(line);
  return status;
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
