// A program whose kernels take arguments of every form that the capture reads, and some that it does not.
#include "host_only.cuh"

struct Pair {
  int first, second;
};
template <int kWidth>
struct Width {};

__global__ void integers(char a, unsigned char b, short c, unsigned short d, int e, unsigned f, long long g,
                         unsigned long long h) {}
__global__ void reals(float a, double b, float not_a_number, double infinite, bool yes) {}
__global__ void pointers(int** of_pointers, const void* null, float* of_host, char* within, const float* const fixed) {}
__global__ void others(Pair pair, Width<3> width, int last) {}
template <typename T, int kCount>
__global__ void templated(T (*function)(T, T), T last) {}
__global__ void nothing() {}
extern "C" __global__ void with_c_linkage(int unknown) {}

int main() {
  char* data;
  float on_host = 0;
  if (cudaMalloc((void**)&data, 100) != cudaSuccess) return 1;
  integers<<<1, 1>>>(-128, 255, -32768, 65535, -2147483647 - 1, 4294967295u, -9223372036854775807ll - 1,
                     18446744073709551615ull);
  reals<<<1, 1>>>(0.1f, 0.1, __builtin_nanf(""), -__builtin_inf(), true);
  pointers<<<1, 1>>>((int**)data, 0, &on_host, data + 99, (float*)(data + 100));
  others<<<1, 1>>>(Pair{1, 2}, Width<3>(), 3);
  templated<float, 4><<<1, 1>>>(0, 2.5f);
  nothing<<<1, 1>>>();
  with_c_linkage<<<1, 1>>>(1);
  return cudaGetLastError() != cudaSuccess;
}
