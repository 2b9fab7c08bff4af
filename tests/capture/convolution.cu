// Convolutions by cuDNN's backend API and by its legacy API, in each direction, and the layers around them. Arguments: what
// is done wrong, "vectors", or nothing.
#include "cudnn.cuh"

extern "C" {
int cudnnCreateTensorDescriptor(void** out);
int cudnnSetTensor4dDescriptor(void* descriptor, int format, int type, int n, int c, int h, int w);
int cudnnSetTensorNdDescriptor(void* descriptor, int type, int count, const int* dimensions, const int* strides);
int cudnnCreateFilterDescriptor(void** out);
int cudnnSetFilter4dDescriptor(void* descriptor, int type, int format, int k, int c, int h, int w);
int cudnnCreateConvolutionDescriptor(void** out);
int cudnnSetConvolution2dDescriptor(void*, int, int, int, int, int, int, int mode, int type);
int cudnnSetConvolutionGroupCount(void* descriptor, int groups);
int cudnnGetConvolution2dForwardOutputDim(void* convolution, void* x, void* w, int* n, int* k, int* oh, int* ow);
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int, int*, void*);
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, size_t*);
int cudnnConvolutionForward(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t, const void*,
                            void*, void*);
int cudnnConvolutionBackwardData(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t,
                                 const void*, void*, void*);
int cudnnConvolutionBackwardFilter(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t,
                                   const void*, void*, void*);
int cudnnCreatePoolingDescriptor(void** out);
int cudnnSetPooling2dDescriptor(void*, int, int, int, int, int, int, int, int);
int cudnnPoolingForward(void*, void*, const void*, void*, const void*, const void*, void*, void*);
int cudnnCreateActivationDescriptor(void** out);
int cudnnSetActivationDescriptor(void*, int, int, double);
int cudnnActivationForward(void*, void*, const void*, void*, const void*, const void*, void*, void*);
int cudnnDeriveBNTensorDescriptor(void*, void*, int);
int cudnnBatchNormalizationForwardTraining(void*, int, const void*, const void*, void*, const void*, void*, void*, void*,
                                           const void*, const void*, double, void*, void*, double, void*, void*);
int cudnnRNNForward(void*);
}

enum { kForwardOperation = 10, kFilterOperation = 11, kDataOperation = 12 };

struct Algorithm {
  int number, status;
  float ms;
  size_t workspace_bytes;
  int is_deterministic, math, reserved[3];
};

// Every place of an image, or with a stride of 2, both padded by 1.
static void* settings(int64_t stride) {
  const int64_t two = 2, ones[] = {1, 1}, strides[] = {stride, stride};
  const int mode = 1, type = kFp32;
  void* by = made(1);
  set(by, 100, kDataType, 1, &type);
  set(by, 101, kConvolutionMode, 1, &mode);
  set(by, 102, kInt64, 2, ones), set(by, 103, kInt64, 2, strides), set(by, 104, kInt64, 2, ones), set(by, 105, kInt64, 2, ones);
  set(by, 106, kInt64, 1, &two);
  return final(by);
}

// 64 channels of 6 x 6 as 2 vectors of 32, by 32 filters of 3 x 3.
static void by_vectors(void* handle, void* data) {
  const int kInt8 = 3;
  void* of = made(kForwardOperation);
  name(of, 702, settings(1));
  name(of, 704, tensor(1, {1, 2, 6, 6}, {72, 36, 6, 1}, kInt8, false, 32));
  name(of, 703, tensor(2, {32, 2, 3, 3}, {18, 9, 3, 1}, kInt8, false, 32));
  name(of, 705, tensor(3, {1, 1, 6, 6}, {36, 36, 6, 1}, kInt8, false, 32));
  final(of);
  const int64_t ids[] = {1, 2, 3};
  void* pointers[] = {data, data, data};
  fine(cudnnBackendExecute(handle, planned(handle, &of, 1), pack(ids, pointers, 3)), "execute");
}

