// A program of a graph that is made node by node, for the tests of the capture: a copy in and a set, side by side; a kernel
// after both; two kernels after that; and, after these two, a copy out and a function of the host. It is launched `launches`
// times; then a kernel of the instance is changed, and it is launched once more; and the instance takes over what the graph has
// become, and is launched again. Second argument: what the program asks for
// wrongly (cycle, other), or the capture has to refuse (captured, extra, gaps, array, clone).
#include "host_only.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct CUgraphNode_st* cudaGraphNode_t;
struct KernelNode {
  void* function;
  dim3 grid, block;
  unsigned shared_bytes;
  void **values, **extra;
};
struct SetNode {
  void* to;
  size_t pitch_bytes;
  unsigned value, element_bytes;
  size_t width, height;
};
struct HostNode {
  void (*function)(void*);
  void* data;
};
struct PitchedPlace {
  void* pointer;
  size_t pitch_bytes, width, height;
};
struct CopyNode {
  void* from_array;
  size_t from_position[3];
  PitchedPlace from;
  void* to_array;
  size_t to_position[3];
  PitchedPlace to;
  size_t extent[3];
  int kind;
};
static_assert(sizeof(CopyNode) == 160 && sizeof(KernelNode) == 56 && sizeof(SetNode) == 40, "as of CUDA");

extern "C" {
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t, const KernelNode*);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t, const CopyNode*);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t, const SetNode*);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t* after, size_t, const HostNode*);
#if CUDA_MAJOR == 12
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t);
#else
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const void* edges, size_t);
#endif
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t* out, size_t* count);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const KernelNode* with);
struct Update {
  int result;
  cudaGraphNode_t node, from_node;
};
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t instance, cudaGraph_t graph, Update* out);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t instance, cudaGraphNode_t node, const KernelNode* with);
}

__global__ void join(float* data, const float* other, int count) {}
__global__ void left(float* data, int step) {}
__global__ void right(float* data, int step) {}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
static void add_one(void* to) { ++*static_cast<int*>(to); }

static cudaError_t depend(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
#if CUDA_MAJOR == 12
  return cudaGraphAddDependencies(graph, &from, &to, 1);
#else
  return cudaGraphAddDependencies(graph, &from, &to, 0, 1);
#endif
}

template <class... Arguments>
static KernelNode kernel(void (*function)(Arguments...), unsigned blocks, void** values) {
  return {(void*)function, dim3(blocks), dim3(128), 0, values, 0};
}

int main(int count, char** arguments) {
  const int launches = count > 1 ? atoi(arguments[1]) : 2;
  const char* refused = count > 2 ? arguments[2] : "";
  const size_t kBytes = 4096;
  int elements = 1024, step = 1, calls = 0;
  float *a, *b, host[1024];
  cudaStream_t stream;
  check(cudaMalloc((void**)&a, kBytes), "a");
  check(cudaMalloc((void**)&b, kBytes), "b");
  check(cudaStreamCreate(&stream), "stream");

  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaGraphNode_t in, zero, joined, lefts, rights, all, out, told;
  CopyNode copy = {};
  copy.from = {host, kBytes, kBytes, 1}, copy.to = {a, kBytes, kBytes, 1};
  copy.extent[0] = kBytes, copy.extent[1] = copy.extent[2] = 1, copy.kind = cudaMemcpyHostToDevice;
  if (strcmp(refused, "gaps") == 0) copy.extent[0] /= 4, copy.extent[1] = 4;
  if (strcmp(refused, "array") == 0) copy.to_array = a;
  const SetNode set = {b, 0, 0, 4, kBytes / 4, 1};
  const HostNode tell = {add_one, &calls};
  void* of_join[] = {&a, &b, &elements};
  void* of_left[] = {&a, &step};
  void* of_right[] = {&b, &step};
  KernelNode joins = kernel(join, 8, of_join);
  const KernelNode goes_left = kernel(left, 4, of_left), goes_right = kernel(right, 2, of_right);
  if (strcmp(refused, "extra") == 0) joins.extra = of_join;

  check(cudaGraphCreate(&graph, 0), "graph");
  check(cudaGraphAddMemcpyNode(&in, graph, 0, 0, &copy), "copy in");
  check(cudaGraphAddMemsetNode(&zero, graph, 0, 0, &set), "set");
  const cudaGraphNode_t both[] = {in, zero};
  check(cudaGraphAddKernelNode(&joined, graph, both, 2, &joins), "join");
  check(cudaGraphAddKernelNode(&lefts, graph, &joined, 1, &goes_left), "left");
  check(cudaGraphAddKernelNode(&rights, graph, &joined, 1, &goes_right), "right");
  check(cudaGraphAddEmptyNode(&all, graph, &lefts, 1), "all");
  check(depend(graph, rights, all), "dependencies");
  check(cudaGraphAddMemcpyNode1D(&out, graph, &all, 1, host, a, kBytes, cudaMemcpyDeviceToHost), "copy out");
  check(cudaGraphAddHostNode(&told, graph, &out, 1, &tell), "function of the host");
  size_t nodes = 0;
  check(cudaGraphGetNodes(graph, 0, &nodes), "nodes");
  if (nodes != 8) return 3;
  if (strcmp(refused, "cycle") == 0) check(depend(graph, told, in), "dependencies");
  if (strcmp(refused, "clone") == 0) cudaGraphClone(&graph, graph);
  if (strcmp(refused, "other") == 0) {
    cudaGraph_t other;
    check(cudaGraphCreate(&other, 0), "graph");
    check(cudaGraphAddEmptyNode(&all, other, &in, 1), "a node that waits for one of another graph");
  }
  if (strcmp(refused, "captured") == 0) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin");
    check(cudaStreamEndCapture(stream, &graph), "end");
    cudaGraphAddEmptyNode(&all, graph, 0, 0);
  }

  check(cudaGraphInstantiate(&instance, graph, 0), "instantiate");
  const KernelNode wider = kernel(left, 16, of_left);
  check(cudaGraphKernelNodeSetParams(lefts, &wider), "a node that the instance has already");
  for (int launch = 0; launch < launches; ++launch) {
    for (float& each : host) each = 7;
    check(cudaGraphLaunch(instance, stream), "launch");
    check(cudaStreamSynchronize(stream), "synchronise");
    for (float each : host)
      if (each != 0) return 4;  // what no device computed reads as zeros
  }
  step = 2;
  const KernelNode narrower = kernel(right, 1, of_right);
  check(cudaGraphExecKernelNodeSetParams(instance, rights, &narrower), "a kernel of the instance");
  if (cudaGraphExecKernelNodeSetParams(instance, in, &narrower) == cudaSuccess) return 5;  // which is a copy
  check(cudaGraphLaunch(instance, stream), "launch");
  check(cudaStreamSynchronize(stream), "synchronise");
  // The graph itself has the wider kernel on the left, which the instance takes over; one of other nodes it does not.
  cudaGraph_t empty;
  Update update = {-1, 0, 0};
  check(cudaGraphExecUpdate(instance, graph, &update), "update");
  if (update.result != 0) return 6;
  check(cudaGraphLaunch(instance, stream), "launch");
  check(cudaStreamSynchronize(stream), "synchronise");
  check(cudaGraphCreate(&empty, 0), "graph");
  if (cudaGraphExecUpdate(instance, empty, &update) == cudaSuccess || update.result != 2) return 7;
  check(cudaGraphExecDestroy(instance), "destroy");
  check(cudaGraphDestroy(graph), "destroy");
  printf("done %d\n", calls);
  return 0;
}
