// Matrix products of cuBLAS proper: those that training calls. After the cuBLAS documentation, "Using the cuBLAS API".
#include "experiments/capture/libraries/library_types.hpp"
#include "experiments/capture/libraries/matrix_product.hpp"
#include "experiments/capture/session.hpp"

namespace manyworlds::experiments::capture {
namespace {

using namespace cublas;  // values of its boundary

/// What a cublasHandle_t points to.
struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0, math_mode = 0;
};

constexpr int kFp16 = 2, kFp32 = 0, kFp64 = 1;  // cudaDataType_t

Status multiply(const char* call, void* handle, const MatrixProduct& product, int compute_type) {
  const std::lock_guard lock(session().mutex);
  Line line(call);
  if (handle == nullptr) return recorded(line), kInvalidArgument;
  const int stream = stream_number(static_cast<Handle*>(handle)->stream);
  describe(line, product);
  if (compute_type >= 0) line.number("compute_type", compute_type);
  line.number("stream", stream);
  const bool is_valid = product.m >= 0 && product.n >= 0 && product.k >= 0 && product.batch >= 0 && stream >= 0;
  const Status status = is_valid ? kFine : kInvalidArgument;
  if (status != kFine) line.number("cublas_error", status);
  recorded(line);
  return status;
}

/// Products whose matrices all have the type that the function's name tells.
Status multiply_all(const char* call, void* handle, int type, int ta, int tb, int m, int n, int k, const void* a,
                    const void* b, void* c, int batch) {
  return multiply(call, handle, {m, n, k, batch, type, type, type, ta != 0, tb != 0, a, b, c, c}, -1);
}

}  // namespace

extern "C" {

Status cublasCreate_v2(void** out) {
  if (out == nullptr) return kInvalidArgument;
  *out = new Handle;
  return kFine;
}
Status cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return kFine;
}
Status cublasGetVersion_v2(void*, int* out) {
  if (out == nullptr) return kInvalidArgument;
  *out = 10000 * kCudaMajor;
  return kFine;
}
Status cublasSetStream_v2(void* handle, void* stream) {
  if (handle == nullptr) return kInvalidArgument;
  static_cast<Handle*>(handle)->stream = stream;
  return kFine;
}
Status cublasGetStream_v2(void* handle, void** out) {
  if (handle == nullptr || out == nullptr) return kInvalidArgument;
  *out = static_cast<Handle*>(handle)->stream;
  return kFine;
}
const char* cublasGetStatusName(Status status) {
  return status == kFine ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE";
}
const char* cublasGetStatusString(Status status) {
  return status == kFine ? "success" : "an invalid value was given to a function";
}
/// The workspace is the program's own allocation, which is recorded where it is made.
Status cublasSetWorkspace_v2(void*, void*, std::size_t) {
  return kFine;
}
Status cublasSetMathMode(void* handle, int mode) {
  if (handle == nullptr) return kInvalidArgument;
  static_cast<Handle*>(handle)->math_mode = mode;
  return kFine;
}
Status cublasGetMathMode(void* handle, int* out) {
  if (handle == nullptr || out == nullptr) return kInvalidArgument;
  *out = static_cast<Handle*>(handle)->math_mode;
  return kFine;
}
Status cublasSetPointerMode_v2(void* handle, int mode) {
  if (handle == nullptr) return kInvalidArgument;
  static_cast<Handle*>(handle)->pointer_mode = mode;
  return kFine;
}
Status cublasGetPointerMode_v2(void* handle, int* out) {
  if (handle == nullptr || out == nullptr) return kInvalidArgument;
  *out = static_cast<Handle*>(handle)->pointer_mode;
  return kFine;
}

Status cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a, int type_a, int,
                    const void* b, int type_b, int, const void*, void* c, int type_c, int, int compute_type, int) {
  return multiply("cublasGemmEx", handle, {m, n, k, 1, type_a, type_b, type_c, ta != 0, tb != 0, a, b, c, c},
                  compute_type);
}
Status cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a,
                                  int type_a, int, long long, const void* b, int type_b, int, long long, const void*,
                                  void* c, int type_c, int, long long, int batch, int compute_type, int) {
  return multiply("cublasGemmStridedBatchedEx", handle,
                  {m, n, k, batch, type_a, type_b, type_c, ta != 0, tb != 0, a, b, c, c}, compute_type);
}
Status cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float*, const float* a, int,
                      const float* b, int, const float*, float* c, int) {
  return multiply_all("cublasSgemm", handle, kFp32, ta, tb, m, n, k, a, b, c, 1);
}
Status cublasDgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const double*, const double* a, int,
                      const double* b, int, const double*, double* c, int) {
  return multiply_all("cublasDgemm", handle, kFp64, ta, tb, m, n, k, a, b, c, 1);
}
Status cublasHgemm(void* handle, int ta, int tb, int m, int n, int k, const void*, const void* a, int, const void* b,
                   int, const void*, void* c, int) {
  return multiply_all("cublasHgemm", handle, kFp16, ta, tb, m, n, k, a, b, c, 1);
}
Status cublasSgemmStridedBatched(void* handle, int ta, int tb, int m, int n, int k, const float*, const float* a, int,
                                 long long, const float* b, int, long long, const float*, float* c, int, long long,
                                 int batch) {
  return multiply_all("cublasSgemmStridedBatched", handle, kFp32, ta, tb, m, n, k, a, b, c, batch);
}

}  // extern "C"

}  // namespace manyworlds::experiments::capture