// 16 images of 64 channels and 56 x 56, by 128 filters of 3 x 3, every second place, padded by 1.
static void by_graphs(void* handle, void* data) {
  void* by = settings(2);
  void *x = packed(1, {16, 64, 56, 56}, kBf16), *w = packed(2, {128, 64, 3, 3}, kBf16), *y = packed(3, {16, 128, 28, 28}, kBf16);
  const int kinds[] = {kForwardOperation, kDataOperation, kFilterOperation};
  const int convolutions[] = {702, 708, 714};
  const int parts[][3] = {{704, 703, 705}, {710, 709, 711}, {716, 715, 717}};  // of x, w and y, or of their gradients
  for (int direction = 0; direction < 3; ++direction) {
    void* of = made(kinds[direction]);
    name(of, convolutions[direction], by);
    name(of, parts[direction][0], x), name(of, parts[direction][1], w), name(of, parts[direction][2], y);
    final(of);
    const int64_t ids[] = {1, 2, 3};
    void* pointers[] = {data, data, data};
    fine(cudnnBackendExecute(handle, planned(handle, &of, 1), pack(ids, pointers, 3)), "execute");
  }
}

// 8 images of 32 channels and 28 x 28, by 64 filters of 5 x 5 in 4 groups.
static void by_calls(void* handle, void* data, const char* wrong) {
  void *x, *y, *w, *by, *pool, *pooled, *activation, *channels;
  const float one = 1, zero = 0;
  int n, k, h, width, found;
  size_t bytes = 1;
  Algorithm algorithm;
  fine(cudnnCreateTensorDescriptor(&x) | cudnnCreateTensorDescriptor(&y) | cudnnCreateTensorDescriptor(&pooled), "tensors");
  fine(cudnnCreateTensorDescriptor(&channels) | cudnnCreateFilterDescriptor(&w) | cudnnCreateConvolutionDescriptor(&by), "more");
  fine(cudnnSetTensor4dDescriptor(x, 1, kFp16, 8, 32, 28, 28), "x");
  fine(cudnnSetFilter4dDescriptor(w, kFp16, 1, 64, 8, 5, 5), "w");
  fine(cudnnSetConvolution2dDescriptor(by, 2, 2, 1, 1, 1, 1, 1, kFp32), "convolution");
  fine(cudnnSetConvolutionGroupCount(by, 4), "groups");
  fine(cudnnGetConvolution2dForwardOutputDim(by, x, w, &n, &k, &h, &width), "shape");
  if (strcmp(wrong, "shape") == 0) ++h;
  if (strcmp(wrong, "undefined") != 0) fine(cudnnSetTensor4dDescriptor(y, 1, kFp16, n, k, h, width), "y");
  fine(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, by, y, 1, &found, &algorithm), "algorithm");
  fine(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, by, y, algorithm.number, &bytes), "workspace");
  if (found != 1 || bytes != algorithm.workspace_bytes || bytes != 0) exit(7);
  fine(cudnnConvolutionForward(handle, &one, x, data, w, data, by, algorithm.number, 0, 0, &zero, y, data), "forward");
  fine(cudnnConvolutionBackwardData(handle, &one, w, data, y, data, by, 1, 0, 0, &zero, x, data), "data");
  fine(cudnnConvolutionBackwardFilter(handle, &one, x, data, y, data, by, 1, 0, 0, &zero, w, data), "filter");
  fine(cudnnDeriveBNTensorDescriptor(channels, y, 1), "channels");
  fine(cudnnBatchNormalizationForwardTraining(handle, 1, &one, &zero, y, data, y, data, channels, data, data, 0.1, data, data, 1e-5,
                                              data, data), "batch norm");
  fine(cudnnCreateActivationDescriptor(&activation) | cudnnSetActivationDescriptor(activation, 1, 0, 0), "activation");
  fine(cudnnActivationForward(handle, activation, &one, y, data, &zero, y, data), "relu");
  fine(cudnnCreatePoolingDescriptor(&pool) | cudnnSetPooling2dDescriptor(pool, 0, 0, 2, 2, 0, 0, 2, 2), "pooling");
  fine(cudnnSetTensor4dDescriptor(pooled, 1, kFp16, 8, 64, 14, 14), "pooled");
  fine(cudnnPoolingForward(handle, pool, &one, y, data, &zero, pooled, data), "pool");
}

int main(int count, char** arguments) {
  const char* wrong = count > 1 ? arguments[1] : "";
  void *handle, *data;
  cudaStream_t stream;
  cudaMalloc(&data, strcmp(wrong, "small") == 0 ? 1 << 10 : 64 << 20);
  cudaStreamCreate(&stream);
  fine(cudnnCreate(&handle), "handle");
  fine(cudnnSetStream(handle, stream), "stream");
  by_graphs(handle, data);
  if (strcmp(wrong, "vectors") == 0) by_vectors(handle, data);
  by_calls(handle, data, wrong);
  if (strcmp(wrong, "unserved") == 0) return cudnnRNNForward(handle);
  return cudnnDestroy(handle);
}
