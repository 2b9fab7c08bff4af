// What the tests call of cuDNN's backend (graph) API, in declarations of our own (cuDNN documentation, "Backend API"), and
// graphs that are put together from it as cudnn-frontend does.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_only.cuh"

extern "C" {
int cudnnCreate(void** out);
int cudnnDestroy(void* handle);
int cudnnSetStream(void* handle, cudaStream_t stream);
void cudnnGetLastErrorString(char* out, size_t bytes);
size_t cudnnGetVersion();
size_t cudnnGetCudartVersion();
const char* cudnnGetErrorString(int status);
int cudnnBackendCreateDescriptor(int kind, void** out);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count, const void* elements);
int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t room, int64_t* count, void* elements);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendExecute(void* handle, void* plan, void* pack);
}

enum { kHandle = 0, kDataType = 1, kBoolean = 2, kInt64 = 3, kPointer = 6, kConvolutionMode = 7, kHeuristicMode = 8, kMode = 14,
       kDescriptor = 15, kReductionOperator = 18 };
enum { kFp32 = 0, kFp16 = 2, kBf16 = 9 };
enum { kMul = 1, kDiv = 6, kSub = 9, kAdd = 0, kExp = 13, kLog = 15, kGreaterOrEqual = 303, kIndex = 501, kSelect = 601 };
enum { kSum = 0, kLargest = 3 };

// Ends the program if a call of cuDNN failed.
inline void fine(int status, const char* what) {
  char why[256];
  if (status == 0) return;
  cudnnGetLastErrorString(why, sizeof why);
  printf("%s: %s: %s\n", what, cudnnGetErrorString(status), why);
  exit(1);
}

inline void* made(int kind) {
  void* descriptor;
  fine(cudnnBackendCreateDescriptor(kind, &descriptor), "create");
  return descriptor;
}
inline void set(void* descriptor, int attribute, int type, int64_t count, const void* elements) {
  fine(cudnnBackendSetAttribute(descriptor, attribute, type, count, elements), "set");
}
inline void name(void* descriptor, int attribute, void* other) { set(descriptor, attribute, kDescriptor, 1, &other); }
inline void* final(void* descriptor) {
  fine(cudnnBackendFinalize(descriptor), "finalize");
  return descriptor;
}

// A tensor of four dimensions, with strides as they stand in the list; virtual ones have ids from 100 on.
inline void* tensor(int64_t id, const int64_t (&dimensions)[4], const int64_t (&strides)[4], int type, bool is_by_value = false,
                    int64_t vectors = 1) {
  void* of = made(17);
  const int64_t alignment = 16, channels = 1;
  const bool is_virtual = id >= 100, yes = true;
  set(of, 901, kDataType, 1, &type);
  set(of, 902, kInt64, 4, dimensions);
  set(of, 903, kInt64, 4, strides);
  set(of, 906, kInt64, 1, &id);
  set(of, 900, kInt64, 1, &alignment);
  if (vectors > 1) set(of, 904, kInt64, 1, &vectors), set(of, 905, kInt64, 1, &channels);
  if (is_virtual) set(of, 907, kBoolean, 1, &yes);
  if (is_by_value) set(of, 908, kBoolean, 1, &yes);
  return final(of);
}
inline void* packed(int64_t id, const int64_t (&d)[4], int type, bool is_by_value = false) {
  return tensor(id, d, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, type, is_by_value);
}

inline void* matmul(void* a, void* b, void* c) {
  void *settings = made(18), *of = made(19);
  const int type = kFp32;
  set(settings, 1500, kDataType, 1, &type);
  name(of, 1520, a), name(of, 1521, b), name(of, 1522, c), name(of, 1523, final(settings));
  return final(of);
}
// `b` and `t` may be null: of operations of one input, and of those without a condition.
inline void* pointwise(int mode, void* x, void* b, void* t, void* y) {
  void *settings = made(0), *of = made(13);
  const int type = kFp32;
  set(settings, 0, kMode, 1, &mode);
  set(settings, 1, kDataType, 1, &type);
  name(of, 750, final(settings)), name(of, 751, x), name(of, 753, y);
  if (b) name(of, 752, b);
  if (t) name(of, 758, t);
  return final(of);
}
inline void* reduction(int by, void* x, void* y) {
  void *settings = made(21), *of = made(22);
  const int type = kFp32;
  set(settings, 1600, kReductionOperator, 1, &by);
  set(settings, 1601, kDataType, 1, &type);
  name(of, 1610, x), name(of, 1611, y), name(of, 1612, final(settings));
  return final(of);
}
inline void* reshape(void* x, void* y) {
  void* of = made(31);
  name(of, 2200, x), name(of, 2201, y);
  return final(of);
}

// The plan of a graph: what heuristics say of it, as it is.
inline void* planned(void* handle, void** operations, int count, bool finalizes = true) {
  void *graph = made(15), *heuristics = made(4), *config = made(3), *plan = made(5);
  const int mode = 3;
  int64_t found = 0, workspace = -1;
  set(graph, 801, kDescriptor, count, operations);
  set(graph, 800, kHandle, 1, &handle);
  name(heuristics, 201, final(graph));
  set(heuristics, 200, kHeuristicMode, 1, &mode);
  final(heuristics);
  fine(cudnnBackendGetAttribute(heuristics, 202, kDescriptor, 0, &found, 0), "count of engines");
  if (found != 1) exit(5);
  fine(cudnnBackendGetAttribute(heuristics, 202, kDescriptor, 1, &found, &config), "engines");
  name(plan, 401, config);
  if (!finalizes) return plan;
  final(plan);
  fine(cudnnBackendGetAttribute(plan, 402, kInt64, 1, 0, &workspace), "workspace");
  if (workspace != 0) exit(6);
  return plan;
}

inline void* pack(const int64_t* ids, void** pointers, int count) {
  void *of = made(16), *none = 0;
  set(of, 1000, kInt64, count, ids);
  set(of, 1001, kPointer, count, pointers);
  set(of, 1003, kPointer, 1, &none);
  return final(of);
}
