// Fused attention by cuDNN's backend API, forward and backward, as cudnn-frontend builds it of matrix products and the
// pieces of a softmax: 3 samples of 8 heads, 2 of keys and values, 256 queries and keys, of width 64, causal. Arguments:
// what is done wrong, or nothing.
#include "cudnn.cuh"

static const int64_t B = 3, H = 8, G = 2, T = 256, W = 64;

static void* scores(int64_t id) { return packed(id, {B, H, T, T}, kFp32); }
static void* row(int64_t id) { return packed(id, {B, H, T, 1}, kFp32); }
// Keys as B of a product: [.., width, keys] of what lies in memory as [.., keys, width].
static void* keys(int64_t id) { return tensor(id, {B, G, W, T}, {G * T * W, T * W, 1, W}, kBf16); }
static void* values(int64_t id) { return packed(id, {B, G, T, W}, kBf16); }
static void* queries(int64_t id) { return packed(id, {B, H, T, W}, kBf16); }

static void forward(void* handle, void* data, const char* wrong) {
  void *q = queries(1), *k = keys(2), *v = values(3), *o = queries(4), *statistics = row(5);
  void* scale = packed(6, {1, 1, 1, 1}, kFp32, true);
  void* lowest = packed(7, {1, 1, 1, 1}, kFp32, true);
  void *product = scores(100), *scaled = scores(101), *rows = scores(102), *columns = scores(103), *kept = scores(104);
  void *masked = scores(105), *largest = row(106), *less = scores(107), *powers = scores(108), *sum = row(109);
  void *logarithm = row(110), *shares = scores(111);
  void* operations[] = {matmul(q, k, product), pointwise(kMul, product, scale, 0, scaled), pointwise(kIndex, scaled, 0, 0, rows),
                        pointwise(kIndex, scaled, 0, 0, columns), pointwise(kGreaterOrEqual, rows, columns, 0, kept),
                        pointwise(kSelect, scaled, lowest, kept, masked), reduction(kLargest, masked, largest),
                        pointwise(kSub, masked, largest, 0, less), pointwise(kExp, less, 0, 0, powers),
                        reduction(kSum, powers, sum), pointwise(kLog, sum, 0, 0, logarithm),
                        pointwise(kAdd, largest, logarithm, 0, statistics), pointwise(kDiv, powers, sum, 0, shares),
                        matmul(shares, v, o)};
  const bool finalizes = strcmp(wrong, "unfinalized") != 0;
  void* plan = planned(handle, operations, sizeof operations / sizeof *operations, finalizes);
  const int64_t ids[] = {1, 2, 3, 4, 5, 6, 7};
  float value = 0.125f;
  void* pointers[] = {data, data, data, data, data, &value, &value};
  const int count = strcmp(wrong, "pack") == 0 ? 4 : 7;
  fine(cudnnBackendExecute(handle, plan, pack(ids, pointers, count)), "execute");
}

static void backward(void* handle, void* data) {
  void *q = queries(1), *k = keys(2), *v = tensor(3, {B, G, W, T}, {G * T * W, T * W, 1, W}, kBf16), *o = queries(4);
  void *statistics = row(5), *scale = packed(6, {1, 1, 1, 1}, kFp32, true), *d_o = queries(8), *dq = queries(9);
  void *dk = packed(10, {B, H, T, W}, kBf16), *dv = packed(11, {B, H, T, W}, kBf16);
  void *both = packed(100, {B, H, T, W}, kFp32), *sums = row(101), *product = scores(102), *scaled = scores(103);
  void *less = scores(104), *shares = scores(105), *turned = scores(106), *dp = scores(107), *centred = scores(108);
  void *ds = scores(109), *scaled_ds = scores(110), *turned_ds = scores(111), *k_again = packed(112, {B, G, T, W}, kBf16);
  void* operations[] = {pointwise(kMul, o, d_o, 0, both), reduction(kSum, both, sums), matmul(q, k, product),
                        pointwise(kMul, product, scale, 0, scaled), pointwise(kSub, scaled, statistics, 0, less),
                        pointwise(kExp, less, 0, 0, shares), reshape(shares, turned), matmul(turned, d_o, dv),
                        matmul(d_o, v, dp), pointwise(kSub, dp, sums, 0, centred), pointwise(kMul, centred, shares, 0, ds),
                        pointwise(kMul, ds, scale, 0, scaled_ds), reshape(scaled_ds, turned_ds), matmul(turned_ds, q, dk),
                        reshape(k, k_again), matmul(scaled_ds, k_again, dq)};
  void* plan = planned(handle, operations, sizeof operations / sizeof *operations);
  const int64_t ids[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11};
  float value = 0.125f;
  void* pointers[] = {data, data, data, data, data, &value, data, data, data, data};
  void* of = pack(ids, pointers, 10);
  fine(cudnnBackendExecute(handle, plan, of), "execute");
  fine(cudnnBackendExecute(handle, plan, of), "execute");
}

// Two products after each other, of which nothing here is known.
static void unknown(void* handle, void* data) {
  void *a = packed(1, {1, 1, 32, 16}, kBf16), *b = packed(2, {1, 1, 16, 16}, kBf16), *c = packed(3, {1, 1, 32, 16}, kBf16);
  void* between = packed(100, {1, 1, 32, 16}, kFp32);
  void* operations[] = {matmul(a, b, between), matmul(between, b, c)};
  const int64_t ids[] = {1, 2, 3};
  void* pointers[] = {data, data, data};
  fine(cudnnBackendExecute(handle, planned(handle, operations, 2), pack(ids, pointers, 3)), "execute");
}

int main(int count, char** arguments) {
  const char* wrong = count > 1 ? arguments[1] : "";
  void *handle, *data;
  cudaStream_t stream;
  cudaMalloc(&data, 64 << 20);
  cudaStreamCreate(&stream);
  fine(cudnnCreate(&handle), "handle");
  fine(cudnnSetStream(handle, stream), "stream");
  if (strcmp(wrong, "dimensions") == 0) {
    void* of = made(17);
    const int type = kFp32;
    set(of, 901, kDataType, 1, &type);
    final(of);
  }
  if (strcmp(wrong, "attribute") == 0) set(made(17), 4711, kInt64, 1, &B);
  if (strcmp(wrong, "type") == 0) set(made(17), 902, kDataType, 1, &B);
  if (strcmp(wrong, "late") == 0) set(queries(1), 906, kInt64, 1, &B);
  if (strcmp(wrong, "shapes") == 0) matmul(queries(1), queries(2), scores(3));
  if (strcmp(wrong, "settings") == 0) {
    void* of = made(13);
    name(of, 750, queries(1)), name(of, 751, queries(1)), name(of, 753, queries(2));
    final(of);
  }
  if (strcmp(wrong, "kind") == 0) made(28);
  forward(handle, data, wrong);
  backward(handle, data);
  if (strcmp(wrong, "unknown") == 0) unknown(handle, data);
  printf("%zu %d\n", cudnnGetVersion(), (int)(cudnnGetCudartVersion() / 1000));
  return cudnnDestroy(handle);
}
