// A data-parallel training loop in small, for the tests of captures: each layer's gradients are reduced on a stream of
// their own while the one below goes backward. Arguments: ranks, the file of the communicator's id, steps, layers, MiB of
// activations; and "uneven", with which rank 1 reduces less in the last step.
#include "communicators.cuh"

#include <string.h>

extern "C" {
cudaError_t cudaMallocHost(void** out, size_t bytes);
}

static const int kFp32 = 7, kAvg = 4;
static const size_t kParameters = 1 << 20, kTokens = 8192;

__global__ void forward(const int* tokens, float* activations, int layer) {}
__global__ void backward(const float* activations, float* gradients, int layer) {}
__global__ void adam(float* parameters, const float* gradients, long count, int step) {}

int main(int count, char** arguments) {
  if (count < 6) return 4;
  const int ranks = atoi(arguments[1]), rank = atoi(getenv("RANK")), steps = atoi(arguments[3]), layers = atoi(arguments[4]);
  const bool is_uneven = count > 6 && strcmp(arguments[6], "uneven") == 0;
  float *parameters, *gradients, *activations, loss[1];
  int *tokens, *on_device;
  cudaStream_t compute, reduce;
  cudaEvent_t ready, reduced;
  ncclComm_t all;
  check(cudaMalloc((void**)&parameters, 4 * kParameters * layers), "parameters");
  check(cudaMalloc((void**)&gradients, 4 * kParameters * layers), "gradients");
  check(cudaMalloc((void**)&activations, strtoul(arguments[5], 0, 10) << 20), "activations");
  check(cudaMalloc((void**)&on_device, 4 * kTokens), "tokens");
  check(cudaMallocHost((void**)&tokens, 4 * kTokens), "tokens of the host");
  check(cudaStreamCreate(&compute), "stream");
  check(cudaStreamCreate(&reduce), "stream");
  check(cudaEventCreate(&ready), "event");
  check(cudaEventCreate(&reduced), "event");
  check(ncclCommInitRank(&all, ranks, carried(arguments[2], rank), rank), "communicator");
  check(cudaMemsetAsync(parameters, 0, 4 * kParameters * layers, compute), "set");
  check(cudaDeviceSynchronize(), "synchronise");
  for (int step = 0; step < steps; ++step) {
    check(cudaMemcpyAsync(on_device, tokens, 4 * kTokens, cudaMemcpyHostToDevice, compute), "copy in");
    for (int layer = 0; layer < layers; ++layer) forward<<<dim3(64), dim3(256), 0, compute>>>(on_device, activations, layer);
    for (int layer = layers; layer-- > 0;) {
      backward<<<dim3(64 + step), dim3(256), 0, compute>>>(activations, gradients, layer);
      check(cudaEventRecord(ready, compute), "record");
      check(cudaStreamWaitEvent(reduce, ready, 0), "wait");
      float* of_layer = gradients + kParameters * layer;
      const size_t fewer = is_uneven && rank == 1 && step == steps - 1 && layer == 0 ? 1 : 0;
      check(ncclAllReduce(of_layer, of_layer, kParameters - fewer, kFp32, kAvg, all, reduce), "all-reduce");
    }
    check(cudaEventRecord(reduced, reduce), "record");
    check(cudaStreamWaitEvent(compute, reduced, 0), "wait");
    adam<<<dim3(4096), dim3(256), 0, compute>>>(parameters, gradients, (long)(kParameters * layers), step);
    check(cudaMemcpyAsync(loss, activations, 4, cudaMemcpyDeviceToHost, compute), "copy out");
    check(cudaStreamSynchronize(compute), "synchronise");
    if (rank == 0) printf("step %d, loss %f\n", step, loss[0]);
  }
  check(cudaFree(activations), "free");
  check(ncclCommDestroy(all), "destroy");
  return 0;
}
