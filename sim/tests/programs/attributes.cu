// What a program can ask about its kernels. Prints the registers and the bytes of local memory of each, as
// cudaFuncGetAttributes reports them; a test compares them with cuobjdump.
#include "check.h"

__global__ void light(float* out) { out[threadIdx.x] = threadIdx.x; }

__global__ void __launch_bounds__(256) heavy(float* out, int n) {
  float sum[48] = {};
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < 48; ++j) sum[j] = sum[j] * out[j] + out[48 + j + i];
#pragma unroll
  for (int j = 0; j < 48; ++j) out[48 * threadIdx.x + j] = sum[j];
}

/// A table whose index is known only at run time lies in local memory.
__global__ void local(int* out, int n) {
  int table[100];
  for (int i = 0; i < 100; ++i) table[i] = out[i];
  for (int i = 0; i < n; ++i) table[(i * i + n) % 100] += i;
  for (int i = 0; i < 100; ++i) out[i] = table[(i + n) % 100];
}

template <class Function>
void print(const char* name, Function* function) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, function));
  std::printf("%s %d %zu\n", name, attributes.numRegs, attributes.localSizeBytes);
}

int main() {
  print("light", light);
  print("heavy", heavy);
  print("local", local);
  int blocks;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, heavy, 256, 0));
  std::printf("blocks %d\n", blocks);
  return passed();
}
