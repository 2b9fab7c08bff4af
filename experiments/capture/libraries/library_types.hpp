// What crosses the boundaries of NCCL and cuBLASLt, in declarations of our own, as their documentation has them.
// tests/capture/layouts.cpp compares them with installed headers, where there are some.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

namespace manyworlds::experiments::capture {

namespace nccl {

using Result = int;  // ncclResult_t
inline constexpr Result kFine = 0, kFailedCuda = 1, kInvalidArgument = 4, kInvalidUsage = 5;

inline constexpr int kNoColor = -1;  // NCCL_SPLIT_NOCOLOR

struct UniqueId {
  char key[128];
};

struct DataType {
  const char* name;
  int bytes;
};
/// ncclDataType_t, by its value.
inline constexpr DataType kDataTypes[] = {{"int8", 1},  {"uint8", 1},  {"int32", 4}, {"uint32", 4},
                                          {"int64", 8}, {"uint64", 8}, {"fp16", 2},  {"fp32", 4},
                                          {"fp64", 8},  {"bf16", 2},   {"fp8", 1},   {"fp8_e5m2", 1}};
/// ncclRedOp_t, by its value.
inline constexpr const char* kReductions[] = {"sum", "prod", "max", "min", "avg"};
/// The first of those that programs make: kReductions are numbered from 0, and a gap is left as in NCCL.
inline constexpr int kFirstMadeReduction = 16;

}  // namespace nccl

namespace cublas {

using Status = int;  // cublasStatus_t
inline constexpr Status kFine = 0, kInvalidArgument = 7;

/// cublasLtMatmulDescAttributes_t and cublasLtMatrixLayoutAttribute_t: those that change what is computed.
inline constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7;
inline constexpr int kType = 0, kOrder = 1, kRows = 2, kColumns = 3, kLeading = 4, kBatch = 5, kBatchStride = 6;
inline constexpr int kOrderByColumns = 0;
inline constexpr unsigned kDefaultEpilogue = 1;

/// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  unsigned char algorithm[64];
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

struct DataType {
  int number;
  const char* name;
};
/// cudaDataType_t: those of training.
inline constexpr DataType kDataTypes[] = {{0, "fp32"},   {1, "fp64"},  {2, "fp16"}, {3, "int8"},
                                          {10, "int32"}, {14, "bf16"}, {28, "fp8"}, {29, "fp8_e5m2"}};

/// The name of a cudaDataType_t, or `type <number>` of one that is not in the list.
inline std::string data_type(int type) {
  for (const DataType& each : kDataTypes)
    if (each.number == type) return each.name;
  return "type " + std::to_string(type);
}

}  // namespace cublas

}  // namespace manyworlds::experiments::capture
