// A program of matrix products, for the tests of the capture: by cuBLAS on a stream of its own, and by cuBLASLt.
#include "host_only.cuh"

extern "C" {
int cublasCreate_v2(void** out);
int cublasDestroy_v2(void* handle);
int cublasSetStream_v2(void* handle, cudaStream_t stream);
int cublasSgemm_v2(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
                   float*, int);
int cublasGemmStridedBatchedEx(void*, int, int, int, int, int, const void*, const void*, int, int, long long,
                               const void*, int, int, long long, const void*, void*, int, int, long long, int, int, int);
int cublasLtCreate(void** out);
int cublasLtMatmulDescCreate(void** out, int compute, int scale);
int cublasLtMatmulDescSetAttribute(void* product, int attribute, const void* from, size_t bytes);
int cublasLtMatrixLayoutCreate(void** out, int type, unsigned long rows, unsigned long columns, long leading);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                   void*, void*, const void*, void*, size_t, cudaStream_t);
}

int main() {
  const int kBf16 = 14, kFp32 = 0, kCompute32 = 68, kTransposed = 1, kTransposeA = 3;
  const float one = 1, zero = 0;
  float* data;
  cudaStream_t stream;
  void *handle, *lt, *product, *a, *b, *d;
  cudaMalloc((void**)&data, 1 << 20);
  cudaStreamCreate(&stream);
  int errors = cublasCreate_v2(&handle) + cublasSetStream_v2(handle, stream);
  errors += cublasSgemm_v2(handle, 0, 1, 16, 24, 32, &one, data, 16, data + 1024, 24, &zero, data + 2048, 16);
  errors += cublasGemmStridedBatchedEx(handle, 1, 0, 64, 48, 32, &one, data, kBf16, 32, 2048, data, kBf16, 32, 1536, &zero,
                                       data, kFp32, 64, 3072, 12, kCompute32, 99);
  errors += cublasDestroy_v2(handle);
  // D[128, 8] of A, which is stored as [256, 128], and B[256, 8].
  errors += cublasLtCreate(&lt) + cublasLtMatmulDescCreate(&product, kCompute32, kFp32);
  errors += cublasLtMatmulDescSetAttribute(product, kTransposeA, &kTransposed, sizeof kTransposed);
  errors += cublasLtMatrixLayoutCreate(&a, kBf16, 256, 128, 256) + cublasLtMatrixLayoutCreate(&b, kBf16, 256, 8, 256);
  errors += cublasLtMatrixLayoutCreate(&d, kBf16, 128, 8, 128);
  errors += cublasLtMatmul(lt, product, &one, data, a, data, b, &zero, data, d, data, d, 0, 0, 0, stream);
  if (errors != 0) return 1;
  // B and A the other way round have no inner size in common.
  return cublasLtMatmul(lt, product, &one, data, b, data, a, &zero, data, d, data, d, 0, 0, 0, stream) == 0 ? 3 : 0;
}
