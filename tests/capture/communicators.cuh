// What the programs of the tests that communicate share: NCCL's declarations, and its id on the way between ranks.
#pragma once

#include "host_only.cuh"

#include <stdio.h>
#include <stdlib.h>

typedef struct ncclComm* ncclComm_t;
struct ncclUniqueId {
  char internal[128];
};
extern "C" {
int ncclGetUniqueId(ncclUniqueId* out);
int ncclCommInitRank(ncclComm_t* out, int size, ncclUniqueId id, int rank);
int ncclCommDestroy(ncclComm_t communicator);
int ncclAllReduce(const void*, void*, size_t, int type, int reduction, ncclComm_t, cudaStream_t);
}

static void check(int error, const char* what) {
  if (error == 0) return;
  printf("%s: %s\n", what, cudaGetErrorString((cudaError_t)error));
  exit(1);
}

/// Rank 0 writes the id of a communicator to a file, and every other rank reads it there.
static ncclUniqueId carried(const char* path, int rank) {
  ncclUniqueId id;
  if (rank == 0) check(ncclGetUniqueId(&id), "id");
  FILE* file = fopen(path, rank == 0 ? "wb" : "rb");
  const bool is_done = file != NULL && (rank == 0 ? fwrite(&id, sizeof id, 1, file) : fread(&id, sizeof id, 1, file)) == 1;
  if (!is_done || fclose(file) != 0) exit(4);
  return id;
}
