// A program of collectives, for the tests of the capture: rank 0 writes the id of the communicator to the file that the
// second argument names, and every other rank reads it there, as programs without MPI do. First argument: number of ranks; with
// a third one, communicators are split.
#include "communicators.cuh"

extern "C" {
int ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* out, void* configuration);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllGather(const void*, void*, size_t, int type, ncclComm_t, cudaStream_t);
int ncclReduceScatter(const void*, void*, size_t, int type, int reduction, ncclComm_t, cudaStream_t);
int ncclBroadcast(const void*, void*, size_t, int type, int root, ncclComm_t, cudaStream_t);
int ncclReduce(const void*, void*, size_t, int type, int reduction, int root, ncclComm_t, cudaStream_t);
int ncclSend(const void*, size_t, int type, int peer, ncclComm_t, cudaStream_t);
int ncclRecv(void*, size_t, int type, int peer, ncclComm_t, cudaStream_t);
}

static const int kFp32 = 7, kBf16 = 9, kSum = 0, kAvg = 4;

int main(int count, char** arguments) {
  if (count < 3) return 4;
  const int size = atoi(arguments[1]), rank = atoi(getenv("MANYWORLDS_RANK"));
  const size_t elements = 1000;
  char* data;
  cudaStream_t stream;
  ncclComm_t all;
  check(cudaMalloc((void**)&data, 4 * elements * size), "data");
  check(cudaStreamCreate(&stream), "stream");
  check(ncclCommInitRank(&all, size, carried(arguments[2], rank), rank), "communicator");
  check(ncclAllReduce(data, data, elements, kFp32, kAvg, all, stream), "all-reduce");
  check(ncclAllGather(data + 2 * elements * rank, data, elements, kBf16, all, stream), "all-gather");
  check(ncclReduceScatter(data, data + 4 * elements * rank, elements, kFp32, kSum, all, stream), "reduce-scatter");
  check(ncclBroadcast(data, data, elements, kFp32, 1, all, stream), "broadcast");
  check(ncclReduce(data, data, elements, kFp32, kSum, 0, all, stream), "reduce");
  check(ncclGroupStart(), "group");
  check(ncclSend(data, 10, kFp32, (rank + 1) % size, all, stream), "send");
  check(ncclRecv(data + 40, 10, kFp32, (rank + size - 1) % size, all, stream), "receive");
  check(ncclGroupEnd(), "group");
  // Rounding adds less than 512 bytes, which one more of each rank stays within, and 200 more of each do not.
  check(ncclAllGather(data, data, elements + 1, kFp32, all, stream), "an all-gather that is a little too large");
  if (ncclAllGather(data, data, elements + 200, kFp32, all, stream) == 0) return 3;
  if (count > 3) {  // pairs, of neighbours and of those that are two apart
    ncclComm_t none, rows, columns;
    check(ncclCommSplit(all, -1, 0, &none, NULL), "a split without a color");
    check(none != NULL, "a communicator without a color");
    check(ncclCommSplit(all, rank / 2, rank, &rows, NULL), "rows");
    check(ncclCommSplit(all, rank % 2, rank, &columns, NULL), "columns");
    check(ncclAllReduce(data, data, elements, kFp32, kSum, rows, stream), "all-reduce of rows");
    check(ncclAllReduce(data, data, elements, kFp32, kSum, columns, stream), "all-reduce of columns");
  }
  check(ncclCommDestroy(all), "destroy");
  return 0;
}
